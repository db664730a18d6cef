// Which lines the table shows, in what order: filter, sort, fold out, take the first.

const ROW_LIMIT = 200_000;

/** The figures a row shows: of everything within or its own, of all phases or one. */
function figuresOf(item, own, phase) {
  if (phase) return (own ? item.ownPhases : item.phases)[phase] ?? null;
  return own ? item.own : item.total;
}

function matcher(report, view) {
  const words = view.q.toLowerCase().split(/\s+/).filter(Boolean);
  const types = new Set(view.types), bounds = new Set(view.bounds);
  if (view.by === "kernel") return (item) => words.every((word) => item.search.includes(word)) && (!view.phase || item.phase === view.phase);
  return (item, figures) =>
    words.every((word) => item.search.includes(word)) &&
    (!types.size || types.has(item.type ?? "")) &&
    (!bounds.size || bounds.has(report.get(figures, "bound") ?? "unplaced"));
}

export function isFiltered(view) {
  return Boolean(view.q || view.types.length || view.bounds.length || view.box);
}

/** {rows, hidden, matching}: rows to draw, lines left out by top, and the keys that match the filter. */
export function rowsOf(report, view, column, open) {
  const matches = matcher(report, view);
  const inBox = view.box ? (item) => view.box.has(item.key) : () => true;
  if (view.by === "kernel") {
    const rows = [];
    for (const item of report.kernels ?? []) if (matches(item)) rows.push({ item, depth: 0 });
    return limited(sorted(rows, column, view.up), view, null);
  }
  const list = report.list(view.by, view.fold);
  const matching = new Set();
  for (const item of list) {
    const figures = figuresOf(item, true, view.phase) ?? figuresOf(item, false, view.phase);
    if (figures && inBox(item) && matches(item, figures)) matching.add(item.key);
  }
  const removed = (report.comparison && !view.phase ? report.removed[view.by] : []).filter((item) => matches(item, item.total));
  if (view.by === "layer" && view.shape === "tree") return treeRows(report, view, column, open, list, matching, removed);
  const rows = [];
  for (const item of list) {
    const figures = figuresOf(item, true, view.phase);
    if (figures && matching.has(item.key)) rows.push({ item, figures, own: true, depth: 0 });
  }
  for (const item of removed) rows.push({ item, figures: item.total, own: true, depth: 0 });
  return limited(sorted(rows, column, view.up), view, matching);
}

function treeRows(report, view, column, open, list, matching, removed) {
  const filtered = isFiltered(view);
  const kept = new Set();
  if (filtered) {
    for (const item of list) {
      if (!matching.has(item.key)) continue;
      for (let up = item; up && !kept.has(up); up = up.parent) kept.add(up);
    }
  }
  const rows = [];
  const add = (siblings, depth) => {
    const here = [];
    for (const item of siblings) {
      const figures = figuresOf(item, false, view.phase);
      if (figures && (!filtered || kept.has(item))) here.push({ item, figures, own: false, depth });
    }
    for (const row of sorted(here, column, view.up)) {
      const { item } = row;
      const inner = item.children.length > 0 && (!filtered || item.children.some((child) => kept.has(child)));
      row.expandable = inner;
      row.open = inner && (filtered ? !open.shut.has(item.key) : open.has(item));
      row.faint = filtered && !matching.has(item.key);
      rows.push(row);
      if (row.open) {
        if (item.own && item.children.length && (!filtered || matching.has(item.key))) {
          const own = figuresOf(item, true, view.phase);
          if (own) rows.push({ item, figures: own, own: true, depth: depth + 1, ownRow: true });
        }
        add(item.children, depth + 1);
      }
    }
  };
  add(list.filter((item) => !item.parent), 0);
  for (const item of removed) rows.push({ item, figures: item.total, own: true, depth: 0 });
  return { rows: rows.slice(0, ROW_LIMIT), hidden: 0, matching };
}

/** Largest first, or smallest first where ``up``; unknown always last. Text goes from A to Z first. */
function sorted(rows, column, up) {
  const values = rows.map((row) => column.value(row));
  const isText = values.some((value) => typeof value === "string");
  const numbers = isText ? ranked(values) : values;
  const sign = up ? 1 : -1;
  const order = Array.from(rows.keys());
  const known = (value) => value !== null && value !== undefined;
  order.sort((a, b) => {
    const x = numbers[a], y = numbers[b];
    if (known(x) && known(y)) return sign * (x - y) || a - b;
    return Number(!known(x)) - Number(!known(y)) || a - b;
  });
  return order.map((at) => rows[at]);
}

const collator = new Intl.Collator("en", { numeric: true });

/** Texts as numbers, the first in the alphabet the largest: each different text is compared only a few times. */
function ranked(values) {
  const texts = [...new Set(values.filter((value) => value !== null && value !== undefined))].sort(collator.compare);
  const rank = new Map(texts.map((text, at) => [text, -at]));
  return values.map((value) => (rank.has(value) ? rank.get(value) : null));
}

function limited(rows, view, matching) {
  if (!view.top || rows.length <= view.top) return { rows, hidden: 0, matching };
  return { rows: rows.slice(0, view.top), hidden: rows.length - view.top, matching };
}

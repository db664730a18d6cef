// A report as the page holds it: items with their figures by name. Nothing is worked out here but means per step.

import { clean } from "./dom.js";
import { UNKNOWN } from "./format.js";

/** Under this part of a whole something is only known in part: as torchroof/report/line.py says. */
const PARTIAL = 0.99;

const byPath = (entry) => entry.path ?? entry.label;

/** An item is a line of the table: a layer, several equal ones, an op, a kernel, or what has none of these. */
function items(entries, keyOf) {
  const found = [];
  for (const [at, entry] of entries.entries()) {
    const parent = entry.parent === undefined || entry.parent === null ? null : found[entry.parent];
    const item = {
      at,
      key: keyOf(entry),
      label: clean(entry.label),
      within: entry.within ? clean(entry.within) : null,
      full: clean(entry.path === "" ? "(root)" : entry.path ?? entry.label),
      type: entry.type ? clean(entry.type) : null,
      why: entry.why ? clean(entry.why) : null,
      members: entry.members ?? [],
      flagged: entry.flagged ?? false,
      entry,
      parent,
      depth: parent ? parent.depth + 1 : 0,
      children: [],
      total: entry.total,
      phases: entry.phases ?? {},
      ownPhases: entry.own_phases ?? {},
      base: null,
    };
    item.search = `${item.full} ${item.type ?? ""}`.toLowerCase();
    if (parent) parent.children.push(item);
    found.push(item);
  }
  for (const item of found) {
    item.own = item.children.length ? item.entry.own ?? null : item.total;
    if (!item.children.length) item.ownPhases = item.phases;
  }
  return found;
}

export class Report {
  constructor(board) {
    this.board = board;
    this.position = Object.fromEntries(board.figures.map((name, at) => [name, at]));
    this.divisor = board.divisor;
    this.folded = items(board.tree, byPath);
    this.plain = this.folded;
    this.ops = items(board.ops, (entry) => entry.label);
    this.details = null;
    this.kernels = null;
    this.comparison = null;
  }

  get folds() {
    return this.board.folds;
  }

  /** A figure by its name; null where it is unknown or there is no line. */
  get(figures, name) {
    return figures ? figures[this.position[name]] : null;
  }

  perStep(value) {
    return value === null || value === undefined ? null : value / this.divisor;
  }

  /** What could be won back as text: "≥" where part of the line has no floor, unknown where all of it has none. */
  headroom(figures, text) {
    if (!figures) return UNKNOWN;
    const least = this.get(figures, "headroom_least_ns"), most = this.get(figures, "headroom_most_ns");
    const said = text(this.perStep(least));
    if (!(least < PARTIAL * most)) return said;
    return least ? `≥${said.replace(/^</, "")}` : UNKNOWN;
  }

  list(by, fold) {
    if (by === "layer") return fold ? this.folded : this.plain;
    return by === "op" ? this.ops : this.kernels ?? [];
  }

  find(by, fold, key) {
    return this.list(by, fold).find((item) => item.key === key) ?? null;
  }

  setDetails(details) {
    this.details = details;
    if (details.plain) this.plain = items(details.plain, byPath);
    if (this.comparison) this.setComparison(this.comparison);
    const columns = details.kernels;
    const texts = columns.texts.map((text) => (text === null ? null : clean(text)));
    this.kernels = Array.from(columns.name, (name, at) => ({
      at,
      key: at,
      label: texts[name],
      rawPath: columns.texts[columns.path[at]],
      layer: texts[columns.path[at]],
      phase: texts[columns.phase[at]],
      op: texts[columns.op[at]],
      kernels: columns.kernels[at],
      ns: columns.kernel_ns[at],
    }));
    for (const kernel of this.kernels) kernel.search = `${kernel.label} ${kernel.layer ?? ""} ${kernel.op ?? ""}`.toLowerCase();
    this.placed = items(details.placed, (entry) => entry.label);
    this.byPath = new Map();
    for (const kernel of this.kernels) {
      const path = kernel.rawPath ?? "";
      const key = kernel.rawPath === null ? null : path;
      if (!this.byPath.has(key)) this.byPath.set(key, []);
      this.byPath.get(key).push(kernel);
    }
  }

  setComparison(comparison) {
    this.comparison = comparison;
    const lay = (list, pairs) => list.forEach((item, at) => { item.base = pairs?.[at] ?? null; });
    lay(this.folded, comparison?.tree);
    if (this.plain !== this.folded) lay(this.plain, comparison?.plain);
    this.ops.forEach((item, at) => { item.base = comparison ? [comparison.ops[at], comparison.ops[at]] : null; });
    const removed = (entries) => items(entries ?? [], (entry) => `− ${entry.path ?? entry.label}`);
    this.removed = { layer: removed(comparison?.removed), op: removed(comparison?.removed_ops) };
    for (const item of [...this.removed.layer, ...this.removed.op]) item.removed = true;
  }

  /** The accounting of an item's own ops; null while it has not arrived. */
  parts(by, item) {
    if (!this.details) return null;
    return (by === "op" ? this.details.op_parts : this.details.parts)[item.key] ?? [];
  }

  /** The kernels of an item's own ops, or of an op. */
  kernelsOf(by, item) {
    if (!this.kernels) return [];
    if (by === "op") return this.kernels.filter((kernel) => kernel.op === item.full);
    if (item.entry.path === null || item.entry.path === undefined) return this.byPath.get(null) ?? [];
    const paths = item.members.length ? item.members : [item.entry.path];
    return paths.flatMap((path) => this.byPath.get(path) ?? []);
  }
}

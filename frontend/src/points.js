// The points of the chart: a line of the table, or one phase of it, where its figures place it.

const placed = (rate, flops) => rate !== null && flops !== null;

/** Lines with own figures; a container has a point only for what it ran itself. */
export function pointItems(report, view) {
  if (view.by === "kernel") return report.placed ?? [];
  return report.list(view.by, view.fold).filter((item) => item.own);
}

/** Every point, and how many lines with kernel time have none. Coordinates are log10; x is null without FLOPs. */
export function points(report, view) {
  const hasRoof = report.board.roofs.length > 0;
  const found = [];
  let without = 0, withoutNs = 0;
  for (const item of pointItems(report, view)) {
    for (const [phase, figures] of divided(item, view)) {
      if (!figures || !report.get(figures, "kernel_ns")) continue;
      const point = placePoint(report, item, phase, figures, hasRoof);
      if (point) found.push(point);
      else {
        without += 1;
        withoutNs += report.get(figures, "kernel_ns");
      }
    }
  }
  found.sort((a, b) => b.share - a.share);
  return { points: found, without, withoutShare: report.board.totals.step_ns ? withoutNs / report.board.totals.step_ns : 0 };
}

function divided(item, view) {
  if (view.phase) return [[view.phase, item.ownPhases[view.phase] ?? null]];
  if (view.apart) return Object.entries(item.ownPhases);
  return [[null, item.own]];
}

function placePoint(report, item, phase, figures, hasRoof) {
  const get = (name) => report.get(figures, name);
  const rate = get("achieved_flops_per_s"), flops = get("flops"), efficiency = get("efficiency");
  if (!placed(rate, flops)) return null;
  let x = null, y = null;
  if (flops > 0) {
    if (!(get("intensity") > 0) || !(rate > 0)) return null;
    x = Math.log10(get("intensity"));
    y = Math.log10(rate);
  } else {
    const moved = get("achieved_bytes_per_s");
    y = hasRoof ? efficiency : moved ? Math.log10(moved) : null;
    if (y === null) return null;
  }
  return {
    item,
    id: phase ? `${item.key}\n${phase}` : String(item.key),
    figures,
    x,
    y,
    phase: phase ?? longest(report, item.ownPhases),
    apart: phase !== null,
    share: report.board.totals.step_ns ? get("kernel_ns") / report.board.totals.step_ns : 0,
    attainable: efficiency ? rate / efficiency : null,
    efficiency,
    bound: get("bound"),
    flagged: item.flagged,
    headroom: get("headroom_most_ns"),
  };
}

function longest(report, phases) {
  let best = null, most = -1;
  for (const [phase, figures] of Object.entries(phases)) {
    const ns = report.get(figures, "kernel_ns");
    if (ns > most) [best, most] = [phase, ns];
  }
  return best;
}

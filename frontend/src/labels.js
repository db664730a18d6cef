// Where the names of points go: the most important first, none over another, none over a point.

const DIRECTIONS = [0, Math.PI, -Math.PI / 2, Math.PI / 2, -Math.PI / 4, Math.PI / 4, (-3 * Math.PI) / 4, (3 * Math.PI) / 4];
const REACHES = [4, 14, 28, 46, 70];
const HEIGHT = 14;

const overlap = (a, b) => Math.max(0, Math.min(a.x1, b.x1) - Math.max(a.x0, b.x0)) * Math.max(0, Math.min(a.y1, b.y1) - Math.max(a.y0, b.y0));

/** The box of a mark, {x, y, r}. */
export const around = ({ x, y, r }) => ({ x0: x - r, x1: x + r, y0: y - r, y1: y + r });

/** Whether a box covers any part of others. */
export const meets = (box, others) => others.some((other) => overlap(box, other) > 0);

/**
 * Places for names beside marks. ``marks`` are {x, y, r} of all points; ``named`` those to label, first things first,
 * each {x, y, r, width}; ``soft`` are boxes better not covered, ``words`` those that must not be. Gives, for each,
 * {x, y, anchor, box} or null.
 */
export function placeLabels(named, marks, frame, soft, words) {
  const taken = [...words];
  const boxes = marks.map(around);
  return named.map((point) => {
    let best = null;
    for (const reach of REACHES) {
      for (const direction of DIRECTIONS) {
        const option = beside(point, direction, point.r + reach);
        const { box } = option;
        if (box.x0 < frame.x0 || box.x1 > frame.x1 || box.y0 < frame.y0 || box.y1 > frame.y1) continue;
        if (meets(box, taken)) continue;
        const covered = boxes.reduce((sum, other) => sum + overlap(box, other), 0);
        const cost = reach + 0.6 * covered + 0.4 * soft.reduce((sum, other) => sum + overlap(box, other), 0);
        if (!best || cost < best.cost) best = { ...option, cost, reach };
      }
      if (best && best.cost <= reach + 1) break;
    }
    if (!best || best.cost > 160) return null;
    taken.push(best.box);
    return best;
  });
}

function beside(point, direction, away) {
  const across = Math.cos(direction), down = Math.sin(direction);
  const x = point.x + away * across, y = point.y + (away + HEIGHT * 0.35) * down;
  const anchor = Math.abs(across) < 0.1 ? "middle" : across > 0 ? "start" : "end";
  const left = anchor === "start" ? x : anchor === "end" ? x - point.width : x - point.width / 2;
  return { x, y, anchor, box: { x0: left - 1, x1: left + point.width + 1, y0: y - HEIGHT / 2, y1: y + HEIGHT / 2 } };
}

/** A straight line as a chain of small boxes. */
export function chain(x0, y0, x1, y1, step = 8) {
  const count = Math.max(1, Math.ceil(Math.hypot(x1 - x0, y1 - y0) / step));
  return Array.from({ length: count + 1 }, (_, at) => {
    const x = x0 + ((x1 - x0) * at) / count, y = y0 + ((y1 - y0) * at) / count;
    return { x0: x - 2, x1: x + 2, y0: y - 2, y1: y + 2 };
  });
}

let pen = null;

/** The width of a text in the chart's face. */
export function measured(text, font) {
  pen ??= document.createElement("canvas").getContext("2d");
  pen.font = font;
  return pen.measureText(text).width;
}

/** A kernel's name without its templates and namespaces. */
export function kernelName(name) {
  const plain = name.replace(/^void /, "");
  const head = plain.split(/[<(]/, 1)[0];
  return head.split("::").at(-1) || plain;
}

/** A name cut to so many characters: of a path the last names are kept. */
export function shortened(label, longest) {
  if (label.length <= longest) return label;
  const parts = label.split(".");
  for (let from = 1; from < parts.length; from += 1) {
    const short = `…${parts.slice(from).join(".")}`;
    if (short.length <= longest) return short;
  }
  return `${label.slice(0, Math.ceil(longest / 2) - 1)}…${label.slice(-Math.floor(longest / 2))}`;
}

// The roofline: log-log, ceilings over points. Area is share of time, colour the bound, shape the phase.

import { axisBottom, axisLeft } from "d3-axis";
import { brush } from "d3-brush";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { symbol, symbolCircle, symbolCross, symbolDiamond, symbolSquare, symbolStar, symbolTriangle, symbolWye } from "d3-shape";
import { zoom, zoomIdentity } from "d3-zoom";

import { clean, h, s } from "./dom.js";
import { percent, quantity } from "./format.js";
import { around, chain, kernelName, measured, meets, placeLabels, shortened } from "./labels.js";
import { colourOf, theme } from "./theme.js";
import { tip } from "./tip.js";

const SHAPES = [symbolCircle, symbolSquare, symbolDiamond, symbolCross, symbolTriangle, symbolStar, symbolWye];
const SMALLEST = 34, LARGEST = 1000;
const LABELS = 8;
const FONT = "11.5px Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif";
const FAMILY = FONT.replace("11.5px ", "");
const PAD = 0.3;

export function shapeOf(report, phase) {
  const at = report.board.all_phases.indexOf(phase);
  return SHAPES[at < 0 ? SHAPES.length - 1 : at % SHAPES.length];
}

export class Chart {
  /** ``picked(point | null)`` on a click, ``boxed(points)`` after a box was drawn. */
  constructor(host, { picked, boxed }) {
    Object.assign(this, { host, picked, boxed });
    this.transform = zoomIdentity;
    this.mode = "pan";
    this.hint = h("div", { class: "chart-hint", hidden: true }, "Ctrl + wheel zooms");
    this.tip = h("div", { class: "tip", hidden: true, role: "status" });
    this.canvas = h("div", { class: "chart-canvas", tabindex: "0", role: "group", "aria-label": "Roofline chart: arrow keys walk the points, Enter selects" });
    this.svg = s("svg", {});
    this.canvas.append(this.svg);
    host.append(this.canvas, this.tip, this.hint);
    this.#interact();
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    this.canvas.addEventListener("blur", () => this.#hover(null));
    new ResizeObserver(() => this.data && this.host.clientWidth > 0 && (this.host.clientWidth !== this.width || this.host.clientHeight !== this.height) && this.draw()).observe(host);
  }

  show(data) {
    this.data = data;
    this.active = null;
    if (this.host.clientWidth > 0) this.draw();
  }

  setMode(mode) {
    this.mode = mode;
    if (this.data) this.draw();
  }

  reset() {
    this.transform = zoomIdentity;
    if (this.data) this.draw();
  }

  zoomBy(factor) {
    const { frame } = this;
    const x = (frame.x0 + frame.x1) / 2, y = (frame.y0 + frame.y1) / 2;
    const k = Math.max(0.4, Math.min(60, this.transform.k * factor));
    const kept = this.transform.invert([x, y]);
    this.transform = zoomIdentity.translate(x - kept[0] * k, y - kept[1] * k).scale(k);
    this.draw();
  }

  draw() {
    const { report } = this.data;
    this.width = this.host.clientWidth;
    this.height = Math.max(360, this.host.clientHeight || 480);
    const hasStrip = this.data.points.some((point) => point.x === null);
    const left = hasStrip ? 142 : 58;
    this.frame = { x0: left, x1: this.width - 14, y0: 14, y1: this.height - 42 };
    this.strip = hasStrip ? { x0: 46, x1: 84, y0: this.frame.y0, y1: this.frame.y1 } : null;
    this.#scales(report);
    const { svg } = this;
    svg.replaceChildren();
    const size = { viewBox: `0 0 ${this.width} ${this.height}`, width: this.width, height: this.height, "font-family": FAMILY, "font-size": 11.5 };
    for (const [name, value] of Object.entries(size)) svg.setAttribute(name, value);
    svg.append(s("rect", { x: 0, y: 0, width: this.width, height: this.height, fill: theme.colours.ground }));
    const clip = s("clipPath", { id: "plot" }, s("rect", { x: this.frame.x0, y: this.frame.y0, width: this.frame.x1 - this.frame.x0, height: this.frame.y1 - this.frame.y0 }));
    svg.append(s("defs", {}, clip));
    this.#grid(svg);
    this.marks = this.data.points.map((point) => this.#mark(point));
    const roofs = this.#roofs(svg);
    this.#stems(svg);
    this.#points(svg);
    this.#labels(svg, roofs);
    this.overlay = s("g", { "data-live": "" });
    svg.append(this.overlay);
    this.#brush();
    this.hovered = null;
    this.tip.hidden = true;
    this.zoomer.extent([[this.frame.x0, this.frame.y0], [this.frame.x1, this.frame.y1]]);
    svg.__zoom = this.transform;
    this.#restate();
  }

  /** Only what the selection and the filter change: no geometry. */
  restate(data) {
    Object.assign(this.data, data);
    if (this.nodes) this.#restate();
  }

  #scales(report) {
    const { points } = this.data;
    const flats = report.board.roofs.filter((roof) => roof.kind === "compute").map((roof) => Math.log10(roof.value));
    const slopes = report.board.roofs.filter((roof) => roof.kind === "bandwidth").map((roof) => Math.log10(roof.value));
    const ridges = flats.flatMap((flat) => slopes.map((slope) => flat - slope));
    const placed = points.filter((point) => point.x !== null);
    const xs = [...placed.map((point) => point.x), ...ridges.flatMap((ridge) => [ridge - 1.4, ridge + 0.7])];
    const [x0, x1] = span(xs, [-2, 3]);
    const ys = [...placed.map((point) => point.y), ...flats];
    if (!flats.length) ys.push(...slopes.flatMap((slope) => [slope + x0, slope + x1]));
    const [y0, y1] = span(ys, [9, 15]);
    this.x = this.transform.rescaleX(scaleLinear([x0, x1], [this.frame.x0, this.frame.x1]));
    this.y = this.transform.rescaleY(scaleLinear([y0, y1 + 0.04 * (y1 - y0)], [this.frame.y1, this.frame.y0]));
    if (this.strip) {
      const heights = points.filter((point) => point.x === null).map((point) => point.y);
      const roof = report.board.roofs.length > 0;
      const domain = roof ? [0, Math.max(1, ...heights) * 1.05] : span(heights, [9, 12]);
      this.stripY = scaleLinear(domain, [this.strip.y1, this.strip.y0]);
    }
  }

  #grid(svg) {
    const { colours } = theme;
    const { frame } = this;
    svg.append(s("rect", { x: frame.x0, y: frame.y0, width: frame.x1 - frame.x0, height: frame.y1 - frame.y0, fill: colours.ground }));
    const ticks = (scale) => {
      const [low, high] = scale.domain();
      const every = Math.max(1, Math.ceil((high - low) / 9));
      const found = [];
      for (let at = Math.ceil(low / every) * every; at <= high; at += every) found.push(at);
      return found;
    };
    const xTicks = ticks(this.x), yTicks = ticks(this.y);
    for (const at of xTicks) svg.append(s("line", { x1: this.x(at), x2: this.x(at), y1: frame.y0, y2: frame.y1, stroke: colours.grid }));
    for (const at of yTicks) svg.append(s("line", { x1: frame.x0, x2: frame.x1, y1: this.y(at), y2: this.y(at), stroke: colours.grid }));
    const axes = select(svg);
    const dress = (axis) => axis.call((g) => g.select(".domain").attr("stroke", colours.axis))
      .call((g) => g.selectAll(".tick line").attr("stroke", colours.axis))
      .call((g) => g.selectAll("text").attr("fill", colours.quiet).attr("font-size", 11).attr("font-family", FAMILY));
    axes.append("g").attr("transform", `translate(0,${frame.y1})`).call(axisBottom(this.x).tickValues(xTicks).tickFormat(power).tickSize(4)).call(dress);
    axes.append("g").attr("transform", `translate(${frame.x0},0)`).call(axisLeft(this.y).tickValues(yTicks).tickFormat(power).tickSize(4)).call(dress);
    svg.append(s("text", { x: frame.x1, y: this.height - 8, fill: colours.quiet, "text-anchor": "end" }, "FLOPs per byte"));
    svg.append(s("text", { x: frame.x0 + 8, y: frame.y0 + 12, fill: colours.quiet }, "FLOP/s"));
    if (this.strip) this.#stripGrid(svg, axes, dress);
  }

  #stripGrid(svg, axes, dress) {
    const { strip } = this;
    const { colours } = theme;
    const roof = this.data.report.board.roofs.length > 0;
    svg.append(s("rect", { x: strip.x0, y: strip.y0, width: strip.x1 - strip.x0, height: strip.y1 - strip.y0, fill: colours.under, rx: 3 }));
    const high = this.stripY.domain()[1];
    const values = !roof ? this.stripY.ticks(5).filter(Number.isInteger) : high < 1.4 ? [0, 0.25, 0.5, 0.75, 1] : this.stripY.ticks(high < 4 ? 4 : 3);
    axes.append("g").attr("transform", `translate(${strip.x0},0)`)
      .call(axisLeft(this.stripY).tickValues(values).tickFormat(roof ? (at) => percent(at) : power).tickSize(3)).call(dress);
    if (roof) svg.append(s("line", { x1: strip.x0, x2: strip.x1, y1: this.stripY(1), y2: this.stripY(1), stroke: colours.roof, "stroke-width": 1.6 }));
    const middle = (strip.x0 + strip.x1) / 2;
    svg.append(s("text", { x: middle, y: strip.y1 + 17, fill: colours.quiet, "text-anchor": "middle", "font-size": 11 }, "no FLOPs"));
    svg.append(s("text", { x: middle, y: strip.y1 + 31, fill: colours.quiet, "text-anchor": "middle", "font-size": 10 }, roof ? "% of bandwidth" : "byte/s"));
  }

  /** The ceilings: each up to where another ends it. Gives the boxes they cover. */
  #roofs(svg) {
    const { report } = this.data;
    const flats = report.board.roofs.filter((roof) => roof.kind === "compute");
    const slopes = report.board.roofs.filter((roof) => roof.kind === "bandwidth");
    const top = flats.length ? Math.max(...flats.map((roof) => Math.log10(roof.value))) : null;
    const fastest = slopes.length ? Math.max(...slopes.map((roof) => Math.log10(roof.value))) : null;
    const group = s("g", { "clip-path": "url(#plot)" });
    svg.append(group);
    const [xLow, xHigh] = this.x.domain(), [yLow] = this.y.domain();
    if (top !== null && fastest !== null) {
      const ridge = top - fastest;
      const corners = [[yLow - fastest, yLow], [ridge, top], [Math.max(xHigh, ridge), top], [Math.max(xHigh, ridge), yLow]];
      group.append(s("polygon", { points: corners.map(([x, y]) => `${this.x(x)},${this.y(y)}`).join(" "), fill: theme.colours.under }));
      for (const line of svg.querySelectorAll(":scope > line")) group.before(line);
    }
    const boxes = [], words = [];
    for (const roof of flats) {
      const at = Math.log10(roof.value);
      this.#roof(group, roof, [fastest === null ? xLow : at - fastest, at], [xHigh, at], boxes, words);
    }
    for (const roof of slopes) {
      const at = Math.log10(roof.value);
      const end = top === null ? xHigh : top - at;
      const from = Math.min(xLow, yLow - at);
      this.#roof(group, roof, [from, from + at], [end, end + at], boxes, words);
    }
    this.roofWords = words;
    return boxes;
  }

  #roof(group, roof, from, to, boxes, words) {
    const line = { x1: this.x(from[0]), y1: this.y(from[1]), x2: this.x(to[0]), y2: this.y(to[1]) };
    const unit = roof.kind === "compute" ? "FLOP/s" : "B/s";
    group.append(s("line", {
      ...line, stroke: theme.colours.roof, "stroke-width": 1.7, "stroke-linecap": "round",
      "stroke-dasharray": roof.origin === "measured" ? null : "6 4", "data-roof": `${clean(roof.name)}`, "data-value": roof.value, "data-origin": roof.origin,
    }));
    boxes.push(...chain(Math.max(line.x1, this.frame.x0), this.y(from[1] + (this.x.invert(Math.max(line.x1, this.frame.x0)) - from[0]) * (roof.kind === "compute" ? 0 : 1)), line.x2, line.y2));
    words.push({ line, kind: roof.kind, text: `${clean(roof.name)} ${quantity(roof.value, unit)}` });
  }

  #mark(point) {
    const largest = this.data.points[0]?.share || 1;
    const area = Math.max(SMALLEST, (LARGEST * point.share) / largest);
    const radius = Math.sqrt(area / Math.PI);
    const inStrip = point.x === null;
    const x = inStrip ? (this.strip.x0 + this.strip.x1) / 2 : this.x(point.x);
    const y = inStrip ? this.stripY(point.y) : this.y(point.y);
    const inside = inStrip || (x >= this.frame.x0 && x <= this.frame.x1 && y >= this.frame.y0 && y <= this.frame.y1);
    return { point, x, y, r: radius, area, inside, inStrip };
  }

  /** A flagged point's distance to its roof: the headroom, as a line upwards. */
  #stems(svg) {
    const group = (this.stems = s("g", { "clip-path": "url(#plot)", "data-stems": "" }));
    svg.append(group);
    for (const mark of this.marks) if (mark.point.flagged && !mark.inStrip) this.#stem(group, mark, 0.55);
  }

  #stem(group, mark, opacity) {
    const { attainable } = mark.point;
    if (!attainable || mark.point.efficiency >= 1) return;
    const top = this.y(Math.log10(attainable));
    const colour = theme.colours.flag;
    group.append(
      s("line", { x1: mark.x, x2: mark.x, y1: mark.y, y2: top, stroke: colour, "stroke-width": 1.3, opacity, "stroke-dasharray": "2 3", "stroke-linecap": "round" }),
      s("line", { x1: mark.x - 5, x2: mark.x + 5, y1: top, y2: top, stroke: colour, "stroke-width": 1.8, opacity: Math.min(1, opacity + 0.2) }),
    );
  }

  #points(svg) {
    const outer = s("g", { "clip-path": "url(#plot)" });
    const side = s("g", {});
    svg.append(outer, side);
    this.nodes = this.marks.map((mark) => {
      const { point } = mark;
      const colour = colourOf(point.bound);
      const path = s("path", {
        d: symbol(shapeOf(this.data.report, point.phase), mark.area)(),
        transform: `translate(${mark.x.toFixed(2)},${mark.y.toFixed(2)})`,
        fill: colour, "fill-opacity": 0.72, stroke: theme.colours.ground, "stroke-width": 1,
        class: "point", "data-key": point.id, "data-x": point.x, "data-y": point.y, "data-share": point.share, "data-bound": point.bound ?? "unplaced",
      });
      (mark.inStrip ? side : outer).append(path);
      return path;
    });
  }

  #labels(svg, roofs) {
    const { colours } = theme;
    const covered = this.#roofLabels(svg, roofs);
    const chosen = this.data.chosen;
    const isChosen = (mark) => Number(chosen?.has(mark.point.item.key) ?? false);
    const order = this.marks.filter((mark) => mark.inside && !mark.inStrip && this.#isShown(mark.point))
      .sort((a, b) => isChosen(b) - isChosen(a) || Number(b.point.flagged) - Number(a.point.flagged) || b.point.headroom - a.point.headroom).slice(0, LABELS);
    const named = order.map((mark) => {
      const name = this.data.byKernel ? kernelName(mark.point.item.full) : mark.point.item.full;
      const text = `${shortened(name, 30)}${mark.point.apart ? ` (${mark.point.phase})` : ""}`;
      return { ...mark, text, width: measured(text, FONT) };
    });
    const places = placeLabels(named, this.marks.filter((mark) => mark.inside), this.frame, roofs, covered);
    const group = s("g", { "data-labels": "" });
    svg.append(group);
    this.names = [];
    places.forEach((place, at) => {
      if (!place) return;
      const mark = named[at];
      const name = s("g", {}, place.reach > 10 ? leader(mark, place) : null);
      this.names.push([name, mark.point]);
      group.append(name);
      name.append(s("text", {
        x: place.x, y: place.y + 4, "text-anchor": place.anchor, fill: colours.ink, "font-weight": mark.point.flagged ? 600 : 400,
        stroke: colours.halo, "stroke-width": 3, "stroke-linejoin": "round", "paint-order": "stroke", "pointer-events": "none",
      }, mark.text));
    });
  }

  #roofLabels(svg, roofs) {
    const { frame } = this;
    const group = s("g", { "pointer-events": "none" });
    const boxes = [], points = this.marks.filter((mark) => mark.inside).map(around);
    for (const { line, kind, text } of this.roofWords) {
      const width = measured(text, FONT);
      const option = kind === "compute" ? flatLabel(line, width, frame, [...roofs, ...boxes], points) : slopeLabel(line, width, frame);
      if (!option || option.boxes.some((box) => meets(box, boxes))) continue;
      boxes.push(...option.boxes);
      group.append(s("text", { ...option.attributes, fill: theme.colours.roof, "font-size": 11, stroke: theme.colours.halo, "stroke-width": 3, "paint-order": "stroke", "stroke-linejoin": "round" }, text));
    }
    svg.append(group);
    return boxes;
  }

  #isShown(point) {
    return !this.data.shown || this.data.shown.has(point.item.key);
  }

  #restate() {
    const { chosen } = this.data;
    const any = chosen && chosen.size > 0;
    this.nodes.forEach((node, at) => {
      const { point } = this.marks[at];
      const isChosen = any && chosen.has(point.item.key);
      const faint = !this.#isShown(point) || (any && !isChosen);
      const state = `${isChosen} ${faint} ${theme.dark}`;
      if (node.state === state) return;
      node.state = state;
      node.setAttribute("opacity", faint ? 0.16 : 1);
      node.setAttribute("stroke", isChosen ? theme.colours.ink : point.flagged ? theme.colours.flag : theme.colours.ground);
      node.setAttribute("stroke-width", isChosen ? 2 : point.flagged ? 1.8 : 1);
    });
    for (const [name, point] of this.names) name.setAttribute("opacity", any && !chosen.has(point.item.key) ? 0.3 : 1);
    this.stems.setAttribute("opacity", any ? 0.25 : 1);
    this.overlay.replaceChildren();
    if (!any) return;
    const inside = s("g", { "clip-path": "url(#plot)" });
    this.overlay.append(inside);
    const marks = this.marks.filter((mark) => chosen.has(mark.point.item.key) && !mark.inStrip);
    if (marks.length <= 12) for (const mark of marks) this.#stem(inside, mark, 1);
  }

  /** Listeners stay with the SVG; a drawing only changes what is in it. */
  #interact() {
    const { svg } = this;
    svg.addEventListener("pointermove", (event) => !event.buttons && this.#hover(this.#near(event)));
    svg.addEventListener("pointerdown", () => this.canvas.focus({ preventScroll: true }));  // so that keys reach the page
    svg.addEventListener("pointerleave", () => this.#hover(null));
    svg.addEventListener("click", (event) => {
      if (this.mode === "box" || this.dragged || !this.marks) return;
      const mark = this.#near(event);
      this.picked(mark ? mark.point : null);
    });
    this.zoomer = zoom().scaleExtent([0.4, 60])
      .filter((event) => (event.type === "wheel" ? event.ctrlKey || event.metaKey : !event.button && this.mode === "pan" && event.type !== "dblclick"))
      .on("start", () => { this.dragged = false; })
      .on("zoom", (event) => {
        if (!event.sourceEvent) return;
        this.dragged = event.sourceEvent.type !== "wheel";
        this.transform = event.transform;
        this.pending ??= requestAnimationFrame(() => {
          this.pending = null;
          this.draw();
        });
      })
      .on("end", () => setTimeout(() => { this.dragged = false; }, 0));
    select(svg).call(this.zoomer).on("dblclick.zoom", () => this.reset());
    svg.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) return;
      this.hint.hidden = false;
      clearTimeout(this.hinting);
      this.hinting = setTimeout(() => { this.hint.hidden = true; }, 1200);
    }, { passive: true });
  }

  #brush() {
    const { frame } = this;
    const layer = select(this.svg).append("g").attr("data-live", "").attr("class", "brush").style("display", this.mode === "box" ? null : "none");
    const brusher = brush().extent([[this.strip ? this.strip.x0 : frame.x0, frame.y0], [frame.x1, frame.y1]])
      .on("end", (event) => {
        if (!event.sourceEvent) return;
        if (!event.selection) {
          const mark = this.#near(event.sourceEvent);
          this.picked(mark ? mark.point : null);
          return;
        }
        const [[x0, y0], [x1, y1]] = event.selection;
        brusher.clear(layer);
        this.boxed(this.marks.filter((mark) => mark.inside && this.#isShown(mark.point) && mark.x >= x0 && mark.x <= x1 && mark.y >= y0 && mark.y <= y1).map((mark) => mark.point));
      });
    layer.call(brusher);
    layer.select(".selection").attr("fill", theme.colours.accent).attr("stroke", theme.colours.accent).attr("fill-opacity", 0.12);
  }

  #near(event) {
    const bounds = this.svg.getBoundingClientRect();
    const x = event.clientX - bounds.left, y = event.clientY - bounds.top;
    let best = null, least = 14;
    for (const mark of this.marks) {
      if (!mark.inside || !this.#isShown(mark.point)) continue;
      const gap = Math.hypot(mark.x - x, mark.y - y) - mark.r;
      // Within several marks the smallest: it lies on top.
      const distance = gap < 0 ? mark.r / 1000 - 1 : gap;
      if (distance < least) [best, least] = [mark, distance];
    }
    return best;
  }

  #hover(mark) {
    if (mark === this.hovered) return;
    this.hovered = mark;
    this.canvas.classList.toggle("pointing", Boolean(mark));
    this.tip.hidden = !mark;
    if (!mark) {
      this.#restate();
      return;
    }
    this.#restate();
    const inside = s("g", { "clip-path": "url(#plot)" });
    if (!mark.inStrip) this.#stem(inside, mark, 1);
    this.overlay.append(inside, s("circle", { cx: mark.x, cy: mark.y, r: mark.r + 4, fill: "none", stroke: theme.colours.ink, "stroke-width": 1.4, "pointer-events": "none" }));
    this.tip.replaceChildren(...tip(this.data.report, mark.point));
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const left = mark.x + mark.r + 14 + width < this.width ? mark.x + mark.r + 14 : Math.max(4, mark.x - mark.r - 14 - width);
    this.tip.style.setProperty("left", `${left}px`);
    this.tip.style.setProperty("top", `${Math.max(4, Math.min(this.height - height - 4, mark.y - height / 2))}px`);
  }

  #key(event) {
    const order = this.marks?.filter((mark) => mark.inside && this.#isShown(mark.point)) ?? [];
    if (!order.length) return;
    const at = order.indexOf(this.active);
    if (event.key === "ArrowRight" || event.key === "ArrowDown") this.active = order[(at + 1) % order.length];
    else if (event.key === "ArrowLeft" || event.key === "ArrowUp") this.active = order[(at - 1 + order.length) % order.length];
    else if (event.key === "Enter" && this.active) {
      this.picked(this.active.point);
      return;
    } else if (event.key === "+") return void this.zoomBy(1.5);
    else if (event.key === "-") return void this.zoomBy(1 / 1.5);
    else if (event.key === "0") return void this.reset();
    else return;
    event.preventDefault();
    this.#hover(this.active);
  }
}

function span(values, empty) {
  if (!values.length) return empty;
  const high = Math.max(...values) + PAD;
  const low = Math.min(Math.min(...values) - PAD, high - 3);
  return [low, high];
}

function power(decade) {
  if (decade < -3 || decade > 20) return `1e${decade}`;
  return quantity(10 ** decade, "").replace(" ", "");
}

function leader(mark, place) {
  const x = Math.max(place.box.x0, Math.min(mark.x, place.box.x1)), y = Math.max(place.box.y0 + 2, Math.min(mark.y, place.box.y1 - 2));
  const length = Math.hypot(x - mark.x, y - mark.y) || 1;
  return s("line", {
    x1: mark.x + ((x - mark.x) * mark.r) / length, y1: mark.y + ((y - mark.y) * mark.r) / length, x2: x, y2: y,
    stroke: theme.colours.quiet, "stroke-width": 0.8, "pointer-events": "none",
  });
}

/**
 * Above a line or below it, the further right the better, where no point is if there is such a place. A line shorter than
 * its name is named all the same where there is room.
 */
function flatLabel(line, width, frame, taken, points) {
  const end = Math.min(frame.x1, line.x2) - 6;
  if (end - width < frame.x0 || end < line.x1 || line.y1 < frame.y0 || line.y1 > frame.y1) return null;
  let second = null;
  for (let right = end; right === end || right - width > Math.max(frame.x0, line.x1); right -= 24) {
    for (const y of [line.y1 - 5, line.y1 + 15]) {
      const box = { x0: right - width, x1: right, y0: y - 10, y1: y + 2 };
      if (meets(box, taken)) continue;
      const option = { attributes: { x: right, y, "text-anchor": "end" }, boxes: [box] };
      if (!meets(box, points)) return option;
      second ??= option;
    }
  }
  return second;
}

function slopeLabel(line, width, frame) {
  const angle = Math.atan2(line.y2 - line.y1, line.x2 - line.x1);
  const slope = Math.tan(angle);
  let x = Math.max(frame.x0, line.x1);
  let y = line.y1 + (x - line.x1) * slope;
  if (y > frame.y1) {
    x += (frame.y1 - y) / slope;
    y = frame.y1;
  }
  const length = Math.hypot(line.x2 - x, line.y2 - y);
  const start = Math.min(0.12 * length + 8, length - width - 4);
  if (start < 4 || x > frame.x1) return null;
  const ax = x + start * Math.cos(angle) + 6 * Math.sin(angle), ay = y + start * Math.sin(angle) - 6 * Math.cos(angle);
  return {
    attributes: { x: ax, y: ay, transform: `rotate(${((angle * 180) / Math.PI).toFixed(2)},${ax.toFixed(2)},${ay.toFixed(2)})` },
    boxes: chain(ax, ay, ax + width * Math.cos(angle), ay + width * Math.sin(angle), 10).map((box) => ({ x0: box.x0 - 3, x1: box.x1 + 3, y0: box.y0 - 7, y1: box.y1 + 3 })),
  };
}

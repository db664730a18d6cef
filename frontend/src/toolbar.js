// The controls above the chart and the table. They stay; `restate` shows in them what the view says.

import { h, icon, ICONS, replace } from "./dom.js";

const TOPS = [0, 10, 20, 50, 100, 500];

function segmented(name, options, current, chosen) {
  const buttons = options.map(([value, label, title]) =>
    h("button", { type: "button", title: title ?? null, "data-value": value, on: { click: () => chosen(value) } }, label));
  const element = h("div", { class: "segmented", role: "group", "aria-label": name, "data-control": name }, buttons);
  element.restate = () => buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(options[at][0] === current())));
  return element;
}

function menu(label, title, entries) {
  const list = h("div", { class: "popover menu", hidden: true }, entries.map(([name, act]) => h("button", { "data-action": name, on: { click: () => { list.hidden = true; act(); } } }, name)));
  const button = h("button", { class: "button", title, "aria-haspopup": "menu", on: { click: () => { list.hidden = !list.hidden; } } }, ...label, icon(ICONS.down, 12));
  const element = h("div", { class: "picker" }, button, list);
  document.addEventListener("pointerdown", (event) => { if (!element.contains(event.target)) list.hidden = true; });
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || list.hidden) return;
    list.hidden = true;
    button.focus();
    event.stopPropagation();
  });
  return element;
}

function chooser(name, chosen) {
  const element = h("select", { "aria-label": name, "data-control": name, on: { change: () => chosen(element.value) } });
  element.fill = (options, current) => {
    const told = options.map(([value, label]) => `${value} ${label}`).join("\n");
    if (element.told !== told) replace(element, options.map(([value, label]) => h("option", { value, selected: String(value) === String(current) }, label)));
    element.told = told;
    element.value = String(current);
    element.classList.toggle("set", String(current) !== String(options[0][0]));
  };
  return element;
}

export function controls(app) {
  const view = () => app.view;
  const by = segmented("by", [["layer", "Layers", "Layers (l)"], ["op", "Ops", "Ops (o)"], ["kernel", "Kernels", "Kernels (k)"]], () => view().by, (value) => app.update({ by: value }));
  const apart = segmented("phases", [[false, "Together", "A point for a layer"], [true, "By phase", "A point for each phase of a layer"]], () => view().apart, (value) => app.update({ apart: value }));
  const mode = segmented("drag", [["pan", icon(ICONS.hand, 14), "Drag moves the chart"], ["box", icon(ICONS.box, 14), "Drag selects the points in a box"]], () => app.chart.mode, (value) => { app.chart.setMode(value); mode.restate(); });
  const zooms = h("div", { class: "segmented" },
    h("button", { "aria-label": "zoom in", title: "Zoom in ( + )", on: { click: () => app.chart.zoomBy(1.5) } }, icon(ICONS.plus, 14)),
    h("button", { "aria-label": "zoom out", title: "Zoom out ( - )", on: { click: () => app.chart.zoomBy(1 / 1.5) } }, icon(ICONS.minus, 14)),
    h("button", { "aria-label": "reset zoom", title: "The whole chart ( 0, or double click )", on: { click: () => app.chart.reset() } }, icon(ICONS.reset, 14)));
  const save = menu([icon(ICONS.download, 14)], "Save the chart", [["SVG", () => app.saveChart("svg")], ["PNG", () => app.saveChart("png")]]);

  const shape = segmented("shape", [["tree", "Tree", "By module path"], ["flat", "Flat", "Every layer by what it ran itself"]], () => view().shape, (value) => app.update({ shape: value }));
  const fold = h("label", { class: "check", title: "Equal layers are one line (f)" }, h("input", { type: "checkbox", on: { change: (event) => app.update({ fold: event.target.checked, sel: "" }) } }), "fold equal");
  const search = h("input", { type: "search", class: "search", placeholder: "Filter by name or class", "aria-label": "filter", title: "Filter ( / )", on: { input: () => later(() => app.update({ q: search.value })) } });
  let waiting = null;
  const later = (act) => {
    clearTimeout(waiting);
    waiting = setTimeout(act, 40);
  };
  const type = chooser("class", (value) => app.update({ types: value ? [value] : [] }));
  const bound = chooser("bound", (value) => app.update({ bounds: value ? [value] : [] }));
  const phase = chooser("phase", (value) => app.update({ phase: value }));
  const top = chooser("top", (value) => app.update({ top: Number(value) }));
  const clear = h("button", { class: "button subtle", "data-control": "clear", on: { click: () => app.clearFilters() } }, icon(ICONS.close, 12), "clear");
  const opener = h("div", { class: "segmented" },
    h("button", { title: "Fold everything out", "aria-label": "fold out all", on: { click: () => app.toggleAll(true) } }, icon(ICONS.plus, 14)),
    h("button", { title: "Fold everything in", "aria-label": "fold in all", on: { click: () => app.toggleAll(false) } }, icon(ICONS.minus, 14)));
  const copy = menu([icon(ICONS.copy, 14), "Copy"], "Copy the table", [["CSV", () => app.copyTable("csv")], ["Markdown", () => app.copyTable("markdown")]]);

  function restate() {
    const { report } = app;
    const now = view();
    for (const control of [by, apart, mode, shape]) control.restate();
    by.querySelector("[data-value=layer]").disabled = report.board.by !== "layer";
    apart.hidden = report.board.phases.length < 2 || now.by === "kernel" || Boolean(now.phase);
    const isTree = now.by === "layer" && now.shape === "tree";
    shape.hidden = now.by !== "layer";
    opener.hidden = !isTree;
    fold.hidden = now.by !== "layer" || !report.folds;
    fold.querySelector("input").checked = now.fold;
    if (document.activeElement !== search) search.value = now.q;
    const types = [...new Set(report.list("layer", now.fold).map((item) => item.type).filter(Boolean))].sort();
    type.fill([["", "any class"], ...types.map((one) => [one, one])], now.types[0] ?? "");
    type.hidden = now.by !== "layer" || types.length < 2;
    const list = now.by === "kernel" ? [] : report.list(now.by, now.fold);
    const bounds = [...new Set(list.map((item) => report.get(item.own ?? item.total, "bound")).map((one) => one ?? "unplaced"))].sort();
    bound.fill([["", "any bound"], ...bounds.map((one) => [one, one])], now.bounds.length > 1 ? "" : now.bounds[0] ?? "");
    bound.hidden = bounds.length < 2;
    phase.fill([["", "all phases"], ...report.board.phases.map((one) => [one, one])], now.phase);
    phase.hidden = report.board.phases.length < 2;
    top.fill(TOPS.map((count) => [count, count ? `top ${count}` : "all lines"]), TOPS.includes(now.top) ? now.top : 0);
    clear.hidden = !(now.q || now.types.length || now.bounds.length || now.phase || app.box);
  }

  return {
    chart: [h("h2", {}, "Roofline"), by, apart, h("div", { class: "spacer" }), mode, zooms, save],
    table: [shape, opener, fold, search, type, bound, phase, top, clear, h("div", { class: "spacer" }), copy],
    search,
    restate,
  };
}

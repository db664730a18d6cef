// The page: what is loaded, what is shown of it, and what follows from what the reader does.

import { Chart, shapeOf } from "./chart.js";
import { columnsOf } from "./columns.js";
import { clean, h, icon, ICONS, replace, s } from "./dom.js";
import { copyText, csv, download, markdown, savePng, saveSvg } from "./exporting.js";
import { percent } from "./format.js";
import { drawHeadline } from "./headline.js";
import { Report } from "./model.js";
import { Panel } from "./panel.js";
import { Picker } from "./picker.js";
import { points } from "./points.js";
import { isFiltered, rowsOf } from "./rows.js";
import { emptyState, helpDialog, unreadable } from "./states.js";
import { Table } from "./table.js";
import { setTheme, theme } from "./theme.js";
import { controls } from "./toolbar.js";
import { parsed, written } from "./view.js";
import { symbol } from "d3-shape";

const USUAL_TAG = "torchroof/report";
const same = (a, b) => a && b && a.run === b.run && a.tag === b.tag && a.step === b.step;
const keyOf = (series) => `${series.run}\n${series.tag}`;

export class App {
  constructor(source, root) {
    this.source = source;
    this.root = root;
    this.series = [];
    this.notes = [];
    this.window = null;
    this.base = null;
    this.report = null;
    this.box = null;
    this.unread = [];
    this.pages = new Map();
    const told = parsed(source.read());
    this.view = told.view;
    this.byTold = told.byTold;
    this.wanted = told;
    this.open = foldedOut();
  }

  async start() {
    this.source.theme((dark) => this.#theme(dark));
    this.#build();
    await this.refresh(true);
    this.source.watch(() => this.refresh(false));
    this.source.onView(() => this.#followAddress());
    document.addEventListener("keydown", (event) => this.#shortcut(event));
  }

  // ---- what is there

  async refresh(first) {
    if (this.refreshing) return;
    this.refreshing = true;
    try {
      const listed = await this.source.list();
      const before = this.#seriesOf(this.window);
      const wasLast = !this.window || before?.windows.at(-1)?.step === this.window.step;
      this.series = listed.series;
      this.notes = listed.notes;
      if (first) await this.#openWanted();
      else if (!this.report) await this.#openWanted();
      else if (wasLast) await this.#openLast(this.#seriesOf(this.window), true);
      this.#drawBar();
    } catch (error) {
      this.#fault(error);
    } finally {
      this.refreshing = false;
    }
  }

  #seriesOf(place) {
    return place ? this.series.find((one) => one.run === place.run && (place.tag === null || one.tag === place.tag)) ?? null : null;
  }

  #resolve(place) {
    const series = this.#seriesOf(place);
    if (!series) return null;
    const window = series.windows.find((one) => one.step === place.step) ?? series.windows.at(-1);
    return { run: series.run, tag: series.tag, step: window.step };
  }

  async #openWanted() {
    if (!this.series.length) return this.#empty();
    const place = this.#resolve(this.wanted.window);
    this.base = this.#resolve(this.wanted.base);
    if (place) return this.show(place);
    for (const series of this.series.slice(0, 5)) if (await this.#openLast(series, false)) return undefined;
    return undefined;
  }

  async #openLast(series, quiet) {
    if (!series) return false;
    const last = { run: series.run, tag: series.tag, step: series.windows.at(-1).step };
    if (quiet && same(last, this.window)) return true;
    return this.show(last);
  }

  /** Loads a window and shows it. False where it cannot be read. */
  async show(place) {
    this.window = place;
    this.#drawBar();
    const turn = (this.turn = (this.turn ?? 0) + 1);
    document.documentElement.classList.add("loading");
    try {
      const board = await this.#page(place);
      if (turn !== this.turn) return true;
      if (board.unreadable !== undefined) {
        this.unread.push({ ...place, why: board.unreadable });
        this.report = null;
        this.#drawNotes();
        replace(this.content, unreadable(place, board.unreadable));
        return false;
      }
      this.report = new Report(board);
      this.report.place = place;
      if (!this.byTold) this.view.by = board.by;
      this.box = null;
      this.#frame();
      this.render();
      this.#details(place, this.report);
      if (this.base) await this.#compare();
      return true;
    } catch (error) {
      this.#fault(error);
      return false;
    } finally {
      if (turn === this.turn) document.documentElement.classList.remove("loading");
      this.#saveView();
    }
  }

  async #page(place) {
    const key = `${place.run}\n${place.tag}\n${place.step}`;
    const at = this.#seriesOf(place)?.windows.find((one) => one.step === place.step)?.wall_time ?? 0;
    const kept = this.pages.get(key);
    if (kept?.at === at) return kept.board;
    const board = await this.source.page(place);
    this.pages.set(key, { at, board });
    if (this.pages.size > 12) this.pages.delete(this.pages.keys().next().value);
    return board;
  }

  async #details(place, report) {
    try {
      const details = await this.source.details(place);
      if (details.unreadable !== undefined) return;
      report.setDetails(details);
      if (report !== this.report) return;
      if (report.comparison) this.#markNew();
      if (this.view.by === "kernel" || (report.folds && !this.view.fold)) this.render();
      else this.#drawPanel();
      this.root.dataset.details = "ready";
    } catch (error) {
      this.#fault(error);
    }
  }

  async #compare() {
    const { report } = this;
    if (!this.base || !report) {
      report?.setComparison(null);
      this.render();
      return;
    }
    const comparison = await this.source.comparison(report.place, this.base);
    if (report !== this.report) return;
    if (comparison.unreadable !== undefined) {
      this.unread.push({ ...this.base, why: comparison.unreadable });
      this.base = null;
      report.setComparison(null);
    } else report.setComparison(comparison);
    this.#markNew();
    this.render();
    this.root.dataset.compared = this.base ? "yes" : "no";
  }

  #markNew() {
    for (const by of ["layer", "op"]) {
      for (const fold of [true, false]) {
        for (const item of this.report.list(by, fold)) item.isNew = Boolean(this.report.comparison) && !item.base?.[0];
      }
    }
  }

  // ---- what is shown

  #build() {
    this.bar = h("header", { class: "top" });
    this.noteList = h("div", { class: "source-notes" });
    this.content = h("main", { class: "content" });
    this.runPicker = new Picker({
      name: "run", empty: "none",
      choices: () => this.series.map((one) => ({ key: keyOf(one), label: this.#runName(one), note: `${one.windows.length} window${one.windows.length === 1 ? "" : "s"}` })),
      current: () => (this.window ? `${this.window.run}\n${this.window.tag}` : null),
      chosen: (key) => {
        const series = this.series.find((one) => keyOf(one) === key);
        this.#openLast(series, false);
      },
    });
    this.basePicker = new Picker({
      name: "baseline", empty: "none",
      choices: () => [{ key: "", label: "none" }, ...this.series.flatMap((one) => one.windows.slice(-50).map((window) => ({
        key: `${keyOf(one)}\n${window.step}`, label: `${this.#runName(one)}${one.windows.length > 1 ? ` step ${window.step}` : ""}`, note: same({ run: one.run, tag: one.tag, step: window.step }, this.window) ? "this window" : null,
      })))],
      current: () => (this.base ? `${this.base.run}\n${this.base.tag}\n${this.base.step}` : ""),
      chosen: (key) => this.chooseBase(key),
    });
    this.slider = h("input", { type: "range", min: "0", step: "1", "aria-label": "window", on: { input: () => this.#slide() } });
    this.stepLabel = h("output", { class: "number step-label" });
    this.previous = h("button", { class: "icon-button", "aria-label": "window before", title: "Window before ( [ )", on: { click: () => this.#move(-1) } }, icon(ICONS.left));
    this.next = h("button", { class: "icon-button", "aria-label": "window after", title: "Window after ( ] )", on: { click: () => this.#move(1) } }, icon(ICONS.right));
    this.windowBox = h("div", { class: "window-box" }, h("span", { class: "picker-name" }, "step"), this.previous, this.slider, this.stepLabel, this.next);
    replace(this.bar,
      h("div", { class: "brand" }, brandMark(), h("b", {}, "torchroof")),
      this.source.live ? [this.runPicker.element, this.windowBox, this.basePicker.element] : null,
      h("div", { class: "spacer" }),
      h("button", { class: "icon-button", "aria-label": "copy link", title: "Copy a link to this view", on: { click: () => this.#toast(copyText(this.source.address()), "link copied") } }, icon(ICONS.link)),
      this.source.live ? null : h("button", { class: "icon-button", "aria-label": "dark or light", title: "Dark or light", on: { click: () => this.#theme(!theme.dark) } }, icon(ICONS.moon)),
      h("button", { class: "icon-button", "aria-label": "help", title: "Keys and meanings ( ? )", on: { click: () => this.help() } }, icon(ICONS.help)));
    this.toast = h("div", { class: "toast", role: "status", hidden: true });
    replace(this.root, this.bar, this.noteList, this.content, this.toast);
  }

  #frame() {
    if (this.framed) return;
    this.framed = true;
    this.headline = h("section", { class: "card headline", "aria-label": "headline" });
    this.chartHost = h("div", { class: "chart" });
    this.chartBar = h("div", { class: "chart-bar" });
    this.chartLegend = h("div", { class: "chart-legend" });
    this.chartNote = h("p", { class: "chart-note quiet small" });
    this.panelHost = h("aside", { class: "card panel", "aria-label": "explanation", tabindex: "-1" });
    this.tableBar = h("div", { class: "table-bar" });
    this.tableHost = h("div", { class: "table" });
    this.tableNote = h("p", { class: "table-note quiet small" });
    this.framing = [
      this.headline,
      h("div", { class: "middle" },
        h("section", { class: "card chart-card", "aria-label": "roofline" }, this.chartBar, this.chartHost, this.chartLegend, this.chartNote),
        this.panelHost),
      h("section", { class: "card table-card", "aria-label": "table" }, this.tableBar, this.tableHost, this.tableNote),
    ];
    replace(this.content, this.framing);
    this.chart = new Chart(this.chartHost, {
      picked: (point) => (point ? this.select(point.item.key, { fromChart: true }) : this.select("")),
      boxed: (found) => this.#boxed(found),
    });
    this.panel = new Panel(this.panelHost, {
      picked: (key, by, fold) => this.select(key, { by, fold }),
      closed: () => this.select(""),
    });
    this.table = new Table(this.tableHost, {
      sorted: (id) => this.#sort(id),
      picked: (row) => this.select(row.item.key === this.view.sel ? "" : row.item.key, { keep: true }),
      toggled: (row, deep) => this.#toggle(row, deep),
    });
    this.controls = controls(this);
    replace(this.chartBar, this.controls.chart);
    replace(this.tableBar, this.controls.table);
  }

  /** Everything anew: another report, or another view of it. */
  render() {
    const { report } = this;
    if (!report) return;
    if (!this.content.contains(this.headline)) replace(this.content, this.framing);
    this.root.dataset.run = this.window.run;
    this.root.dataset.step = String(this.window.step);
    drawHeadline(this.headline, report, () => this.#selectWorst());
    this.#revealSelected();
    this.controls.restate();
    this.#drawTable();
    this.#drawChart();
    this.#drawPanel();
    this.#drawBar();
    this.#drawNotes();
  }

  /** A change of the view that touches the table and the chart, not the report. */
  update(patch) {
    Object.assign(this.view, patch);
    if ("by" in patch) {
      this.byTold = true;
      this.view.sel = patch.sel ?? "";
      this.box = null;
    }
    if ("fold" in patch || "phase" in patch || "apart" in patch) this.box = null;
    this.#saveView();
    const changed = Object.keys(patch);
    if (changed.length && changed.every((key) => key === "sort" || key === "up")) {
      this.#drawTable();
      return;
    }
    this.controls.restate();
    this.#revealSelected();
    this.#drawTable();
    if (["by", "fold", "phase", "apart", "top"].some((key) => key in patch)) this.#drawChart();
    else this.chart.restate({ shown: this.#shownInChart(), chosen: this.#chosen() });
    this.#drawPanel();
  }

  #columns() {
    const { by, fold, shape, phase } = this.view;
    const asked = [by, fold, shape, phase, this.report.kernels ? 1 : 0].join(" ");
    const kept = this.columns;
    if (kept?.asked !== asked || kept.report !== this.report || kept.comparison !== this.report.comparison) {
      const all = columnsOf(this.report, this.view);
      const found = all.filter((column) => column.name || ["time", "headroom", "bound"].includes(column.id) || this.#tells(column));
      this.columns = { asked, report: this.report, comparison: this.report.comparison, found };
    }
    return this.columns.found;
  }

  /** A column of nothing but unknown and zero is not worth its place. */
  #tells(column) {
    const list = this.view.by === "kernel" ? this.report.kernels ?? [] : this.report.list(this.view.by, this.view.fold);
    const sample = list.length > 400 ? list.filter((_, at) => at % 7 === 0) : list;
    return sample.some((item) => !["", "?", "0", "0%"].includes(column.text({ item, figures: item.total, own: false })));
  }

  #drawTable() {
    if (this.view.by === "kernel" && !this.report.kernels) {
      this.table.show({ rows: [], columns: [{ id: "label", head: "Kernel", name: true, left: true }], sort: { id: "", up: false }, empty: "Loading the kernels …" });
      return;
    }
    const columns = this.#columns();
    const wanted = columns.find((column) => column.id === this.view.sort) ?? columns.find((column) => column.id === (this.view.by === "kernel" ? "time" : "headroom")) ?? columns[0];
    const found = rowsOf(this.report, { ...this.view, box: this.box?.keys ?? null }, wanted, this.open);
    this.shown = { ...found, columns };
    this.table.isTree = this.view.by === "layer" && this.view.shape === "tree";
    const selected = this.view.by === "kernel" ? Number(this.view.sel === "" ? -1 : this.view.sel) : this.view.sel === "" ? null : this.#selKey();
    this.table.show({ rows: found.rows, columns, sort: { id: wanted.id, up: this.view.up }, selected, empty: isFiltered({ ...this.view, box: this.box }) ? "Nothing matches the filter." : "No kernel ran in the counted steps." });
    const told = [`${found.rows.length} line${found.rows.length === 1 ? "" : "s"}`];
    if (found.hidden) told.push(`${found.hidden} more are left out by the limit`);
    told.push(`figures are means per step${this.view.by === "layer" ? "; what has no layer stands in parentheses" : ""}`);
    replace(this.tableNote, told.join(" · "));
  }

  #drawChart() {
    const found = points(this.report, this.view);
    const limit = this.view.top || Infinity;
    this.points = found.points.slice(0, limit);
    this.chart.show({ report: this.report, points: this.points, chosen: this.#chosen(), shown: this.#shownInChart(), byKernel: this.view.by === "kernel" });
    this.#drawLegend();
    const told = [];
    if (!this.report.board.roofs.length) told.push("there is no roof to judge by, so only the points are drawn");
    if (found.without) told.push(`not drawn: ${found.without} with ${percent(found.withoutShare)} of step time, work or efficiency unknown`);
    if (found.points.length > this.points.length) told.push(`${found.points.length - this.points.length} smaller points are left out by the limit`);
    if (this.view.by === "kernel") told.push("a kernel has a point where its op launched no other");
    if (!found.points.length) told.push("nothing to place: no line has known FLOPs and bytes");
    replace(this.chartNote, told.join(" · "));
    this.root.dataset.points = String(this.points.length);
  }

  #drawLegend() {
    const bounds = [...new Set(this.points.map((point) => point.bound ?? "unplaced"))];
    const phases = this.report.board.all_phases.filter((phase) => this.points.some((point) => point.phase === phase));
    const measured = this.report.board.roofs;
    replace(this.chartLegend,
      bounds.map((bound) => h("button", { class: "legend-item", "aria-pressed": String(this.view.bounds.includes(bound)), title: `Only ${bound}`, "data-bound": bound, on: { click: () => this.#toggleIn("bounds", bound) } },
        h("i", { class: "dot", style: { "--colour": `var(--${CSS.escape(bound)}, var(--unplaced))` } }), bound)),
      phases.length > 1 ? h("span", { class: "divider" }) : null,
      phases.length > 1 ? phases.map((phase) => h("span", { class: "legend-item" },
        s("svg", { width: 12, height: 12, viewBox: "-7 -7 14 14", class: "shape", "aria-hidden": "true" }, s("path", { d: symbol(shapeOf(this.report, phase), 70)(), fill: "currentColor" })), phase)) : null,
      h("span", { class: "divider" }),
      measured.some((roof) => roof.origin === "measured") ? h("span", { class: "legend-item" }, h("i", { class: "line" }), "measured") : null,
      measured.some((roof) => roof.origin !== "measured") ? h("span", { class: "legend-item" }, h("i", { class: "line dashed" }), "datasheet or given") : null,
      h("span", { class: "legend-item quiet" }, "area: share of time"));
  }

  #drawPanel() {
    const { report, view } = this;
    if (!report) return;
    if (view.by === "kernel" && view.sel !== "") {
      const kernel = report.kernels?.[Number(view.sel)];
      if (kernel) return this.panel.kernel(report, kernel);
    } else if (view.sel !== "") {
      const item = this.selected();
      if (item) return this.panel.item(report, view, item);
    }
    if (this.box) return this.panel.box(report, this.box.points, () => this.#clearBox());
    return this.panel.overview(report, view);
  }

  #drawBar() {
    this.runPicker.refresh();
    this.basePicker.refresh();
    const windows = this.#seriesOf(this.window)?.windows ?? [];
    const at = windows.findIndex((one) => one.step === this.window?.step);
    this.slider.max = String(Math.max(0, windows.length - 1));
    this.slider.value = String(Math.max(0, at));
    this.slider.hidden = windows.length < 2;
    this.slider.setAttribute("aria-valuetext", `step ${this.window?.step ?? ""}`);
    this.previous.hidden = this.next.hidden = windows.length < 2;
    this.previous.disabled = at <= 0;
    this.next.disabled = at < 0 || at >= windows.length - 1;
    this.stepLabel.textContent = this.window ? (windows.length > 1 ? `${this.window.step} · ${at + 1} of ${windows.length}` : String(this.window.step)) : "–";
    this.windowBox.hidden = !windows.length;
  }

  #drawNotes() {
    const told = [...this.notes, ...this.unread.map((one) => `${one.run}, step ${one.step}: ${one.why}`)];
    replace(this.noteList, [...new Set(told)].slice(0, 5).map((note) => h("p", { class: "source-note" }, clean(note))));
  }

  #runName(series) {
    const run = series.run === "." ? "(the logdir itself)" : series.run;
    return series.tag === USUAL_TAG ? run : `${run}: ${series.tag}`;
  }

  // ---- what the reader does

  selected() {
    const { by, fold, sel } = this.view;
    if (sel === "" || by === "kernel") return null;
    const key = this.#selKey();
    return this.report.find(by, fold, key) ?? this.report.removed?.[by]?.find((item) => item.key === key) ?? null;
  }

  /** The root's path is empty, and no selection is too: in the view it is "(root)". */
  #selKey() {
    return this.view.sel === "(root)" ? "" : this.view.sel;
  }

  select(key, { by, fold, keep, fromChart } = {}) {
    const { view, report } = this;
    if (by && by !== view.by) {
      this.view.sel = key === "" ? "(root)" : String(key);
      this.update({ by, ...(fold === undefined ? {} : { fold }), sel: this.view.sel });
      this.#scrollToSelected();
      return;
    }
    if (view.by === "kernel" && fromChart) {
      this.update({ q: this.view.q === String(key) ? "" : String(key), sel: "" });
      return;
    }
    const isRoot = key === "" && (keep || by) && report.find(view.by, view.fold, "");
    const sel = isRoot && view.sel !== "(root)" ? "(root)" : String(key);
    this.update({ sel, ...(fold === undefined ? {} : { fold }) });
    if (!keep) this.#scrollToSelected();
  }

  #scrollToSelected() {
    if (this.view.sel !== "" && this.view.by !== "kernel") this.table.select(this.#selKey());
  }

  #revealSelected() {
    const item = this.selected();
    for (let up = item?.parent; up; up = up.parent) {
      this.open.opened.add(up.key);
      this.open.shut.delete(up.key);
    }
  }

  #selectWorst() {
    const named = this.report.list("layer", true).find((item) => `${item.full}${item.members.length ? ` ×${item.members.length}` : ""}` === clean(this.report.board.headline.worst_label ?? ""));
    if (named && this.view.fold) return this.select(named.key, { by: "layer" });
    const op = this.report.board.by === "op" && this.report.ops.find((item) => item.full === clean(this.report.board.headline.worst_label ?? ""));
    if (op) return this.select(op.key, { by: "op" });
    const first = this.report.list("layer", this.view.fold).filter((item) => item.flagged && item.own)
      .sort((a, b) => this.report.get(b.own, "headroom_least_ns") - this.report.get(a.own, "headroom_least_ns"))[0];
    return first ? this.select(first.key, { by: "layer" }) : undefined;
  }

  #chosen() {
    const item = this.selected();
    if (this.view.by === "kernel" || !item) return this.box?.keys ?? new Set();
    const keys = new Set();
    const add = (one) => {
      keys.add(one.key);
      one.children.forEach(add);
    };
    add(item);
    return keys;
  }

  #shownInChart() {
    if (this.view.by === "kernel") {
      const words = this.view.q.toLowerCase().split(/\s+/).filter(Boolean);
      return words.length ? new Set(this.report.kernels?.filter((kernel) => words.every((word) => kernel.search.includes(word))).map((kernel) => kernel.label)) : null;
    }
    return isFiltered({ ...this.view, box: null }) ? this.shown?.matching ?? null : null;
  }

  #sort(id) {
    this.update(this.view.sort === id ? { up: !this.view.up } : { sort: id, up: false });
  }

  #toggle(row, deep) {
    const { item } = row;
    const to = !row.open;
    const set = (one) => {
      if (to) {
        this.open.opened.add(one.key);
        this.open.shut.delete(one.key);
      } else {
        this.open.opened.delete(one.key);
        this.open.shut.add(one.key);
      }
      if (deep) one.children.forEach(set);
    };
    set(item);
    this.#drawTable();
  }

  toggleAll(to) {
    for (const item of this.report.list("layer", this.view.fold)) {
      this.open[to ? "opened" : "shut"].add(item.key);
      this.open[to ? "shut" : "opened"].delete(item.key);
    }
    this.#drawTable();
  }

  #toggleIn(list, value) {
    const now = this.view[list];
    this.update({ [list]: now.includes(value) ? now.filter((one) => one !== value) : [...now, value] });
  }

  #boxed(found) {
    this.box = found.length ? { points: found, keys: new Set(found.map((point) => point.item.key)) } : null;
    this.update({ sel: "" });
  }

  #clearBox() {
    this.box = null;
    this.update({});
  }

  clearFilters() {
    this.box = null;
    this.update({ q: "", types: [], bounds: [], phase: "" });
    this.#drawChart();
  }

  chooseBase(key) {
    const [run, tag, step] = key.split("\n");
    this.base = key ? { run, tag, step: Number(step) } : null;
    this.basePicker.refresh();
    this.#saveView();
    return this.#compare().catch((error) => this.#fault(error));
  }

  #slide() {
    const series = this.#seriesOf(this.window);
    const window = series?.windows[Number(this.slider.value)];
    if (window) this.show({ run: series.run, tag: series.tag, step: window.step });
  }

  #move(by) {
    const series = this.#seriesOf(this.window);
    const at = series?.windows.findIndex((one) => one.step === this.window.step) ?? -1;
    const window = series?.windows[at + by];
    if (window) this.show({ run: series.run, tag: series.tag, step: window.step });
  }

  copyTable(kind) {
    const { rows, columns } = this.shown;
    if (kind === "csv") {
      const heads = columns.map((column) => column.raw ?? column.id);
      const cells = rows.map((row) => columns.map((column) => (column.name && row.ownRow ? `${row.item.full} (own ops)` : (column.rawValue ?? column.value)(row))));
      return this.#toast(copyText(csv([heads, ...cells])), `${rows.length} lines copied as CSV, in base units: sums over ${this.report.board.steps} steps`);
    }
    const heads = columns.map((column) => ({ text: [column.head, column.unit].filter(Boolean).join(" "), left: column.left }));
    const indent = (row, text) => `${"  ".repeat(row.depth)}${row.ownRow ? "own ops" : text}`;
    return this.#toast(copyText(markdown(heads, rows.map((row) => columns.map((column) => (column.name ? indent(row, column.text(row)) : column.text(row)))))), `${rows.length} lines copied as Markdown`);
  }

  saveChart(kind) {
    const name = `roofline-${(this.window.run || "report").replaceAll(/[^\w.-]+/g, "-").replace(/^[-.]+/, "") || "run"}-${this.window.step}`;
    if (kind === "svg") saveSvg(this.chart.svg, name);
    else savePng(this.chart.svg, name, theme.colours.ground).catch((error) => this.#fault(error));
  }

  saveJson() {
    download("report.json", new Blob([JSON.stringify(this.report.board)], { type: "application/json" }));
  }

  help() {
    helpDialog(this.root);
  }

  async #toast(done, words) {
    const ok = await done;
    this.toast.textContent = ok ? words : "the browser did not allow it";
    this.toast.hidden = false;
    clearTimeout(this.toasting);
    this.toasting = setTimeout(() => { this.toast.hidden = true; }, 2600);
  }

  #shortcut(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const typing = event.target.closest?.("input, select, textarea, dialog");
    if (event.key === "Escape") {
      if (typing && event.target.matches("input")) event.target.blur();
      else if (this.view.sel !== "") this.select("");
      else if (this.box) this.#clearBox();
      return;
    }
    if (typing || !this.report) return;
    const keys = {
      "/": () => this.controls.search.focus(),
      "?": () => this.help(),
      "[": () => this.#move(-1),
      "]": () => this.#move(1),
      t: () => this.table.scroller.focus(),
      r: () => this.chart.canvas.focus(),
      l: () => this.update({ by: "layer" }),
      o: () => this.update({ by: "op" }),
      k: () => this.update({ by: "kernel" }),
      f: () => this.update({ fold: !this.view.fold, sel: "" }),
      c: () => this.copyTable("csv"),
      m: () => this.copyTable("markdown"),
    };
    if (event.key in keys) {
      keys[event.key]();
      event.preventDefault();
    }
  }

  #saveView() {
    if (!this.window) return;
    this.source.write(written(this.view, this.source.live ? this.window : null, this.base, USUAL_TAG));
  }

  /** The address was changed by hand, by a pasted link, or by going back. */
  #followAddress() {
    const told = parsed(this.source.read());
    if (!told.window && this.source.live) return;
    this.view = told.view;
    this.byTold = told.byTold;
    const place = this.source.live ? this.#resolve(told.window) : this.window;
    const base = this.#resolve(told.base);
    const otherBase = !same(base, this.base) && (base || this.base);
    this.base = base;
    if (place && !same(place, this.window)) this.show(place);
    else if (otherBase) this.#compare();
    else if (this.report) this.render();
  }

  #theme(dark) {
    setTheme(dark);
    if (this.report) this.render();
  }

  #empty() {
    this.report = null;
    replace(this.content, emptyState(this.notes));
    this.#drawNotes();
  }

  #fault(error) {
    this.unread.push({ run: "this page", step: "–", why: String(error?.message ?? error) });
    this.#drawNotes();
  }
}

/** Which containers are folded out: those opened, and of the rest the ones with something flagged in them. */
function foldedOut() {
  return {
    opened: new Set(),
    shut: new Set(),
    has(item) {
      if (this.opened.has(item.key)) return true;
      if (this.shut.has(item.key)) return false;
      return item.depth === 0 || item.children.some((child) => child.flagged || hasFlagged(child));
    },
  };
}

function hasFlagged(item) {
  item.flaggedWithin ??= item.children.some((child) => child.flagged || hasFlagged(child));
  return item.flaggedWithin;
}

function brandMark() {
  return s("svg", { viewBox: "0 0 24 24", width: 22, height: 22, class: "mark", "aria-hidden": "true" },
    s("path", { d: "M2.500 20.500L10.500 8h11", fill: "none", stroke: "currentColor", "stroke-width": 2.400, "stroke-linecap": "round", "stroke-linejoin": "round" }),
    s("circle", { cx: 15.500, cy: 14.500, r: 2.600, fill: "var(--accent)" }), s("circle", { cx: 9.200, cy: 17.300, r: 1.700, fill: "var(--memory)" }));
}


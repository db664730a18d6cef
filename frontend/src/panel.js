// The explanation of what is selected: what it ran, what that had to do, which limit judged it, and why it is bound so.

import { clean, h, icon, ICONS, replace, tail } from "./dom.js";
import { ceiling, digits, duration, percent, quantity, UNKNOWN } from "./format.js";

const KERNELS = 6;
const MEMBERS = 24;

export class Panel {
  /** ``picked(key)`` for a layer named in the text, ``closed()`` when the selection is to end. */
  constructor(host, { picked, closed }) {
    Object.assign(this, { host, picked, closed });
  }

  /** Without a selection: where to begin. */
  overview(report, view) {
    const by = view.by === "kernel" ? "layer" : view.by;
    const list = report.list(by, view.fold).filter((item) => item.own);
    const win = (item) => report.get(item.own, "headroom_least_ns");
    const first = [...list].sort((a, b) => Number(b.flagged) - Number(a.flagged) || win(b) - win(a) || report.get(b.own, "headroom_most_ns") - report.get(a.own, "headroom_most_ns")).slice(0, 9);
    const most = Math.max(1, ...first.map(win));
    const step = report.board.totals.step_ns;
    replace(
      this.host,
      h("div", { class: "panel-head" }, h("h2", {}, "Where to start"), h("p", { class: "quiet" }, `${by === "op" ? "Ops" : "Layers"} by what they could give back of each step. Select one for its accounting.`)),
      h("ol", { class: "starts" }, first.map((item) => h("li", {},
        h("button", { class: item.flagged ? "flagged" : "", "data-key": item.key, on: { click: () => this.picked(item.key) } },
          h("span", { class: "start-name", title: item.full }, item.flagged ? icon(ICONS.flag, 13) : null, tail(item.full), item.members.length ? h("span", { class: "times" }, `×${item.members.length}`) : null),
          h("span", { class: "start-bar" }, h("i", { style: { width: `${(100 * win(item)) / most}%`, "--colour": `var(--${report.get(item.own, "bound") ?? "unplaced"}, var(--unplaced))` } })),
          h("span", { class: "number" }, report.headroom(item.own, duration)),
          h("span", { class: "quiet small number" }, step ? percent(report.get(item.own, "headroom_least_ns") / step) : ""),
          item.why ? h("span", { class: "why quiet" }, item.why) : null)))),
      report.board.notes.length ? h("details", { class: "notes", open: report.board.notes.length < 3 }, h("summary", {}, `${report.board.notes.length} note${report.board.notes.length === 1 ? "" : "s"} on how the figures came about`),
        h("ul", {}, report.board.notes.map((note) => h("li", {}, clean(note.text))))) : null,
      leftOver(report),
    );
  }

  box(report, points, cleared) {
    replace(this.host,
      h("div", { class: "panel-head" }, h("h2", {}, `${points.length} point${points.length === 1 ? "" : "s"} in the box`), this.#close(cleared)),
      h("ol", { class: "starts" }, points.map((point) => h("li", {}, h("button", { "data-key": point.item.key, on: { click: () => this.picked(point.item.key) } },
        h("span", { class: "start-name", title: point.item.full }, tail(point.item.full), point.apart ? h("span", { class: "quiet" }, point.phase) : null),
        h("span", { class: "start-bar" }, h("i", { style: { width: `${100 * Math.min(1, point.share / (points[0].share || 1))}%`, "--colour": `var(--${point.bound ?? "unplaced"}, var(--unplaced))` } })),
        h("span", { class: "number" }, duration(report.perStep(report.get(point.figures, "kernel_ns")))),
        h("span", { class: "quiet small number" }, percent(point.share)))))));
  }

  item(report, view, item) {
    const parts = item.removed ? [] : report.parts(view.by, item);
    const figures = item.children.length ? item.total : item.own ?? item.total;
    const { entry } = item;
    replace(
      this.host,
      h("div", { class: "panel-head" },
        this.#crumbs(item, view),
        h("h2", {}, item.flagged ? h("span", { class: "flag" }, icon(ICONS.flag)) : null, item.label, item.members.length ? h("span", { class: "times" }, `×${item.members.length}`) : null, item.type ? h("span", { class: "quiet type" }, item.type) : null),
        this.#close(() => this.closed())),
      item.why ? h("p", { class: "why-line" }, item.why) : null,
      summary(report, figures, item),
      item.children.length && item.own ? h("p", { class: "quiet" }, `Of it ${duration(report.perStep(report.get(item.own, "kernel_ns")))} in its own ops.`) : null,
      facts(report, entry),
      item.members.length ? this.#members(report, item) : null,
      item.children.length ? this.#children(report, item) : null,
      parts === null ? h("p", { class: "quiet" }, "Loading the accounting …") : this.#parts(report, view, item, parts),
    );
    this.host.scrollTop = 0;
  }

  kernel(report, item) {
    replace(this.host,
      h("div", { class: "panel-head" }, h("h2", { class: "kernel-name" }, item.label), this.#close(() => this.closed())),
      definition([
        ["layer", item.rawPath === null || item.rawPath === undefined ? "none" : h("button", { class: "link", on: { click: () => this.picked(item.rawPath, "layer") } }, item.layer || "(root)")],
        ["op", item.op ?? UNKNOWN], ["phase", item.phase ?? UNKNOWN],
        ["runs", `${digits(report.perStep(item.kernels))} per step, ${duration(report.perStep(item.ns))} together`],
        ["one takes", duration(item.ns / Math.max(1, item.kernels))],
      ]),
      h("p", { class: "quiet" }, "Work belongs to ops: a kernel has a point in the chart where its op launched no other kernel."));
  }

  #close(done) {
    return h("button", { class: "icon-button close", "aria-label": "close", title: "Close (Esc)", on: { click: done } }, icon(ICONS.close));
  }

  #crumbs(item) {
    const above = [];
    for (let up = item.parent; up; up = up.parent) above.unshift(up);
    if (!above.length) return null;
    return h("nav", { class: "crumbs", "aria-label": "containers" }, above.map((one) => [h("button", { class: "link", on: { click: () => this.picked(one.key) } }, one.label), h("span", { class: "quiet" }, " › ")]));
  }

  #members(report, item) {
    const own = item.members.map((path) => [path, report.find("layer", false, path)]).filter(([, found]) => found);
    if (!own.length) return null;
    const ns = ([, found]) => report.get(found.total, "kernel_ns");
    const most = Math.max(1, ...own.map(ns));
    const least = Math.min(...own.map(ns));
    return h("section", {}, h("h3", {}, `Stands for ${own.length} equal layers`, h("span", { class: "quiet" }, ` ${duration(report.perStep(least))} to ${duration(report.perStep(most))} each`)),
      h("div", { class: "members" }, own.slice(0, 96).map((one) => h("button", { title: `${clean(one[0])}: ${duration(report.perStep(ns(one)))}`, "aria-label": clean(one[0]), on: { click: () => this.picked(one[0], "layer", false) } },
        h("i", { style: { height: `${Math.max(4, (100 * ns(one)) / most)}%` } })))),
      own.length > MEMBERS ? null : h("div", { class: "members-axis quiet small" }, h("span", {}, clean(own[0][0])), h("span", {}, clean(own.at(-1)[0]))));
  }

  #children(report, item) {
    const most = Math.max(1, ...item.children.map((child) => report.get(child.total, "kernel_ns")));
    const ordered = [...item.children].sort((a, b) => report.get(b.total, "kernel_ns") - report.get(a.total, "kernel_ns"));
    return h("section", {}, h("h3", {}, "In it"),
      h("ol", { class: "starts tight" }, ordered.slice(0, 12).map((child) => h("li", {}, h("button", { "data-key": child.key, on: { click: () => this.picked(child.key) } },
        h("span", { class: "start-name" }, child.flagged ? icon(ICONS.flag, 13) : null, h("span", {}, child.label), child.members.length ? h("span", { class: "times" }, `×${child.members.length}`) : null),
        h("span", { class: "start-bar" }, h("i", { style: { width: `${(100 * report.get(child.total, "kernel_ns")) / most}%`, "--colour": `var(--${report.get(child.total, "bound") ?? "unplaced"}, var(--unplaced))` } })),
        h("span", { class: "number" }, duration(report.perStep(report.get(child.total, "kernel_ns")))),
        h("span", {}))))),
      ordered.length > 12 ? h("p", { class: "quiet small" }, `and ${ordered.length - 12} more`) : null);
  }

  #parts(report, view, item, parts) {
    if (!parts.length) return null;
    const kernels = report.kernelsOf(view.by, item);
    const phases = [...new Set(parts.map((part) => part.phase))];
    const most = Math.max(1, ...parts.map((part) => part.kernel_ns));
    const told = new Set();
    return h("section", { class: "parts" }, phases.map((phase) => h("div", {},
      h("h3", {}, clean(phase), h("span", { class: "quiet" }, ` ${duration(report.perStep(parts.filter((part) => part.phase === phase).reduce((sum, part) => sum + part.kernel_ns, 0)))}`)),
      parts.filter((part) => part.phase === phase).map((part) => {
        const key = `${phase}\n${part.op}`;
        const mine = told.has(key) ? [] : kernels.filter((kernel) => kernel.phase === clean(phase) && kernel.op === (part.op === null ? null : clean(part.op)));
        told.add(key);
        return partCard(report, part, mine, most);
      }))));
  }
}

function summary(report, figures, item) {
  const get = (name) => report.get(figures, name);
  const step = report.board.totals.step_ns;
  const facts = [
    ["time", duration(report.perStep(get("kernel_ns"))), step ? `${percent(get("kernel_ns") / step)} of the step` : "", "kernel_ns"],
    ["efficiency", percent(get("efficiency")), "of what the roof allows", "efficiency"],
    ["headroom", report.headroom(figures, duration), step ? `${percent(get("headroom_least_ns") / step)} of the step` : "", "headroom"],
    ["bound", get("bound") ?? UNKNOWN, get("host_ns") ? `host ${duration(report.perStep(get("host_ns")))}` : "", "bound"],
  ];
  return h("div", { class: "summary" }, facts.map(([name, value, words, key]) => h("div", {},
    h("div", { class: "tile-name" }, name),
    h("div", { class: "tile-value", "data-figure": key }, key === "bound" ? h("span", { class: "chip", style: { "--colour": `var(--${get("bound") ?? "unplaced"}, var(--unplaced))` } }, value) : value),
    h("div", { class: "quiet small" }, words))));
}

function facts(report, entry) {
  const rows = [
    ["calls", entry.calls === null || entry.calls === undefined ? null : `${digits(report.perStep(entry.calls))} per step`],
    ["in", entry.inputs], ["out", entry.outputs], ["parameters", entry.parameters],
    ["also", entry.aliases?.length ? entry.aliases.join(", ") : null],
  ].filter(([, value]) => value);
  return rows.length ? definition(rows.map(([name, value]) => [name, typeof value === "string" ? clean(value) : value])) : null;
}

function definition(rows) {
  return h("dl", { class: "facts" }, rows.filter(Boolean).map(([name, ...value]) => [h("dt", {}, name), h("dd", {}, ...value)]));
}

function partCard(report, part, kernels, most) {
  const per = (value) => report.perStep(value);
  const colour = `var(--${part.bound ?? "unplaced"}, var(--unplaced))`;
  const rows = [
    ["FLOPs", h("b", { class: "number" }, quantity(per(part.flops))), h("span", { class: "formula" }, part.formula ? clean(part.formula) : "no work model")],
    part.flops_full !== null && part.flops_full !== part.flops ? ["unmasked", h("b", { class: "number" }, quantity(per(part.flops_full))), h("span", { class: "quiet" }, "with what the mask leaves out")] : null,
    ["bytes", h("b", { class: "number" }, `${quantity(per(part.bytes_read), "B")} read, ${quantity(per(part.bytes_written), "B")} written`), h("span", { class: "quiet" }, part.bytes_upper === null ? "at least" : `at least; at most ${quantity(per(part.bytes_upper), "B")}`)],
    part.intensity ? ["intensity", h("b", { class: "number" }, digits(part.intensity)), h("span", { class: "quiet" }, "FLOPs per byte")] : null,
    ...part.ceilings.map((one) => {
      const told = ceiling(one, Date.now());
      return ["ceiling", h("b", { class: "number" }, `${clean(told.what)} ${told.value}`), h("span", { class: "quiet", title: clean(one.source) }, clean(told.origin))];
    }),
    part.floor_ns === null ? null : ["floor", h("b", { class: "number" }, duration(per(part.floor_ns))), h("span", { class: "quiet" }, "the least time that the ceiling allows")],
    ["took", h("b", { class: "number" }, duration(per(part.kernel_ns))), h("span", { class: "quiet" }, [part.achieved_flops_per_s ? quantity(part.achieved_flops_per_s, "FLOP/s") : null, part.achieved_bytes_per_s ? quantity(part.achieved_bytes_per_s, "B/s") : null].filter(Boolean).join(" and "))],
    part.host_ns ? ["host", h("b", { class: "number" }, duration(per(part.host_ns))), h("span", { class: "quiet" }, "nothing ran while it was being launched")] : null,
    ...(part.judged ?? []).map((reason) => ["judged by", h("span", {}, clean(reason))]),
    ...part.unknown.map((reason) => ["unknown", h("span", {}, clean(reason))]),
    ["layer by", h("span", { class: "quiet" }, clean(part.attribution.join(", ")))],
  ];
  const names = merged(kernels);
  const shown = names.length === 1 && names[0].label === part.op ? [] : names;
  return h("details", { class: "part", open: part.kernel_ns > 0.15 * most, "data-op": part.op ?? "", "data-phase": part.phase },
    h("summary", {},
      h("span", { class: "part-op" }, part.op === null ? "(no op)" : clean(part.op)),
      part.precision ? h("span", { class: "tag" }, clean(part.precision)) : null,
      h("span", { class: "part-time number" }, duration(per(part.kernel_ns))),
      gauge(part, most, colour)),
    h("p", { class: "part-verdict" }, h("span", { class: "chip", style: { "--colour": colour } }, part.bound ?? UNKNOWN), " ", clean(part.verdict), part.because ? h("span", { class: "quiet" }, `: ${clean(part.because)}`) : null),
    definition(rows),
    shown.length ? h("table", { class: "kernels" }, h("tbody", {}, shown.slice(0, KERNELS).map((kernel) => h("tr", {},
      h("td", { class: "number" }, duration(per(kernel.ns))), h("td", { class: "number quiet" }, `${digits(per(kernel.kernels))} ×`), h("td", { class: "kernel-name", title: kernel.label }, kernel.label))),
    shown.length > KERNELS ? h("tr", {}, h("td", { class: "number" }, duration(per(shown.slice(KERNELS).reduce((sum, kernel) => sum + kernel.ns, 0)))), h("td", {}), h("td", { class: "quiet" }, `${shown.length - KERNELS} more names`)) : null)) : null);
}

/** Floor in the op's colour within the time it took: the rest is what could be won. */
function gauge(part, most, colour) {
  const width = (100 * part.kernel_ns) / most;
  const floor = part.floor_ns === null || !part.kernel_ns ? 0 : Math.min(1, part.floor_ns / part.kernel_ns);
  const said = part.floor_ns === null ? "floor unknown" : `floor ${percent(floor)} of the time`;
  return h("span", { class: "gauge", title: said, style: { "--colour": colour } },
    h("i", { class: "took", style: { width: `${width}%` } }), h("i", { class: "floor", style: { width: `${width * floor}%` } }));
}

function merged(kernels) {
  const found = new Map();
  for (const kernel of kernels) {
    const before = found.get(kernel.label) ?? { label: kernel.label, ns: 0, kernels: 0 };
    found.set(kernel.label, { ...before, ns: before.ns + kernel.ns, kernels: before.kernels + kernel.kernels });
  }
  return [...found.values()].sort((a, b) => b.ns - a.ns);
}

function leftOver(report) {
  const { unattributed, copies, headline } = report.board;
  if (!unattributed.length && !copies.length && !headline.left_over.length) return null;
  return h("details", { class: "notes" }, h("summary", {}, headline.left_over.length ? `Left over: ${duration(headline.without_work_ns)} per step, ${percent(headline.without_work)} of kernel time, without known work` : "Copies, and what no layer owns"),
    headline.left_over.length ? h("table", { class: "kernels" }, h("tbody", {}, headline.left_over.map((one) => h("tr", {}, h("td", { class: "number" }, duration(one.ns)), h("td", { class: "number quiet" }, percent(one.fraction)), h("td", {}, clean(one.name)))))) : null,
    unattributed.length || copies.length ? h("h3", {}, "In the whole file") : null,
    h("table", { class: "kernels" }, h("tbody", {},
      unattributed.map((one) => h("tr", {}, h("td", { class: "number" }, duration(one.kernel_ns)), h("td", { class: "number quiet" }, `${one.kernels} ×`), h("td", {}, clean(one.reason)))),
      copies.slice(0, 30).map((one) => h("tr", {}, h("td", { class: "number" }, duration(one.ns)), h("td", { class: "number quiet" }, `${one.calls} ×`), h("td", {}, `${clean(one.kind)}${one.bytes === null ? "" : `, ${quantity(one.bytes, "B")}`}${one.path ? ` in ${clean(one.path)}` : ""}`))))),
  );
}


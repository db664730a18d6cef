// What stands beside a point under the pointer: its accounting in a few lines.

import { h } from "./dom.js";
import { digits, duration, percent, quantity, UNKNOWN } from "./format.js";
import { colourOf } from "./theme.js";

export function tip(report, point) {
  const get = (name) => report.get(point.figures, name);
  const per = (name) => report.perStep(get(name));
  const intensity = get("intensity");
  const phases = point.apart ? [] : Object.entries(point.item.ownPhases);
  const row = (name, ...value) => h("tr", {}, h("th", {}, name), h("td", {}, ...value));
  return [
    h("div", { class: "tip-name" }, point.item.full, point.item.type ? h("span", { class: "quiet" }, ` ${point.item.type}`) : null),
    h("table", {},
      row("time", `${duration(per("kernel_ns"))} per step, ${percent(point.share)} of it`),
      phases.length > 1 ? row("phases", phases.map(([phase, figures]) => `${phase} ${duration(report.perStep(report.get(figures, "kernel_ns")))}`).join(", ")) : point.phase ? row("phase", point.phase) : null,
      row("work", `${quantity(per("flops"), "FLOP")}, ${quantity(per("bytes"), "B")}`),
      intensity ? row("intensity", `${digits(intensity)} FLOPs per byte`) : null,
      get("flops") ? row("achieved", `${quantity(get("achieved_flops_per_s"), "FLOP/s")}${point.attainable ? ` of ${quantity(point.attainable, "FLOP/s")}` : ""}`) : row("achieved", quantity(get("achieved_bytes_per_s"), "B/s")),
      row("efficiency", `${percent(point.efficiency)} of what the roof allows`, point.efficiency > 1 ? h("b", { class: "worse" }, " (over the roof: suspect the ceiling or the formula)") : null),
      row("headroom", `${report.headroom(point.figures, duration)} per step`),
      row("bound", h("i", { class: "swatch", style: { "--colour": colourOf(point.bound) } }), ` ${point.bound ?? UNKNOWN}${get("partial") ? ", part of the time has no model" : ""}`)),
  ];
}

// The top of the page: what the step is, where its time goes, how far the figures reach.

import { clean, h, icon, ICONS, replace } from "./dom.js";
import { ceiling, digits, duration, percent, quantity, signed } from "./format.js";
import { shortened } from "./labels.js";

const NAME = 160;
const LEGEND_LEAST = 0.0005;

export function drawHeadline(element, report, select) {
  const { board } = report;
  replace(
    element,
    h("div", { class: "verdict" }, verdict(report), worst(board, select), findings(board)),
    bar(report),
    h("div", { class: "tiles" }, tiles(report)),
    ceilings(board),
  );
}

function verdict(report) {
  const { headline } = report.board;
  const steps = `${headline.steps} step${headline.steps === 1 ? "" : "s"}`;
  return h(
    "div",
    { class: "verdict-line" },
    h("div", { class: "step" },
      h("div", { class: "step-time", "data-figure": "step_ns" }, headline.step_ns ? duration(headline.step_ns) : "no work"),
      h("div", { class: "quiet" }, `per step, mean of ${steps}`, changed(report))),
    h("div", { class: "verdict-words" },
      h("h1", {}, clean(headline.verdict)),
      h("p", { class: "device" }, clean(headline.device), environment(report.board)), uneven(headline)),
  );
}

function uneven(headline) {
  if (headline.uneven === null) return null;
  const [least, most] = [Math.min(...headline.steps_ns), Math.max(...headline.steps_ns)];
  return h("p", { class: "uneven" }, `Steps vary ${digits(headline.uneven, 2)}-fold, ${duration(least)} to ${duration(most)} on the host${headline.median_ns === null ? "" : `, half of them under ${duration(headline.median_ns)}`}: a busy machine, or steps of unlike work?`);
}

function changed(report) {
  const { comparison, board } = report;
  if (!comparison || !comparison.headline.step_ns) return null;
  const change = board.headline.step_ns - comparison.headline.step_ns;
  const part = change / comparison.headline.step_ns;
  const kind = change > 0 ? "worse" : change < 0 ? "better" : "same";
  return h("span", { class: `change ${kind}`, "data-figure": "step_change" }, ` ${signed(change, duration)} (${signed(part, percent)})`);
}

function environment(board) {
  const told = board.environment ?? {};
  const parts = [told.torch ? `torch ${told.torch}` : null].filter(Boolean);
  return parts.length ? h("span", { class: "quiet" }, ` · ${clean(parts.join(" · "))}`) : null;
}

function worst(board, select) {
  const { worst: said, worst_label: label } = board.headline;
  if (!said) return null;
  const rest = label && said.startsWith(label) ? said.slice(label.length) : null;
  return h("button", { class: "worst", title: "Show this layer", on: { click: select } },
    icon(ICONS.flag), h("span", {}, rest === null ? clean(said) : shortened(clean(label), NAME) + clean(rest)));
}

function findings(board) {
  if (!board.findings.length) return null;
  return h("ul", { class: "findings" }, board.findings.map((one) => h("li", {}, h("b", {}, clean(one.kind)), " ", clean(one.text))));
}

function bar(report) {
  const { headline, idle } = report.board;
  if (!headline.causes.length) return null;
  const isIdle = new Set(idle);
  const changes = report.comparison?.causes ?? {};
  const text = (cause) => `${cause.name}: ${duration(cause.ns)} per step, ${percent(cause.fraction)}${isIdle.has(cause.name) ? " (the device is idle)" : ""}`;
  return h("div", { class: "causes" },
    h("div", { class: "bar", role: "img", "aria-label": headline.causes.map(text).join("; ") },
      headline.causes.map((cause) => h("div", {
        class: `segment ${isIdle.has(cause.name) ? "idle" : ""}`,
        "data-cause": cause.name,
        title: text(cause),
        style: { "flex-grow": String(cause.fraction), "--colour": `var(--${cause.name}, var(--unplaced))` },
      }, cause.fraction > 0.07 ? h("span", {}, cause.fraction > 0.12 ? `${cause.name} ${percent(cause.fraction)}` : percent(cause.fraction)) : null))),
    h("ul", { class: "legend" },
      headline.causes.filter((cause) => cause.fraction >= LEGEND_LEAST || headline.causes.length < 5).map((cause) =>
        h("li", { "data-cause": cause.name, title: text(cause) },
          h("i", { class: `swatch ${isIdle.has(cause.name) ? "idle" : ""}`, style: { "--colour": `var(--${cause.name}, var(--unplaced))` } }),
          h("b", {}, cause.name), " ", h("span", { class: "number" }, duration(cause.ns)),
          changes[cause.name] ? h("span", { class: `change ${changes[cause.name] > 0 ? "worse" : "better"}` }, ` ${signed(changes[cause.name], duration)}`) : null))));
}

function tiles(report) {
  const { board, comparison } = report;
  const { headline, totals } = board;
  const beside = (name) => comparison?.headline[name] ?? comparison?.totals[name] ?? null;
  const total = board.total;
  const found = [
    tile("step efficiency", totals.step_efficiency, headline.step_efficiency_is_least, "of what the roof allows", beside("step_efficiency"), "Floor ÷ step time: how near the step is to the least time that the roof allows for its work."),
    tile("MFU", totals.mfu, headline.mfu_is_least, headline.mfu_of ? `of ${clean(headline.mfu_of)}` : "no peak known", beside("mfu"), "FLOPs of matrix products, convolutions and attention ÷ the device's peak, ÷ step time; without recomputation."),
    tile("HFU", totals.hfu, headline.mfu_is_least, "with recomputation", comparison?.totals.hfu ?? null, "As MFU, with the FLOPs of recomputation under checkpointing."),
    amount("to win back", report.headroom(total, duration), share(report.perStep(report.get(total, "headroom_least_ns")), headline.step_ns), "Headroom: busy time above the floor, and time the device waited for the host."),
    amount("work per step", quantity(report.perStep(totals.flops), "FLOP"), `${quantity(report.perStep(totals.bytes), "B")} moved at least`, "FLOPs of all ops with a formula; a multiply-add is 2. Bytes are each distinct element once."),
    coverage(headline),
  ];
  return found;
}

const share = (part, whole) => (part === null || !whole ? "unknown" : `${percent(part / whole)} of the step`);

function tile(name, value, isLeast, words, before, title) {
  const change = before === null || value === null ? null : value - before;
  return h("div", { class: "tile", title, "data-tile": name },
    h("div", { class: "tile-name" }, name),
    h("div", { class: "tile-value" }, value !== null && isLeast ? "≥" : "", percent(value),
      change ? h("span", { class: `change ${change > 0 ? "better" : "worse"}`, title: "percentage points" }, ` ${signed(change, (points) => percent(points).replace("%", " pts"))}`) : null),
    h("div", { class: "meter", "aria-hidden": "true" }, h("i", { style: { width: `${Math.min(100, 100 * (value ?? 0))}%` } })),
    h("div", { class: "quiet" }, words));
}

function amount(name, value, words, title) {
  return h("div", { class: "tile", title, "data-tile": name },
    h("div", { class: "tile-name" }, name), h("div", { class: "tile-value" }, value), h("div", { class: "meter none" }), h("div", { class: "quiet" }, words));
}

function coverage(headline) {
  const parts = [["owner", headline.with_owner], ["FLOPs", headline.with_flops], ["bytes", headline.with_bytes]];
  return h("div", { class: "tile coverage", title: "How much of the kernel time has a layer or is the optimizer's, has known FLOPs, and known bytes.", "data-tile": "known" },
    h("div", { class: "tile-name" }, "known of kernel time"),
    parts.map(([name, value]) => h("div", { class: "coverage-row" },
      h("span", {}, name),
      h("span", { class: "meter" }, h("i", { style: { width: `${100 * (value ?? 0)}%` } })),
      h("span", { class: "number" }, percent(value)))));
}

function ceilings(board) {
  if (!board.judging.length) {
    if (board.headline.roof_set_aside) return h("p", { class: "ceilings quiet" }, "The roof is set aside, for it is too low.");
    const any = board.devices.some((device) => device.ceilings.length);
    return h("p", { class: "ceilings quiet" }, any
      ? "The roof is known, but no kernel has known work to place under it."
      : "No roof is known for this device. Name one with --device, or give its limits with --ceilings.");
  }
  const now = Date.now();
  return h("ul", { class: "ceilings", "aria-label": "Ceilings that judged" }, board.judging.map(({ ceiling: one, beside }) => {
    const { what, value, origin } = ceiling(one, now);
    return h("li", { title: clean(one.source) }, h("i", { class: `line ${one.origin === "measured" ? "" : "dashed"}` }),
      clean(what), " ", h("b", { class: "number" }, value), clean(beside), " ", h("span", { class: "quiet" }, clean(origin)));
  }));
}

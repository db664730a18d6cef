// What stands in place of a report: nothing recorded yet, or something that cannot be read. And the help.

import { clean, h } from "./dom.js";

const PROFILE = `import torchroof

with torchroof.profile(model, logdir="runs/exp1") as prof:
    for batch in loader:
        train_step(batch)
        prof.step()`;
const REPORT = "torchroof report trace.json.gz --logdir runs/exp1";

export function emptyState() {
  return h("section", { class: "card empty" },
    h("h1", {}, "No report here yet"),
    h("p", {}, "torchroof shows which layer of your model to fix: how long each layer's kernels ran, how near that is to what the device can do, and what holds it back."),
    h("h3", {}, "Record a few training steps"), h("pre", {}, PROFILE),
    h("h3", {}, "Or read a trace of torch's profiler"), h("pre", {}, REPORT),
    h("p", { class: "quiet" }, "Then look at the folder that TensorBoard was started with: it must be the logdir, or above it. This page shows new reports as they come."));
}

export function unreadable(place, why) {
  return h("section", { class: "card empty" },
    h("h1", {}, "This window cannot be read"),
    h("p", {}, `${clean(place.run)}, step ${place.step}: ${clean(why)}.`),
    h("p", { class: "quiet" }, "The other windows and runs are not touched by it. Choose one above."));
}

const KEYS = [
  ["/", "filter the table"], ["t", "go to the table: arrows move, → ← fold out and in, Enter selects"],
  ["r", "go to the chart: arrows walk the points, Enter selects, + − zoom, 0 resets"],
  ["l  o  k", "layers, ops, kernels"], ["f", "fold equal layers, or not"], ["[  ]", "window before, after"],
  ["c  m", "copy the table as CSV, as Markdown"], ["Esc", "end the selection"],
];
const WORDS = [
  ["headroom", "busy time above the floor, and time the device waited for the host: what could be won back"],
  ["floor", "the least time the roof allows for an op: FLOPs over the ceiling of its precision, or bytes over the bandwidth that serves it"],
  ["efficiency", "floor over time. Over 100 % a formula or a ceiling is wrong, and is shown"],
  ["bound", "what limits it: compute, memory, cache, latency (kernels too short), communication, unmodelled (no formula)"],
  ["flag", "the fewest layers that hold half of all headroom, each at least 3 % of the step"],
  ["?", "unknown: never zero"], ["~", "part of the time has no model; rates cover the rest"],
];

export function helpDialog(root) {
  const list = (rows) => h("dl", { class: "help-list" }, rows.map(([term, words]) => [h("dt", {}, term), h("dd", {}, words)]));
  const dialog = h("dialog", { class: "help", "aria-label": "help" },
    h("h2", {}, "Keys"), list(KEYS), h("h2", {}, "Words"), list(WORDS),
    h("form", { method: "dialog" }, h("button", { class: "button" }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  root.append(dialog);
  dialog.showModal();
}

// The columns of the table: what each shows and how it is sorted. A column without a figure anywhere is left out.

import { shortened } from "./labels.js";
import { digits, percent, quantity, share, signed, timeScale, UNKNOWN } from "./format.js";

const SHORT = { forward: "fwd", backward: "bwd", recompute: "recomp", grad_accumulate: "accum", optimizer: "optim" };

/** {id, head, unit, title, width, value(row), text(row), left, bar(row), chip, raw} */
export function columnsOf(report, view) {
  return view.by === "kernel" ? kernelColumns(report) : lineColumns(report, view);
}

function lineColumns(report, view) {
  const { board } = report;
  const scale = timeScale(Math.max(report.get(board.total, "kernel_ns"), board.totals.step_ns / 100) / report.divisor);
  const stepNs = board.totals.step_ns || 1;
  const fig = (row, name) => report.get(row.figures, name);
  const time = (id, head, name, more = {}) => ({
    id, head, unit: scale.unit, width: 74, raw: name,
    value: (row) => fig(row, name),
    text: (row) => scale.text(report.perStep(fig(row, name))),
    ...more,
  });
  const plain = (id, head, name, text, more = {}) => ({
    id, head, width: 74, raw: name, value: (row) => fig(row, name), text: (row) => text(fig(row, name)), ...more,
  });
  const whole = (name) => Math.max(1, ...report.list(view.by, view.fold).map((item) => report.get(view.by === "layer" && view.shape === "flat" ? item.own : item.total, name) ?? 0));
  const bar = (name, colour) => {
    const most = whole(name);
    return { fraction: (row) => (fig(row, name) ?? 0) / most, colour };
  };
  const found = [
    { id: "label", head: { layer: "Layer", op: "Op" }[view.by], width: 0, left: true, name: true, value: (row) => row.item.full, text: (row) => row.item.full, raw: "label" },
  ];
  if (view.by === "layer") found.push({ id: "type", head: "Class", width: 124, left: true, value: (row) => row.item.type, text: (row) => row.item.type ?? "", raw: "type", quiet: true });
  found.push(
    time("headroom", "Headroom", "headroom_most_ns", {
      width: 96, bar: bar("headroom_least_ns", () => "flag"), raw: "headroom_least_ns", rawValue: (row) => fig(row, "headroom_least_ns"),
      text: (row) => report.headroom(row.figures, (value) => scale.text(value)),
      title: "What could be won back: busy time above the floor, and waiting for the host. ≥ where part has no floor; sorted as if all of that could be won",
    }),
    time("time", "Time", "kernel_ns", { width: 96, bar: bar("kernel_ns", (row) => fig(row, "bound") ?? "unplaced"), title: "Kernel time per step" }),
    { id: "share", head: "of step", unit: "%", width: 66, raw: "share_of_step", value: (row) => fig(row, "kernel_ns"), text: (row) => share(fig(row, "kernel_ns") / stepNs), rawValue: (row) => fig(row, "kernel_ns") / stepNs },
  );
  if (report.comparison && !view.phase) found.push(...changes(report, scale));
  if (!view.phase && board.phases.length > 1) {
    for (const phase of board.phases) found.push(phaseColumn(report, phase, scale));
  }
  found.push(
    time("host", "Host", "host_ns", { width: 66, title: "Time the device waited for the host to launch this" }),
    plain("efficiency", "Efficiency", "efficiency", percent, { width: 92, meter: (row) => fig(row, "efficiency"), mark: (row) => (fig(row, "efficiency") > 1 ? "suspect" : fig(row, "partial") ? "partial" : null), title: "Floor ÷ time: how near the roof. Over 100 % a formula or a ceiling is wrong" }),
    plain("bound", "Bound", "bound", (value) => value ?? UNKNOWN, { width: 116, left: true, chip: true, title: "What limits it" }),
    plain("rate", "FLOP/s", "achieved_flops_per_s", (value) => quantity(value), { title: "Achieved" }),
    plain("moved", "byte/s", "achieved_bytes_per_s", (value) => quantity(value), { title: "Achieved" }),
    plain("intensity", "Intensity", "intensity", (value) => (value === null ? UNKNOWN : digits(value)), { unit: "FLOPs/B", width: 80, title: "Arithmetic intensity" }),
    plain("flops", "FLOPs", "flops", (value) => quantity(report.perStep(value)), { title: "Per step; a multiply-add is 2" }),
    plain("bytes", "Bytes", "bytes", (value) => quantity(report.perStep(value)), { title: "Per step, at least" }),
    plain("kernels", "Kernels", "kernels", (value) => digits(report.perStep(value)), { title: "Per step" }),
    { id: "calls", head: "Calls", width: 60, raw: "calls", title: "Per step", value: (row) => row.item.entry.calls ?? null, text: (row) => (row.item.entry.calls === undefined || row.item.entry.calls === null ? "" : digits(report.perStep(row.item.entry.calls))) },
  );
  return found;
}

function phaseColumn(report, phase, scale) {
  const value = (row) => {
    const phases = row.own ? row.item.ownPhases : row.item.phases;
    return Object.keys(phases).length ? report.get(phases[phase], "kernel_ns") ?? 0 : null;
  };
  return {
    id: `phase:${phase}`, head: SHORT[phase] ?? phase, unit: scale.unit, width: 66, title: `Kernel time per step in ${phase}`, value,
    text: (row) => (value(row) === null ? "" : scale.text(report.perStep(value(row)))), raw: `${phase}_ns`,
  };
}

function changes(report, scale) {
  const divisor = report.comparison.divisor;
  const change = (name) => (row) => {
    if (row.item.removed) return -(report.get(row.figures, name) ?? 0) / divisor;
    const now = report.perStep(report.get(row.figures, name));
    const base = row.item.base?.[row.own ? 1 : 0] ?? (row.item.children.length ? null : row.item.base?.[0]) ?? null;
    if (!base) return now;
    const was = report.get(base, name);
    return now === null || was === null ? null : now - was / divisor;
  };
  const column = (id, head, name, title) => ({
    id, head, unit: scale.unit, width: 78, title, change: true, value: change(name),
    text: (row) => signed(change(name)(row), (value) => scale.text(value)), raw: `${name}_change_per_step`,
  });
  return [
    column("d_time", "Δ time", "kernel_ns", "Time per step, now − baseline"),
    column("d_headroom", "Δ headroom", "headroom_least_ns", "Headroom per step, now − baseline"),
  ];
}

function kernelColumns(report) {
  const most = report.kernels.reduce((sum, kernel) => Math.max(sum, kernel.ns), 0);
  const all = report.kernels.reduce((sum, kernel) => sum + kernel.ns, 0) || 1;
  const per = (value) => report.perStep(value);
  const scale = timeScale(Math.max(per(most), 1));
  const each = timeScale(report.kernels.reduce((sum, kernel) => Math.max(sum, kernel.ns / Math.max(1, kernel.kernels)), 1));
  const of = (name) => ({ value: (row) => row.item[name], text: (row) => row.item[name] ?? "", raw: name, left: true });
  return [
    { id: "label", head: "Kernel", width: 0, name: true, ...of("label") },
    { id: "layer", head: "Layer", width: 240, ...of("layer"), text: (row) => (row.item.layer === null ? "" : shortened(row.item.layer || "(root)", 34)) },
    { id: "op", head: "Op", width: 190, ...of("op"), quiet: true },
    { id: "phase", head: "Phase", width: 92, ...of("phase"), quiet: true },
    { id: "count", head: "Count", width: 70, raw: "kernels", value: (row) => row.item.kernels, text: (row) => digits(per(row.item.kernels)), title: "Per step" },
    { id: "time", head: "Time", unit: scale.unit, width: 104, raw: "kernel_ns", value: (row) => row.item.ns, text: (row) => scale.text(per(row.item.ns)), bar: { fraction: (row) => row.item.ns / (most || 1), colour: () => "memory" }, title: "Per step" },
    { id: "share", head: "of kernels", unit: "%", width: 82, raw: "share_of_kernel_time", value: (row) => row.item.ns, text: (row) => share(row.item.ns / all), rawValue: (row) => row.item.ns / all },
    { id: "each", head: "Each", unit: each.unit, width: 84, raw: "mean_ns", value: (row) => row.item.ns / Math.max(1, row.item.kernels), text: (row) => each.text(row.item.ns / Math.max(1, row.item.kernels)), title: "Mean of one" },
  ];
}

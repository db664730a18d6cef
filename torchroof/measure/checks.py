"""What of profiling works here, tried out: each check runs something whose outcome is known."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from torchroof import units
from torchroof.capture.scopes import ModuleScopes
from torchroof.capture.torch_private import activities, private_api
from torchroof.device.roof import Ceiling, Roof
from torchroof.measure.bench import Bench
from torchroof.measure.memory import main_memory_copy
from torchroof.measure.products import products

OK, DOUBT, FAULT, LEFT_OUT = "ok", "doubt", "fault", "left out"
"""How a check ended. A doubt costs accuracy and not more; a fault makes reports wrong or empty."""

OPS = 20
TOLERANCE = (0.5, 1.15)
"""A rate that is measured now lies between these parts of a ceiling that was measured before."""
TOLERANCE_OF_DATASHEET = (0.4, 1.15)
"""What is measured lies between these parts of a printed peak."""
MOST_OVERHEAD_S = 100e-6


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. ``expected`` and ``found`` are texts; ``outcome`` is one of the four above."""

    name: str
    outcome: str
    expected: str
    found: str
    advice: str = ""


def private_names() -> Iterator[Check]:
    """The private parts of torch that recording uses, and what is lost where one is missing."""
    missing = private_api().missing
    found = "; ".join(missing) if missing else "all there"
    yield Check("torch's private API", DOUBT if missing else OK, "all there", found)


def profiler(device: torch.device) -> Iterator[Check]:
    """torch's own profiler on a known number of ops: its events, their shapes, the device's kernels and their links."""
    x = torch.ones(64, 64, device=device)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        with torch.profiler.profile(activities=activities(), record_shapes=True) as prof:
            for _ in range(OPS):
                torch.mm(x, x)
            if device.type != "cpu":
                getattr(torch, device.type).synchronize(device)
        prof.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    yield from judge_events(events, on_device=device.type != "cpu")


def judge_events(events: list[dict[str, Any]], *, on_device: bool) -> Iterator[Check]:
    """What a trace of OPS products holds of what it should."""
    spans = [e for e in events if e.get("ph") == "X"]
    products = [e for e in spans if e.get("cat") == "cpu_op" and e.get("name") == "aten::mm"]
    shaped = [e for e in products if e.get("args", {}).get("Input Dims")]
    yield _counted("ops recorded", len(products), OPS, "torch's profiler does not record here")
    yield _counted("ops with shapes", len(shaped), OPS, "FLOPs and bytes will be unknown")
    if not on_device:
        return
    kernels = [e for e in spans if e.get("cat") == "kernel"]
    launches = Counter(
        e.get("args", {}).get("correlation") for e in spans if str(e.get("cat", "")).endswith(("_runtime", "_driver"))
    )
    linked = [k for k in kernels if launches[k.get("args", {}).get("correlation")]]
    advice = "the device's activity is lost: another profiler may hold it, or its counters are closed to users"
    found = "at least one each" if len(kernels) >= OPS else str(len(kernels))
    yield Check(
        "kernels recorded", OK if len(kernels) >= OPS else FAULT, f"one for each of {OPS} products", found, advice
    )
    yield _counted("kernels with their launch", len(linked), len(kernels), "kernels will be without op and layer")


def _counted(name: str, found: int, expected: int, advice: str) -> Check:
    return Check(name, OK if found == expected else FAULT, str(expected), str(found), advice)


def against_ceilings(device: torch.device, roof: Roof, busy: str | None) -> Iterator[Check]:
    """A product and a copy beside the ceilings that a run would be judged by; left out while the device is busy."""
    bench = Bench(device, time.perf_counter() + 20)
    size = 1024 if bench.on_host else 8192
    ceiling = roof.compute("float32", "vector")
    if busy is None and ceiling is not None:
        run = products(device)[0].make(bench, (size, size, size))
        rate = 2 * size**3 / bench.times(run, 20, 1.0).best
        yield judge_rate(f"product of float32, {size}x{size}", rate, ceiling, "FLOP/s")
    memory = roof.bandwidth()
    if busy is None and memory is not None:
        copy = main_memory_copy(bench, each_s=1.0)
        yield judge_rate("copy beyond the caches", copy, memory, "B/s")
    if busy is not None:
        yield Check("product and copy", LEFT_OUT, "a device that is not busy", busy)


def judge_rate(name: str, rate: float, ceiling: Ceiling, unit: str) -> Check:
    """A rate beside its ceiling: within TOLERANCE of it, or something is off."""
    share = rate / ceiling.value
    least, most = TOLERANCE if ceiling.origin == "measured" else TOLERANCE_OF_DATASHEET
    said = units.quantity(ceiling.value, unit)
    advice = ""
    if share < least:
        advice = "the device is slower than its ceiling: is it throttled, shared, or another one?"
    elif share > most:
        advice = "the ceiling is too low; run `torchroof calibrate`"
    return Check(
        name,
        FAULT if advice else OK,
        f"{least:.0%} to {most:.0%} of {said} ({ceiling.origin})",
        f"{units.quantity(rate, unit)} ({units.percent(share)})",
        advice,
    )


def beside_datasheet(roof: Roof) -> Iterator[Check]:
    """Each measured ceiling beside the printed one."""
    least, most = TOLERANCE_OF_DATASHEET
    for ceiling in roof.ceilings:
        printed = roof.sibling(ceiling, "datasheet") if ceiling.origin == "measured" else None
        if printed is None or ceiling.kind not in ("compute", "bandwidth"):
            continue
        share = ceiling.value / printed.value
        what = f"{ceiling.precision} {ceiling.pipe}" if ceiling.kind == "compute" else f"{ceiling.level}"
        outcome = OK if least <= share <= most else FAULT
        expected = f"{least:.0%} to {most:.0%} of the datasheet's"
        advice = "" if outcome == OK else "calibrate again when nothing else runs; is the power or clock limited?"
        yield Check(f"calibration of {what}", outcome, expected, units.percent(share), advice)


def hooks(device: torch.device) -> Iterator[Check]:
    """What our hooks add to a layer call while torch's profiler records."""
    layers = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(20)]).to(device)
    bench = Bench(device, time.perf_counter() + 4)
    x = bench.normal(64, 64)
    added = []
    with torch.no_grad(), torch.profiler.profile(activities=activities()):
        for _ in range(3):  # in turns, so that other work on the machine falls on both
            plain = bench.times(lambda: layers(x), 100, 0.2).best
            scopes = ModuleScopes({"": layers})
            scopes.install()
            try:
                added.append(bench.times(lambda: layers(x), 100, 0.2).best - plain)
            finally:
                scopes.remove()
    each = min(added) / (len(layers) + 1)
    advice = "" if each < MOST_OVERHEAD_S else "host-bound models will look slower than they are"
    yield Check(
        "recording a layer call",
        FAULT if advice else OK,
        f"less than {units.duration(MOST_OVERHEAD_S * 1e9)} more",
        units.duration(each * 1e9) if each > 0 else "too little to see beside other work",
        advice,
    )

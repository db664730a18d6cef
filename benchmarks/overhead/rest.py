"""What recording costs beside a step: a module call, a loop after its window, leaving the block, memory over windows.

    python benchmarks/overhead/rest.py [--rounds 7] [--windows 300]

Thread CPU time with one torch thread, medians of the rounds, which take turns.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from loops import LOOPS
from torch import nn
from torch.profiler import ProfilerActivity

import torchroof
from torchroof.workloads import networks

CALLS = 20_000


class Pass(nn.Module):  # type: ignore[misc]
    """A module that does nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def _profile(model: nn.Module, **options: Any) -> torchroof.profile:
    return torchroof.profile(model, measure=False, max_events=10**9, **options)


def _bare(**options: Any) -> torch.profiler.profile:
    return torch.profiler.profile(activities=[ProfilerActivity.CPU], record_shapes=True, **options)


def module_call(rounds: int) -> dict[str, float]:
    """µs of a module call in a tight loop, recorded by us less recorded by torch.profiler alone."""
    model, x = Pass(), torch.ones(4, 16)

    def call() -> float:
        begun = time.thread_time()
        for _ in range(CALLS):
            model(x)
        return (time.thread_time() - begun) / CALLS * 1e6

    bare, ours = [], []
    for _ in range(rounds):
        with _bare():
            bare.append(call())
        with _profile(model):
            ours.append(call())
    return {"torch.profiler": median(bare), "torchroof": median(ours), "difference": median(ours) - median(bare)}


def after_the_window(rounds: int, steps: int = 30) -> dict[str, float]:
    """ms of a step of the tiny loop: never profiled, and after its schedule has ended."""
    model, step = LOOPS["tiny"]()

    def steps_ms(end: Callable[[], None]) -> list[float]:
        found = []
        for _ in range(steps):
            begun = time.thread_time()
            step()
            end()
            found.append((time.thread_time() - begun) * 1e3)
        return found

    never, after = [], []
    for _ in range(rounds):
        never += steps_ms(lambda: None)
        with _profile(model, schedule=torchroof.schedule(0, 0, 1)) as prof:
            step()
            prof.step()
            after += steps_ms(prof.step)
    return {"never profiled": median(never), "after": median(after), "ratio": median(after) / median(never)}


def leaving(rounds: int) -> dict[str, float]:
    """Wall seconds to leave the block after 3 recorded steps of ResNet-50's size, and to make its report."""
    workload = networks.build("resnet", networks.sizes("resnet", blocks=6, batch_size=1))  # 52 convolutions
    model, step = workload.model, workload.step
    leave, report, events = [], [], 0
    for _ in range(rounds + 1):
        prof = _profile(model, schedule=torchroof.schedule(0, 1, 3))
        prof.__enter__()
        for number in range(4):
            step()
            if number < 3:
                prof.step()
        begun = time.perf_counter()
        prof.__exit__(None, None, None)
        left = time.perf_counter()
        events = prof.report.data.totals.kernels or 0
        leave.append(left - begun)
        report.append(time.perf_counter() - left)
    return {"leave": median(leave[1:]), "report": median(report[1:]), "kernels": events}


def memory(windows: int) -> dict[str, float]:
    """MB of resident memory that many windows add after a third of them; each has one step of the tiny loop."""
    model, step = LOOPS["tiny"]()

    def added(end: Callable[[], None]) -> float:
        early = 0.0
        for number in range(windows):
            step()
            end()
            if number == windows // 3:
                early = _resident_mb()
        return _resident_mb() - early

    with (
        warnings.catch_warnings(action="ignore"),
        _bare(schedule=torch.profiler.schedule(wait=0, warmup=0, active=1, repeat=0)) as prof,
    ):
        bare = added(prof.step)
    with _profile(model, schedule=torchroof.schedule(0, 0, 1, repeat=0)) as ours:
        return {"windows": windows, "torch.profiler": bare, "torchroof": added(ours.step)}


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--windows", type=int, default=300)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    torch.set_num_threads(1)
    results = {
        "module call, µs": module_call(args.rounds),
        "after the window, ms a step": after_the_window(args.rounds),
        "leaving the block, s": leaving(args.rounds),
        "memory added, MB": memory(args.windows),
    }
    for name, found in results.items():
        print(f"{name:30} " + "  ".join(f"{key} {value:.4g}" for key, value in found.items()))
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

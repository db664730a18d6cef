"""What recording costs a step: each way of profiling beside bare torch.profiler on the same loop, in one process.

    python benchmarks/overhead/steps.py [--rounds 9] [--steps 12] [--loop tiny] [--way torchroof]

Thread CPU time with one torch thread; a round goes through all ways in turn, so that a slow minute hits each.
Of each round come the ratios to bare torch.profiler with record_shapes of the steps' 10th percentile and of
their median, and of the median of wall time; printed are the medians of these ratios over the rounds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from statistics import median, quantiles

import torch
from loops import LOOPS, Loop
from torch.profiler import ProfilerActivity
from torch.utils.flop_counter import FlopCounterMode

import torchroof

Timing = tuple[float, float]
"""CPU seconds of the thread and wall seconds of one step."""
WARM = 2


def bare(**options: bool) -> AbstractContextManager[object]:
    return torch.profiler.profile(activities=[ProfilerActivity.CPU], **options)


@contextmanager
def ours(loop: Loop) -> Iterator[torchroof.profile]:
    schedule = torchroof.schedule(wait=0, warmup=0, active=10_000)
    with torchroof.profile(loop[0], schedule=schedule, measure=False, max_events=10**9) as prof:
        yield prof


@contextmanager
def deepspeed(loop: Loop) -> Iterator[None]:
    from deepspeed.profiling.flops_profiler import FlopsProfiler

    profiler = FlopsProfiler(loop[0])
    profiler.start_profile()
    try:
        yield
    finally:
        profiler.end_profile()


WAYS: dict[str, Callable[[Loop], AbstractContextManager[object]]] = {
    "torch.profiler, shapes": lambda loop: bare(record_shapes=True),
    "torchroof": ours,
    "not profiled": lambda loop: nullcontext(),
    "torch.profiler, shapes, stack": lambda loop: bare(record_shapes=True, with_stack=True),
    "FlopCounterMode": lambda loop: FlopCounterMode(display=False),
    "DeepSpeed flops profiler": deepspeed,
}
BASE = "torch.profiler, shapes"


def timed(loop: Loop, way: str, steps: int) -> list[Timing]:
    """Times of single steps, those of the way's own beginning and end apart."""
    found = []
    with WAYS[way](loop) as prof:
        end = prof.step if isinstance(prof, torchroof.profile) else _nothing
        for number in range(WARM + steps):
            cpu, wall = time.thread_time(), time.perf_counter()
            loop[1]()
            end()
            if number >= WARM:
                found.append((time.thread_time() - cpu, time.perf_counter() - wall))
    return found


def _nothing() -> None:
    pass


def _installed(way: str) -> bool:
    if way != "DeepSpeed flops profiler":
        return True
    try:
        import deepspeed  # noqa: F401
    except ImportError:
        return False
    return True


def measure(name: str, ways: list[str], rounds: int, steps: int) -> dict[str, dict[str, float]]:
    """Ratios to BASE of one loop, by way."""
    loop = LOOPS[name]()
    ratios: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for turn in range(rounds + 1):
        order = ways[turn % len(ways) :] + ways[: turn % len(ways)]
        times = {way: timed(loop, way, steps) for way in order}
        if turn:  # the first round warms up
            for way in ways:
                ratios[way].append(_against(times[way], times[BASE]))
    return {way: {key: median(r[key] for r in found) for key in found[0]} for way, found in ratios.items()}


def _against(found: list[Timing], base: list[Timing]) -> dict[str, float]:
    (cpu, wall), (cpu_base, wall_base) = zip(*found, strict=True), zip(*base, strict=True)
    return {
        "cpu_p10": _p10(cpu) / _p10(cpu_base),
        "cpu_median": median(cpu) / median(cpu_base),
        "wall_median": median(wall) / median(wall_base),
        "cpu_ms_median": median(cpu) * 1e3,
    }


def _p10(values: tuple[float, ...]) -> float:
    return quantiles(values, n=10)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--loop", choices=LOOPS, action="append")
    parser.add_argument("--way", choices=WAYS, action="append", help="leave all others out, save the base")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    torch.set_num_threads(1)
    ways = [way for way in WAYS if way == BASE or (way in args.way if args.way else _installed(way))]
    results = {}
    for name in args.loop or LOOPS:
        results[name] = measure(name, ways, args.rounds, args.steps)
        print(f"{name}: {LOOPS[name].__doc__}")
        for way, r in results[name].items():
            print(
                f"  {way:30} CPU p10 {r['cpu_p10']:6.3f}  median {r['cpu_median']:6.3f}"
                f"  wall {r['wall_median']:6.3f}  ({r['cpu_ms_median']:.2f} ms a step)"
            )
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()

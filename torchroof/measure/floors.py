"""The least times: of a kernel on the device, and of an op on the host."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch

from torchroof.device.roof import Ceiling
from torchroof.measure.bench import Bench, Run, Timing, measured

_GRAPH_KERNELS = 200
_BATCH_OPS = 200


def floors(bench: Bench, seconds: float) -> Iterator[Ceiling]:
    """The launch floor and the host's floor. On a host both are the time of an op on one element."""
    one, out = (torch.full((1,), 1.5, dtype=torch.float32, device=bench.device) for _ in range(2))

    def run() -> None:
        torch.add(one, one, out=out)

    if bench.on_host:
        timing = bench.times(lambda: torch.add(one, one), 3000, seconds)
        source = f"torch add of one element, median of {len(timing.seconds)}"
        yield measured("launch", timing.median, "s", source)
        yield measured("host", timing.median, "s", source)
        return
    yield _launch(bench, run, seconds / 2)
    timing = _host_times(bench, run, seconds / 2)
    source = f"torch add of one element without waiting, {_BATCH_OPS} in a row, median of {len(timing.seconds)}"
    yield measured("host", timing.median, "s", source)


def _launch(bench: Bench, run: Run, seconds: float) -> Ceiling:
    """Time per kernel of a graph of tiny ones, in which no host takes part; without graphs in a plain row."""
    try:
        replay, how = _graph(run), "in a graph"
    except (RuntimeError, AttributeError):
        replay, how = (lambda: [run() for _ in range(_GRAPH_KERNELS)]), "in a row"
    timing = bench.times(replay, 50, seconds)
    source = f"{_GRAPH_KERNELS} kernels of one element {how}, median of {len(timing.seconds)}"
    return measured("launch", timing.median / _GRAPH_KERNELS, "s", source)


def _graph(run: Run) -> Run:
    graph: Any = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(_GRAPH_KERNELS):
            run()
    replay: Run = graph.replay
    return replay


def _host_times(bench: Bench, run: Run, seconds: float) -> Timing:
    """Host seconds per op; the device's queue is empty at the start of each row and never full."""
    stop = min(time.perf_counter() + seconds, bench.end)
    taken: list[float] = []
    while not taken or time.perf_counter() < stop:
        bench.wait()
        start = time.perf_counter()
        for _ in range(_BATCH_OPS):
            run()
        taken.append((time.perf_counter() - start) / _BATCH_OPS)
    bench.wait()
    return Timing(tuple(taken))

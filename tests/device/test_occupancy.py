"""How many blocks a multiprocessor holds: by hand, and by what the profiler's own estimate implies."""

from __future__ import annotations

import gzip
import json
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torchroof.device.occupancy import Multiprocessor

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
A100 = {
    "computeMajor": 8,
    "computeMinor": 0,
    "warpSize": 32,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 167936,
}


def resident(properties: dict[str, Any], threads: int, registers: int, shared: int) -> int:
    one = Multiprocessor.of(properties)
    assert one is not None
    (found,) = one.resident(*(np.array([value], dtype=np.int64) for value in (threads, registers, shared)))
    return int(found)


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "expected"),
    [
        (32, 16, 0, 32),  # the limit of blocks
        (1024, 32, 0, 2),  # 64 warps
        (33, 16, 0, 32),  # two warps each
        (256, 47, 0, 5),  # 47 x 32 registers are handed out as 1,536: 42 warps, 40 on four schedulers
        (128, 252, 67584, 2),  # 68,608 bytes with the system's share
        (1024, 255, 0, 0),  # cannot run
        (0, 16, 0, 0),
        (128, -1, 0, 0),
        (128, 16, -1, 0),
        (2**62, 2**62, 2**62, 0),
    ],
)
def test_blocks_at_a_time(threads: int, registers: int, shared: int, expected: int) -> None:
    assert resident(A100, threads, registers, shared) == expected


def test_the_system_takes_no_shared_memory_before_ampere() -> None:
    volta = A100 | {"computeMajor": 7, "sharedMemPerMultiprocessor": 98304}
    assert resident(volta, 128, 16, 49152) == 2 and resident(A100, 128, 16, 83968) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"warpSize": 64},
        {"computeMajor": 47},
        {"sharedMemPerMultiprocessor": 10**30},
        {"regsPerMultiprocessor": None},
        {"regsPerBlock": 0},
        {"warpSize": 32.5},
    ],
)
def test_what_the_limits_are_not_known_of_is_not_guessed_at(other: dict[str, Any]) -> None:
    assert Multiprocessor.of(A100 | other) is None


@pytest.mark.shared
@pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not here")
def test_the_profilers_estimate_agrees_wherever_it_made_one() -> None:
    """Kineto's "est. achieved occupancy %": the lesser of what fits and of the grid per multiprocessor, in threads."""
    agreed = 0
    for path in sorted(TRACES.glob("*.json.gz")):
        with gzip.open(path, "rb") as file:
            text = file.read()
        if b"deviceProperties" not in text or b"est. achieved occupancy %" not in text:
            continue
        trace = json.loads(text)
        devices = {told.get("id"): told for told in trace["deviceProperties"]}
        for event in trace["traceEvents"]:
            args = event.get("args", {}) if isinstance(event, dict) else {}
            told, estimate = devices.get(args.get("device")), args.get("est. achieved occupancy %")
            if told is None or not estimate or Multiprocessor.of(told) is None:
                continue
            threads = prod(args["block"])
            fits = resident(told, threads, args["registers per thread"], args["shared memory"])
            held = min(fits, prod(args["grid"]) / told["numSms"])
            assert 100 * held * threads / told["maxThreadsPerMultiprocessor"] == pytest.approx(estimate, abs=1)
            agreed += 1
    assert agreed > 5_000

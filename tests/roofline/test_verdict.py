"""Bounds, words and flags."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchroof.roofline.verdict import bound, flagged, words

EVERYTHING: dict[str, Any] = {
    "modelled": False,
    "communication": True,
    "mean_kernel_ns": 2_000,
    "launch_ns": 1_500,
    "side": "memory",
    "level": "l2",
}


def test_the_first_that_holds_is_the_bound() -> None:
    facts = dict(EVERYTHING)
    order = []
    for undo in (
        {"modelled": True},
        {"communication": False},
        {"mean_kernel_ns": 9_000},
        {"level": "dram"},
        {"side": "compute"},
        {"side": None},
    ):
        order.append(bound(**facts))
        facts |= undo
    assert [*order, bound(**facts)] == ["unmodelled", "communication", "latency", "cache", "memory", "compute", None]


@pytest.mark.parametrize(("mean", "expected"), [(2_999, "latency"), (3_000, "compute"), (None, "compute")])
def test_a_kernel_is_short_under_twice_the_launch_floor(mean: float | None, expected: str) -> None:
    assert bound(modelled=True, side="compute", mean_kernel_ns=mean, launch_ns=1_500) == expected


def test_without_a_launch_floor_no_kernel_is_short() -> None:
    assert bound(modelled=True, side="compute", mean_kernel_ns=1) == "compute"


@pytest.mark.parametrize(
    ("blocks", "efficiency", "expected"),
    [(107, 0.49, "latency"), (107, 0.5, "memory"), (108, 0.1, "memory"), (None, 0.1, "memory"), (1, None, "memory")],
)
def test_too_few_blocks_and_slow_is_latency(blocks: int | None, efficiency: float | None, expected: str) -> None:
    found = bound(modelled=True, side="memory", level="dram", blocks=blocks, multiprocessors=108, efficiency=efficiency)
    assert found == expected


def test_a_cache_bounds_only_what_lies_on_the_memory_side() -> None:
    assert bound(modelled=True, side="compute", level="l2") == "compute"


@pytest.mark.parametrize(
    ("limit", "efficiency", "expected"),
    [
        ("compute", 0.60, "compute-bound (60% of its roof)"),
        ("compute", 0.594, "under its compute roof (59%)"),
        ("compute", 0.25, "under its compute roof (25%)"),
        ("compute", 0.249, "far under its compute roof (25%)"),
        ("compute", 0.08, "far under its compute roof (8.0%)"),
        ("memory", 0.95, "memory-bound (95% of its roof)"),
        ("memory", 0.002, "far under its memory roof (0.2%)"),
        ("cache", 0.7, "cache-bound (70% of its roof)"),
        ("compute", 1.0, "compute-bound (100% of its roof)"),
        ("compute", 1.34, "a suspicion: 134% of its roof (stale ceiling, cache, or wrong model)"),
        ("latency", 1.004, "a suspicion: 100.4% of its roof (stale ceiling, cache, or wrong model)"),
        ("latency", 0.9, "bound by latency: kernels too short or too small to fill the device"),
        ("unmodelled", None, "no work model"),
        ("communication", None, "communication"),
        (None, None, "no roof to judge it by"),
        ("memory", None, "on the memory side, efficiency unknown"),
    ],
)
def test_words(limit: str | None, efficiency: float | None, expected: str) -> None:
    assert words(limit, efficiency) == expected


def test_words_tell_of_waiting_for_the_host_first() -> None:
    assert words("compute", 0.7, host_ns=11, busy_ns=10).startswith("waits for the host longer than it runs; comp")
    assert words("compute", 0.7, host_ns=10, busy_ns=10).startswith("compute-bound")


def test_flagged_by_hand() -> None:
    # Total 100, half is 50: 40 alone does not hold it, 40 + 30 does.
    assert flagged([10, 40, 20, 30], 1000) == {1, 3}
    # 60 holds it alone.
    assert flagged([60, 30, 10], 1000) == {0}
    # The second, 2.9 % of the step, is too small to name.
    assert flagged([29, 45, 17], 1000) == {1}
    assert flagged([30, 45, 17], 1000) == {0, 1}
    assert flagged([30, 31, 31], 1000) == {1, 2}
    assert flagged([20, 20], 1000) == set()
    assert flagged([], 1000) == set() == flagged([0, 0], 0)


@given(st.lists(st.integers(0, 1000), max_size=7))
def test_the_flagged_are_the_fewest_that_hold_half(headrooms: list[int]) -> None:
    chosen = flagged(headrooms, 0)
    total = sum(headrooms)
    assert sum(headrooms[i] for i in chosen) * 2 >= total
    for size in range(len(chosen)):
        assert all(sum(few) * 2 < total for few in combinations(headrooms, size))


@given(st.lists(st.integers(0, 1000), max_size=7), st.integers(0, 5000))
def test_nothing_under_three_per_cent_is_flagged(headrooms: list[int], step_ns: int) -> None:
    assert all(100 * headrooms[i] >= 3 * step_ns for i in flagged(headrooms, step_ns))

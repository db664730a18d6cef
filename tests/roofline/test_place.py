"""Placement under a roof: laws, and examples by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchroof.device.catalog import find
from torchroof.device.roof import Ceiling, Roof
from torchroof.roofline.place import attainable, pipe_of, place, ridge
from torchroof.work.algebra import Work


def compute(value: float, precision: str = "float32", pipe: str = "vector") -> Ceiling:
    return Ceiling(
        kind="compute", precision=precision, pipe=pipe, value=value, unit="FLOP/s", origin="given", source="test"
    )


def bandwidth(value: float, level: str = "dram", capacity: int | None = None) -> Ceiling:
    return Ceiling(
        kind="bandwidth",
        level=level,
        value=value,
        unit="byte/s",
        origin="given",
        source="test",
        capacity_bytes=capacity,
    )


def work(flops: int | None, moved: int | None) -> Work:
    return Work(flops, moved, None if moved is None else 0)


CARD = Roof("card", (compute(1e12), bandwidth(1e11)))  # ridge point 10 FLOPs per byte

counts = st.integers(0, 10**15)
rates = st.floats(1e9, 1e15)


# -- laws ---------------------------------------------------------------------------------------------------


@given(st.floats(0, 1e6), st.floats(0, 1e6), rates, rates)
def test_the_roof_never_falls_with_intensity(a: float, b: float, peak: float, slope: float) -> None:
    low, high = sorted((a, b))
    c, m = compute(peak), bandwidth(slope)
    assert attainable(low, c, m) <= attainable(high, c, m) <= peak


@given(rates, rates)
def test_slope_and_flat_meet_at_the_ridge(peak: float, slope: float) -> None:
    c, m = compute(peak), bandwidth(slope)
    assert attainable(ridge(c, m), c, m) == pytest.approx(peak)
    assert attainable(ridge(c, m) / 2, c, m) == pytest.approx(peak / 2)
    assert attainable(ridge(c, m) * 2, c, m) == peak


@given(counts, counts, rates, rates)
def test_the_floor_is_the_larger_of_its_parts(flops: int, moved: int, peak: float, slope: float) -> None:
    placed = place(work(flops, moved), "matmul", "float32", Roof("x", (compute(peak), bandwidth(slope))))
    assert placed.memory_ns is not None and placed.compute_ns is not None
    assert placed.floor_ns == max(placed.memory_ns, placed.compute_ns)
    assert placed.side == ("compute" if placed.compute_ns > placed.memory_ns else "memory")


@given(counts, st.integers(1, 10**15), rates, rates)
def test_flops_over_the_floor_are_what_is_attainable(flops: int, moved: int, peak: float, slope: float) -> None:
    c, m = compute(peak), bandwidth(slope)
    placed = place(work(flops, moved), None, "float32", Roof("x", (c, m)))
    assert placed.floor_ns is not None
    assert flops == pytest.approx(attainable(flops / moved, c, m) * placed.floor_ns / 1e9, rel=1e-9, abs=1e-6)


@given(st.lists(st.tuples(counts, counts), min_size=1, max_size=5), st.data())
def test_fusing_never_raises_the_floor(parts: list[tuple[int, int]], data: st.DataObject) -> None:
    # A fused kernel does the same FLOPs and moves at most the same bytes, on one memory level.
    moved = data.draw(st.integers(0, sum(b for _, b in parts)))
    fused = place(work(sum(f for f, _ in parts), moved), None, "float32", CARD)
    apart = [place(work(f, b), None, "float32", CARD).floor_ns or 0.0 for f, b in parts]
    assert fused.floor_ns is not None
    assert fused.floor_ns <= sum(apart) * (1 + 1e-12)


@given(counts, counts)
def test_half_the_item_size_halves_only_the_memory_time(flops: int, moved: int) -> None:
    wide, narrow = (place(work(flops, m), None, "float32", CARD) for m in (2 * moved, moved))
    assert wide.memory_ns == pytest.approx(2 * (narrow.memory_ns or 0))
    assert wide.compute_ns == narrow.compute_ns


# -- by hand ------------------------------------------------------------------------------------------------


def test_a_product_on_the_a6000() -> None:
    # 512x256 by 256x512: 2·512·256·512 FLOPs; (512·256 + 256·512 + 512·512)·4 = 2,097,152 bytes.
    # 134,217,728 / 38.7e12 = 3468.2 ns of vector float32; 2,097,152 / 768e9 = 2730.7 ns.
    placed = place(Work(134_217_728, 1_048_576, 1_048_576), "matmul", "float32", find("RTX A6000").roof())
    assert placed.compute_ns == pytest.approx(3468.16, abs=0.01)
    assert placed.memory_ns == pytest.approx(2730.67, abs=0.01)
    assert placed.floor_ns == placed.compute_ns and placed.side == "compute"
    assert placed.ceiling is not None and (placed.ceiling.precision, placed.ceiling.pipe) == ("float32", "vector")
    assert placed.level == "dram" and placed.reason is None


def test_a_small_product_on_the_t4() -> None:
    # 524,288 / 8.1e12 = 64.73 ns; 49,152 / 320e9 = 153.6 ns.
    placed = place(Work(524_288, 32_768, 16_384), "matmul", "float32", find("T4").roof())
    assert placed.compute_ns == pytest.approx(64.73, abs=0.01)
    assert placed.floor_ns == placed.memory_ns == pytest.approx(153.6)
    assert placed.side == "memory" and placed.ceiling is placed.bandwidth


def test_half_precision_products_use_the_matrix_pipe_and_pointwise_the_vector_pipe() -> None:
    roof = find("H100 SXM").roof()
    product = place(work(10**12, 1), "matmul", "bfloat16", roof)
    pointwise = place(work(10**12, 1), "pointwise", "bfloat16", roof)
    assert product.compute is not None and product.compute.value == 989.4e12
    assert pointwise.compute is not None and pointwise.compute.value == 66.9e12
    assert [pipe_of(f) for f in ("matmul", "convolution", "attention")] == ["matrix"] * 3
    assert [pipe_of(f) for f in ("pointwise", "norm", "softmax", None)] == ["vector"] * 4


def test_work_without_flops_is_a_normal_point() -> None:
    placed = place(work(0, 1000), "movement", None, CARD)
    # 1000 B / 1e11 B/s = 10 ns
    assert (placed.floor_ns, placed.compute_ns, placed.side) == (pytest.approx(10), 0.0, "memory")
    assert placed.ceiling is placed.bandwidth and placed.reason is None


def test_no_work_at_all_takes_no_time() -> None:
    assert place(Work.zero(), None, "float32", CARD).floor_ns == 0.0


def test_unknown_flops_leave_the_lower_bound_of_the_bytes() -> None:
    placed = place(work(None, 1000), "pointwise", "float32", CARD)
    assert (placed.floor_ns, placed.side, placed.compute_ns) == (pytest.approx(10), "memory", None)
    assert placed.reason is not None and "lower bound" in placed.reason


def test_unknown_bytes_leave_the_lower_bound_of_the_flops() -> None:
    placed = place(work(10_000, None), "matmul", "float32", CARD)
    # 10,000 / 1e12 = 10 ns
    assert (placed.floor_ns, placed.side, placed.memory_ns) == (pytest.approx(10), "compute", None)
    assert placed.reason is not None and "lower bound" in placed.reason


@pytest.mark.parametrize(
    ("flops", "moved", "precision", "roof", "reason"),
    [
        (1, 1, "float32", None, "there is no roof to judge it by"),
        (None, None, "float32", CARD, "neither FLOPs nor bytes are known"),
        (0, None, "float32", CARD, "there are no FLOPs and the bytes are unknown"),
        (1, 1, None, CARD, "the precision is unknown, so no compute ceiling applies"),
        (1, 1, "float64", CARD, "card has no float64 matrix ceiling"),
        (1, None, "float64", CARD, "card has no float64 matrix ceiling"),
        (1, 1, "float32", Roof("x", (compute(1.0),)), "the roof has no memory bandwidth"),
    ],
)
def test_no_floor_is_given_without_a_reason(
    flops: int | None, moved: int | None, precision: str | None, roof: Roof | None, reason: str
) -> None:
    placed = place(work(flops, moved), "matmul", precision, roof)
    assert (placed.floor_ns, placed.side, placed.ceiling) == (None, None, None)
    assert placed.reason == reason


def test_a_missing_compute_ceiling_still_tells_the_memory_time() -> None:
    assert place(work(1, 1000), "matmul", "float64", CARD).memory_ns == pytest.approx(10)


def test_a_working_set_that_fits_a_cache_is_judged_by_it() -> None:
    roof = Roof("cpu", (compute(1e12), bandwidth(1e10), bandwidth(1e11, "l2", 1000)))
    inside, outside = (place(work(0, 1000), None, None, roof, reach_bytes=reach) for reach in (1000, 1001))
    assert (inside.level, inside.floor_ns) == ("l2", pytest.approx(10))
    assert (outside.level, outside.floor_ns) == ("dram", pytest.approx(100))

"""Which ceiling answers which question."""

from __future__ import annotations

import pytest

from torchroof.device.roof import Ceiling, Roof


def compute(precision: str, pipe: str, value: float, origin: str = "datasheet") -> Ceiling:
    return Ceiling(
        kind="compute", precision=precision, pipe=pipe, value=value, unit="FLOP/s", origin=origin, source="test"
    )


def bandwidth(level: str, value: float, capacity: int | None = None, origin: str = "datasheet") -> Ceiling:
    return Ceiling(
        kind="bandwidth",
        level=level,
        value=value,
        unit="byte/s",
        origin=origin,
        source="test",
        capacity_bytes=capacity,
    )


ROOF = Roof(
    "card",
    (
        compute("float64", "vector", 1),
        compute("float32", "vector", 2),
        compute("tf32", "matrix", 3),
        compute("float16", "matrix", 4),
        compute("float8", "matrix", 5),
        compute("float4", "matrix", 6),
        compute("int8", "matrix", 7),
        bandwidth("dram", 10),
    ),
)


@pytest.mark.parametrize(
    ("precision", "pipe", "value"),
    [
        ("float64", "vector", 1),
        ("float64", "matrix", 1),  # no matrix pipe for it: the vector units do the product
        ("float32", "matrix", 2),  # not tf32: that is another precision
        ("tf32", "matrix", 3),
        ("float16", "matrix", 4),
        ("float16", "vector", 2),  # pointwise half is computed in float32
        ("float8_e4m3fn", "matrix", 5),
        ("float8_e5m2", "matrix", 5),
        ("float8_e4m3fnuz", "matrix", 5),
        ("float8_e5m2fnuz", "matrix", 5),
        ("float4_e2m1fn_x2", "matrix", 6),
        ("int8", "matrix", 7),
        ("quint8", "matrix", 7),
        ("int64", "vector", 2),
        ("complex64", "matrix", 2),
        ("complex128", "vector", 1),
        ("bfloat16", "matrix", None),
        ("int4", "matrix", None),
        ("float8_e8m0fnu", "matrix", None),  # a scale, never multiplied
    ],
)
def test_the_compute_ceiling_of_a_precision(precision: str, pipe: str, value: float | None) -> None:
    found = ROOF.compute(precision, pipe)
    assert (found.value if found else None) == value


def test_float64_is_never_judged_by_float32() -> None:
    roof = Roof("card", (compute("float32", "vector", 2),))
    assert roof.compute("float64", "vector") is None
    assert roof.compute("complex128", "vector") is None


def test_the_users_word_goes_before_a_measurement_and_that_before_print() -> None:
    printed, measured, given = (
        bandwidth("dram", v, origin=o) for v, o in ((1, "datasheet"), (2, "measured"), (3, "given"))
    )
    assert Roof("x", (printed, measured)).bandwidth() is measured
    assert Roof("x", (printed, given, measured)).bandwidth() is given


@pytest.mark.parametrize(("size", "level"), [(None, "dram"), (10, "l1"), (11, "l2"), (100, "l2"), (101, "dram")])
def test_the_nearest_level_that_holds_the_working_set(size: int | None, level: str) -> None:
    roof = Roof("x", (bandwidth("dram", 1), bandwidth("l2", 2, 100), bandwidth("l1", 3, 10)))
    assert roof.bandwidth(size).level == level  # type: ignore[union-attr]


def test_the_ridge_point() -> None:
    assert ROOF.ridge_point("float16", "matrix") == 0.4
    assert ROOF.ridge_point("int4", "matrix") is None

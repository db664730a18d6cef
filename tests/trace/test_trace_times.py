"""Microseconds as decimal text to integer nanoseconds, against exact decimal arithmetic."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torchroof.trace.table import DeviceKind
from torchroof.trace.times import exact_ns, nanoseconds


def decimal_ns(text: str) -> int:
    return int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_EVEN))


@pytest.mark.parametrize(
    ("value", "ns"),
    [
        (5, 5000),
        ("5", 5000),
        (22.51, 22510),
        ("1712195495505582.988", 1712195495505582988),
        ("1712195495505582.98", 1712195495505582980),
        ("-0.5", -500),
        ("-1.25", -1250),
        ("0.0005", 0),  # 0.5 ns, a tie: to the even 0
        ("0.0015", 2),  # 1.5 ns, a tie: to the even 2
        ("0.0025", 2),
        ("0.00251", 3),
        ("1.5e3", 1500000),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("1e300", None),
        ("9" * 60, None),
        (None, None),
        (True, None),
        ([1], None),
    ],
)
def test_one_value(value: object, ns: int | None) -> None:
    assert exact_ns(value) == ns


epoch_us = st.integers(0, 2**52).map(str)
decimals = st.text("0123456789", min_size=1, max_size=3)
texts = st.one_of(epoch_us, st.builds("{}.{}".format, epoch_us, decimals))


@given(st.lists(texts))
def test_texts_are_exact(values: list[str]) -> None:
    ns, read = nanoseconds(values)
    assert ns.tolist() == [decimal_ns(v) for v in values]
    assert read is None


@given(st.lists(st.builds("{}.{}".format, st.integers(10**15, 9 * 10**15), st.integers(100, 999)), min_size=1))
@example(["1712195495505582.988", "1712195495505582.989"])
def test_texts_of_equal_length_are_exact(values: list[str]) -> None:
    assert nanoseconds(values)[0].tolist() == [decimal_ns(v) for v in values]


@pytest.mark.parametrize(
    "values", [["12.345", "1.23456"], ["123.45", "1.2345"], ["12345.678", "1234.5678"], ["1234.567", "12a4.567"]]
)
def test_lines_of_equal_length_that_are_not_alike(values: list[str]) -> None:
    ns, read = nanoseconds(values)
    assert ns[0] == decimal_ns(values[0])
    if read is None:
        assert ns[1] == decimal_ns(values[1])
    else:
        assert read.tolist() == [True, False]


@given(st.lists(st.tuples(st.integers(-(2**42), 2**43 - 1), st.integers(0, 999)), min_size=1))
@example([(2**43 - 1, 999), (2**43 - 1, 1)])
def test_floats_below_the_limit_lose_nothing(parts: list[tuple[int, int]]) -> None:
    values = [f"{whole}.{thousandths:03}" for whole, thousandths in parts]
    ns, _ = nanoseconds([float(v) for v in values])
    assert ns.tolist() == [decimal_ns(v) for v in values]


def test_epoch_microseconds_with_decimals_are_exact_in_a_file(read_text) -> None:  # type: ignore[no-untyped-def]
    # A float64 at 1.7e15 has steps of 0.25: it would make .988 of 1.000 and .764 of .750.
    table = read_text(
        '{"traceEvents":['
        '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":1712195495505582.988,"dur":3.001},'
        '{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":1712195495505582.764,"dur":2}]}'
    )
    assert table.device.start_ns.tolist() == [1712195495505582764, 1712195495505582988]
    assert (table.device.end_ns - table.device.start_ns).tolist() == [2000, 3001]
    assert table.device.kind.tolist() == [DeviceKind.KERNEL] * 2


def test_decimals_that_a_float_rounds_away_are_kept(read_text) -> None:  # type: ignore[no-untyped-def]
    # 1712195495505582.1 is 1712195495505582.0 as a float64.
    table = read_text('[{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":1712195495505582.100,"dur":1}]')
    assert table.device.start_ns.tolist() == [1712195495505582100]


def test_ties_beyond_three_decimals_go_to_even(read_text) -> None:  # type: ignore[no-untyped-def]
    # 3000.5, 3001.5 and 3002.5 ns: ties, of which floats would round the first and the last up.
    events = ",".join(
        f'{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{i},"dur":3.00{i}5}}' for i in range(3)
    )
    table = read_text(f'{{"traceEvents":[{events}]}}')
    assert (table.device.end_ns - table.device.start_ns).tolist() == [3000, 3002, 3002]


def test_times_as_text_and_as_numbers_in_one_file(read_events) -> None:  # type: ignore[no-untyped-def]
    def op(ts: object, dur: object) -> dict[str, object]:
        return {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": ts, "dur": dur}

    table = read_events(op("1719813945123456.789", "1.5"), op(1719813945123457, 2), op("later", 1), op(3.25, None))
    assert table.host.start_ns.tolist() == [3250, 1719813945123456789, 1719813945123457000]
    assert (table.host.end_ns - table.host.start_ns).tolist() == [0, 1500, 2000]
    assert {n.kind: n.count for n in table.notes} == {"missing_start": 1, "missing_duration": 1}

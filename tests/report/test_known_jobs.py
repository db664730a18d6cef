"""Simulated jobs: what went in as truth comes out, whatever the file's order and dialect."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import laws
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from job_maker import LAYERS, make_job, painted
from trace_maker import TraceMaker

from torchroof.report.build import analyse
from torchroof.trace.reader import read

MANY = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def by_row(data, attribute: str) -> Counter:
    found: Counter = Counter()
    for row in data.rows:
        found[row.path, row.phase, row.op] += getattr(row, attribute)
    for rest in data.unattributed:
        found[rest.reason] += getattr(rest, attribute)
    return found


@MANY
@given(seed=st.integers(0, 10**9), ranks=st.sampled_from([1, 1, 3]), windows=st.sampled_from([1, 1, 2, 3]))
def test_the_truth_comes_out(tmp_path: Path, seed: int, ranks: int, windows: int) -> None:
    for rank in make_job(seed, ranks, windows=windows):
        data, truth = analyse(read(rank.trace.save(tmp_path))), rank.truth
        laws.check(data)
        assert +by_row(data, "kernel_ns") == +truth.by("ns")
        assert +by_row(data, "kernels") == +truth.by("count")
        busy, idle = painted(truth)
        copies = busy.pop("copy", 0)
        assert +by_row(data, "busy_ns") == +busy
        causes = data.totals.causes
        assert data.totals.step_ns == sum(high - low for low, high in truth.windows)
        assert {n.count for n in data.notes if n.kind == "windows"} == ({windows} if windows > 1 else set())
        assert causes["copy"] == copies
        assert {cause: causes[cause] for cause in ("data", "sync", "host")} == {
            cause: idle[cause] for cause in ("data", "sync", "host")
        }


@MANY
@given(seed=st.integers(0, 10**9), order=st.randoms(use_true_random=False), coarse=st.booleans())
@example(seed=401, order=Random(1), coarse=False)  # two kernels start together on a stream, and one lasts 0 ns
@example(seed=11, order=Random(0), coarse=True)  # two arrows from forward to backward start together
def test_no_order_of_events_changes_a_figure(tmp_path: Path, seed: int, order: Random, coarse: bool) -> None:
    """``coarse`` times of whole microseconds, as older recorders write them, make much begin and end together."""
    trace = make_job(seed)[0].trace
    for event in trace.events if coarse else ():
        event.update({key: round(event[key]) for key in ("ts", "dur") if key in event})
    before = analyse(read(trace.save(tmp_path)))
    order.shuffle(trace.events)
    assert analyse(read(trace.save(tmp_path))) == before


def test_jobs_have_everything_in_them() -> None:
    """A generator that made only simple jobs would prove little."""
    met: Counter = Counter()
    for seed in range(20):
        truth = make_job(seed)[0].truth
        met.update(key if isinstance(key, str) else key[:2] for key in truth.by("count"))
        met.update(painted(truth)[1].keys())
    wanted = {(path, phase) for path in LAYERS for phase in ("forward", "backward")}
    wanted |= {"graph replay", "no launch record", "launched outside any op and layer", "data", "sync", "host"}
    assert wanted <= met.keys()


@pytest.mark.parametrize("late_us", [0, 40])
def test_clocks_that_disagree_are_counted_and_cost_nothing(tmp_path: Path, late_us: int) -> None:
    maker = make_job(7)[0].trace
    before = analyse(read(maker.save(tmp_path)))
    called = {e["args"]["correlation"]: e["ts"] for e in maker.events if e["cat"] == "cuda_runtime" and e["args"]}
    early = [0.0]
    for event in maker.events:
        if event["cat"] in ("kernel", "gpu_memcpy"):
            event["ts"] = round(event["ts"] - late_us, 3)
            early.append(called.get(event["args"]["correlation"], event["ts"]) - event["ts"])
    after = analyse(read(maker.save(tmp_path)))
    laws.check(after)
    assert by_row(after, "kernel_ns") == by_row(before, "kernel_ns")
    said = [n for n in after.notes if n.kind == "clocks disagree"]
    count = sum(us > 0 for us in early)
    assert [n.count for n in said] == [count] * (count > 0) and (count > 0) is (late_us > 0)
    assert all(f"by up to {max(early):.1f} µs" in n.text for n in said)


def test_a_lost_start_is_that_of_the_launch(tmp_path: Path) -> None:
    """Profilers write 0 for a start that they do not know; the window must not reach back to it."""
    t = TraceMaker()
    day = 86_400 * 10**9
    t.step(1, day, day + 1000)
    for at, start in ((100, 200), (300, None)):
        t.op("aten::relu", day + at, day + at + 20, shapes=[[10]])
        t.launch(day + at + 10, "k", *((day + start, day + start + 50) if start else ()))
    t.kernel("lost", 0, 0, t._correlation)
    t.kernel("lost", -7000, -6970, t._correlation)
    data = analyse(read(t.save(tmp_path)))
    laws.check(data)
    assert data.totals.step_ns == 1000
    assert (data.totals.kernels, data.totals.kernel_ns, data.totals.busy_ns) == (3, 50 + 30, 50 + 30)
    assert [n.count for n in data.notes if n.kind == "lost starts"] == [2]
    assert not [n for n in data.notes if n.kind == "clocks disagree"]


def test_a_key_that_comes_again_is_the_launch_before(tmp_path: Path) -> None:
    """Two windows of one file, whose writer counted its launches anew; and two calls inside one another."""
    ms = 10**6
    t = TraceMaker()
    for number, op, at in ((1, "aten::relu", 0), (7, "aten::tanh", 50 * ms)):
        t._correlation = 0
        t.step(number, at, at + 9 * ms)
        t.op(op, at + 100, at + 200, shapes=[[10]])
        t.launch(at + 110, "k", at + 300, at + 300 + number)
        t.host("cuda_driver", "cuLaunchKernel", at + 111, at + 112, correlation=1)
    t.op("aten::mul", 55 * ms - 100, 55 * ms, shapes=[[10], [10]])
    t.host("cuda_runtime", "cudaLaunchKernel", 55 * ms - 50, 55 * ms - 40, correlation=1)
    data = analyse(read(t.save(tmp_path)))
    laws.check(data)
    # The third call is after both kernels; the second is 50 ms after the first kernel, and before the second one.
    assert {r.op: (r.kernels, r.kernel_ns) for r in data.rows} == {"aten::relu": (1, 1), "aten::tanh": (1, 7)}

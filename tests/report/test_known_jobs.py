"""Simulated jobs: what went in as truth comes out, whatever the file's order and dialect."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import laws
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from job_maker import LAYERS, make_job, painted

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
@given(seed=st.integers(0, 10**9), ranks=st.sampled_from([1, 1, 3]))
def test_the_truth_comes_out(tmp_path: Path, seed: int, ranks: int) -> None:
    for rank in make_job(seed, ranks):
        data, truth = analyse(read(rank.trace.save(tmp_path))), rank.truth
        laws.check(data)
        assert +by_row(data, "kernel_ns") == +truth.by("ns")
        assert +by_row(data, "kernels") == +truth.by("count")
        busy, idle = painted(truth)
        copies = busy.pop("copy", 0)
        assert +by_row(data, "busy_ns") == +busy
        causes = data.totals.causes
        assert data.totals.step_ns == truth.window[1] - truth.window[0]
        assert causes["copy"] == copies
        assert {cause: causes[cause] for cause in ("data", "sync", "host")} == {
            cause: idle[cause] for cause in ("data", "sync", "host")
        }


@MANY
@given(seed=st.integers(0, 10**9), order=st.randoms(use_true_random=False))
def test_no_order_of_events_changes_a_figure(tmp_path: Path, seed: int, order: Random) -> None:
    trace = make_job(seed)[0].trace
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
    trace = make_job(7)[0].trace
    before = analyse(read(trace.save(tmp_path)))
    for event in trace.events:
        if event["cat"] in ("kernel", "gpu_memcpy"):
            event["ts"] -= late_us
    after = analyse(read(trace.save(tmp_path)))
    laws.check(after)
    assert by_row(after, "kernel_ns") == by_row(before, "kernel_ns")
    said = {n.kind: n.count for n in after.notes}.get("clocks disagree", 0)
    assert (said > 0) is (late_us > 0)

"""The schedule, and which steps a run records and counts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torchroof
from torchroof.capture.schedule import Schedule, StepKind
from torchroof.errors import CaptureError, OptionError


def test_a_cycle_step_by_step() -> None:
    plan = Schedule(wait=1, warmup=2, active=2, repeat=2)
    kinds = "".join(plan.kind(n).value[:2] + " " for n in range(11))
    assert kinds == "wa wa wa ac ac wa wa wa ac ac af "
    assert plan.kind(0) is StepKind.WAIT and plan.kind(1) is StepKind.WARMUP
    assert [n for n in range(12) if plan.begins_window(n)] == [1, 6]
    assert [n for n in range(12) if plan.ends_window(n)] == [4, 9]


@given(st.integers(0, 3), st.integers(0, 3), st.integers(1, 4), st.integers(0, 3), st.integers(0, 60))
def test_windows_begin_and_end_in_turn(wait: int, warmup: int, active: int, repeat: int, steps: int) -> None:
    plan = Schedule(wait, warmup, active, repeat)
    recording, windows = False, 0
    for n in range(steps):
        if plan.begins_window(n):
            assert not recording
            recording, windows = True, windows + 1
        assert recording == (plan.kind(n) in (StepKind.WARMUP, StepKind.ACTIVE))
        if plan.ends_window(n):
            assert recording
            recording = False
    assert not repeat or windows <= repeat


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"warmup": 1.5}, {"active": 0}, {"repeat": -1}, {"active": True}])
def test_a_schedule_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=f"schedule: {next(iter(wrong))} must be a whole number"):
        torchroof.schedule(**wrong)


# wait, warmup, active, calls of step(), marks in the file, counted. Work follows the last step() each time.
CASES = [
    (0, 1, 3, 6, [0, 1, 2, 3], (1, 2, 3)),  # a full window; the rest runs unrecorded
    (0, 1, 3, 4, [0, 1, 2, 3], (1, 2, 3)),  # just full
    (0, 1, 3, 3, [0, 1, 2, 3], (1, 2)),  # complete active ones count; 3 is what follows the last step()
    (0, 1, 3, 1, [0, 1], (0,)),  # no active one complete: what was recorded counts
    (0, 0, 1, 1, [0], (0,)),
    (2, 0, 1, 5, [2], (2,)),
    (2, 1, 2, 4, [2, 3, 4], (3,)),
    (2, 0, 1, 2, [2], (2,)),  # nothing but what follows the last step(): better than nothing
    (0, 1, 3, 0, [0], (0,)),  # no step(): the whole block is one step
]


@pytest.mark.parametrize(("wait", "warmup", "active", "calls", "marks", "counted"), CASES)
def test_what_is_recorded_and_counted(
    left: Callable[..., Any],
    wait: int,
    warmup: int,
    active: int,
    calls: int,
    marks: list[int],
    counted: tuple[int, ...],
) -> None:
    plan = torchroof.schedule(wait=wait, warmup=warmup, active=active)
    relu = torch.nn.ReLU()
    with torchroof.profile(schedule=plan, measure=False) as prof:
        for _ in range(calls):
            relu(torch.ones(2))
            prof.step()
        relu(torch.ones(2))
    found = left(prof)
    assert found.steps == marks
    assert found.facts.counted_steps == counted
    assert found.calls == {"": len(marks)} == found.scopes  # one call in each recorded step, the tail too
    whole = calls == 0 or len([n for n in counted if n < calls and n >= wait + warmup]) == active
    assert whole != any("complete" in note for note in found.facts.notes)


def test_marks_do_not_overlap_and_hold_their_work(left: Callable[..., Any]) -> None:
    with torchroof.profile(measure=False) as prof:
        for n in range(4):
            torch.full((n + 1,), 2.0).exp_()
            prof.step()
    found = left(prof)
    marks = sorted((e for e in found.events if "ProfilerStep#" in e["name"]), key=lambda e: e["ts"])
    work = sorted((e for e in found.events if e["name"] == "aten::exp_"), key=lambda e: e["ts"])
    assert len(work) == 4
    for mark, later in pairwise(marks):
        assert mark["ts"] + mark["dur"] <= later["ts"] + 0.001  # microseconds with three decimals
    for n, (mark, op) in enumerate(zip(marks, work, strict=True)):
        assert mark["ts"] <= op["ts"] and op["ts"] + op["dur"] <= mark["ts"] + mark["dur"]
        assert op["args"]["Input Dims"] == [[n + 1]]


def test_only_waiting_steps_make_no_report() -> None:
    with torchroof.profile(schedule=torchroof.schedule(wait=3), measure=False) as prof:
        prof.step()
    with pytest.raises(CaptureError, match="ended after 1 steps, before any was recorded"):
        _ = prof.report


def test_each_window_of_a_repeating_schedule(left: Callable[..., Any]) -> None:
    plan = torchroof.schedule(wait=1, warmup=0, active=2, repeat=0)
    seen, files = [], []
    with torchroof.profile(schedule=plan, measure=False) as prof:
        for n in range(7):
            torch.ones(n + 1)
            prof.step()
            for report in prof.reports:
                seen.append((n, [s.index for s in report.data.per_step if s.counted]))
                files.append(left(prof).facts.counted_steps)
    assert seen == [(2, [1, 2]), (5, [4, 5])]
    assert files == [(1, 2), (4, 5)]
    assert list(prof.reports) == []  # step 6 waited: no window was open
    assert left(prof).facts.counted_steps == (4, 5)  # the last one


def test_windows_do_not_pile_up() -> None:
    plan = torchroof.schedule(warmup=0, active=1, repeat=0)
    with torchroof.profile(schedule=plan, measure=False) as prof:
        for _ in range(3):
            torch.ones(1)
            prof.step()
        assert prof._trace is not None
        assert [p.name for p in prof._trace.parent.iterdir()] == [prof._trace.name]

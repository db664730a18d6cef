"""The limit of events: it must hold where no step() and no layer ever comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import torchroof
from torchroof.capture.torch_private import private_api
from torchroof.capture.watch import EventLimit

pytestmark = pytest.mark.skipif(
    private_api().event_blocks is None, reason="this build of torch does not show its count of events"
)


def _host_events(found: Any) -> int:
    return sum(1 for e in found.events if e["cat"] in ("cpu_op", "user_annotation"))


def test_the_count_is_torchs_own(left: Callable[..., Any]) -> None:
    with torchroof.profile(measure=False) as prof:
        limit = EventLimit(10**9, lambda: None)
        for _ in range(2000):
            torch.ones(1)
        counted = limit.events
    assert counted is not None
    # torch.ones is three events (ones, empty, fill_); the count goes up by blocks of 512.
    assert abs(counted - 6000) <= 512
    assert _host_events(left(prof)) == 6001  # and the mark of the step


def test_a_loop_without_steps_or_layers_is_stopped(left: Callable[..., Any]) -> None:
    a, total, rounds = torch.ones(8, 8), torch.zeros(()), 0
    with torchroof.profile(max_events=4000, measure=False) as prof:
        while not prof._recording._window.stopped and rounds < 3_000_000:
            total += a[rounds % 8, 3]
            rounds += 1
        after = rounds
        for _ in range(500):
            a.exp()
    found = left(prof)
    assert found.facts.counted_steps == (0,)
    assert any("limit of 4000 events" in note for note in found.facts.notes)
    assert _host_events(found) >= 4000 - 512
    assert after < 3_000_000 and not [e for e in found.events if e["name"] == "aten::exp"]


def test_complete_steps_before_the_limit_count(left: Callable[..., Any]) -> None:
    relu = nn.ReLU()
    plan = torchroof.schedule(warmup=1, active=1000)
    with torchroof.profile(relu, schedule=plan, max_events=3000, measure=False) as prof:
        for _ in range(40):
            for _ in range(100):  # 3 events a call: the scope, relu, clamp_min
                relu(torch.ones(1))
            prof.step()
        assert not torch.autograd._profiler_enabled()
    found = left(prof)
    counted = found.facts.counted_steps
    assert counted and counted == tuple(range(1, counted[-1] + 1))
    assert found.calls == found.scopes
    assert counted[-1] < 39


def test_the_step_in_which_the_limit_is_reached_is_not_complete(left: Callable[..., Any]) -> None:
    with torchroof.profile(measure=False) as prof:
        for step in range(4):
            torch.ones(2).exp_()
            if step == 2:
                prof._recording._window._stop()
            torch.ones(2).sin_()
            prof.step()
    found = left(prof)
    assert found.steps == [0, 1, 2] and found.facts.counted_steps == (1,)
    names = [e["name"] for e in found.events]
    assert (names.count("aten::exp_"), names.count("aten::sin_")) == (3, 2)


def test_without_the_count_the_limit_is_off_and_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from torchroof.capture import watch

    monkeypatch.setattr(watch, "private_api", lambda: replace(private_api(), event_blocks=None))
    limit = EventLimit(1, lambda: pytest.fail("stopped"))
    limit.start()
    limit.check()
    limit.end()
    assert limit.events is None

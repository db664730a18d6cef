"""Every hook, filter and file is gone afterwards, and the user's exception surfaces untouched."""

from __future__ import annotations

import gc
import json
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules import module as hooks

import torchroof
from torchroof.capture.scopes import ModuleScopes
from torchroof.errors import CaptureError

GLOBAL_HOOKS = [name for name in vars(hooks) if name.startswith("_global_") and "hook" in name]


def _state() -> dict[str, Any]:
    """Identity and contents of every global hook table, and the warning filters."""
    tables = {name: getattr(hooks, name) for name in GLOBAL_HOOKS}
    state = {n: (id(t), dict(t) if isinstance(t, dict) else t) for n, t in tables.items()}
    return state | {"filters": list(warnings.filters)}


class Bang(Exception):
    pass


class Explodes(nn.Module):
    def __init__(self, what: BaseException) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.what = what

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.inner(x)
        raise self.what


def test_the_hooks_are_there_inside_and_gone_after() -> None:
    before = _state()
    assert len(GLOBAL_HOOKS) >= 6
    with torchroof.profile(measure=False):
        inside = _state()
        nn.ReLU()(torch.ones(2))
    assert inside["_global_forward_hooks"] != before["_global_forward_hooks"]
    assert _state() == before
    assert not torch.autograd._profiler_enabled()


def test_wait_steps_have_no_hooks() -> None:
    before = _state()
    with torchroof.profile(schedule=torchroof.schedule(wait=2, warmup=0, active=1), measure=False) as prof:
        assert _state() == before
        prof.step()
        assert _state() == before
        prof.step()
        assert _state() != before
        prof.step()
        assert _state() == before


@pytest.mark.parametrize("raised", [Bang("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_the_users_exception_surfaces_untouched(raised: BaseException) -> None:
    before = _state()
    model = Explodes(raised)
    with pytest.raises(type(raised)) as caught, torchroof.profile(model, measure=False) as prof:
        for step in range(4):
            if step == 3:
                model(torch.ones(2, 2))
            model.inner(torch.ones(2, 2))
            prof.step()
    assert caught.value is raised
    assert raised.__context__ is None and raised.__cause__ is None
    assert _state() == before
    assert not torch.autograd._profiler_enabled()


def test_steps_before_the_exception_are_reported(left: Callable[..., Any]) -> None:
    with pytest.raises(Bang), torchroof.profile(measure=False) as prof:
        for step in range(3):
            if step == 2:
                raise Bang
            nn.ReLU()(torch.ones(2))
            prof.step()
    assert left(prof).facts.counted_steps == (1,)
    assert any("1 of 3 active steps" in note for note in left(prof).facts.notes)


def test_a_call_that_an_exception_left_is_cut(left: Callable[..., Any]) -> None:
    model = Explodes(Bang())
    with torchroof.profile(model, measure=False) as prof:
        for _ in range(2):
            with pytest.raises(Bang):
                model(torch.ones(2, 2))
            model.inner(torch.ones(2, 2))
    found = left(prof)
    assert found.paths("cut") == ["", ""]
    assert found.calls == {"": 2, "inner": 4} == found.scopes


def test_a_module_that_returns_none_while_an_exception_is_handled_is_not_cut(
    left: Callable[..., Any],
) -> None:
    class Quiet(nn.Module):
        def forward(self) -> None:
            return None

    with torchroof.profile(measure=False) as prof:
        try:
            raise Bang
        except Bang:
            Quiet()()
    assert left(prof).paths("cut") == []


def test_a_keyboard_interrupt_that_the_loop_survives_does_not_leave_its_layers_open(
    left: Callable[..., Any],
) -> None:
    """torch runs no hook then, so at the next step the calls that are over must be closed."""
    model = Explodes(KeyboardInterrupt())
    with torchroof.profile({"m": model}, measure=False) as prof:
        with pytest.raises(KeyboardInterrupt):
            model(torch.ones(2, 2))
        prof.step()
        model.inner(torch.ones(2, 2))
        prof.step()
    found = left(prof)
    assert found.paths("cut") == ["m"]
    scope = next(e for e in found.events if e["name"] == "torchroof: m")
    second = next(e for e in found.events if e["name"] == "ProfilerStep#1")
    assert scope["ts"] + scope["dur"] < second["ts"] + 0.001


def test_a_fault_in_a_hook_is_a_note(monkeypatch: pytest.MonkeyPatch, left: Callable[..., Any]) -> None:
    def fail(self: ModuleScopes, module: nn.Module) -> None:
        raise ZeroDivisionError("seeded")

    monkeypatch.setattr(ModuleScopes, "_meet", fail)
    with torchroof.profile(measure=False) as prof:
        assert nn.ReLU()(torch.tensor([-1.0])).item() == 0
    assert any("ZeroDivisionError: seeded" in note for note in left(prof).facts.notes)


def test_a_fault_when_a_window_closes_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(torch.profiler.profile, "export_chrome_trace", fail)
    before = _state()
    with torchroof.profile(measure=False) as prof:
        for _ in range(5):
            nn.ReLU()(torch.ones(2))
            prof.step()
    assert prof.notes == ("a window was lost: OSError: disk full",)
    assert _state() == before and not torch.autograd._profiler_enabled()
    with pytest.raises(CaptureError, match="there is no report: a window was lost: OSError: disk full"):
        _ = prof.report


def test_the_scratch_folder_goes_with_the_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with torchroof.profile(measure=False) as prof:
        torch.ones(2)
    assert len(list(tmp_path.glob("torchroof-*/*.json"))) == 1
    del prof
    gc.collect()
    assert not list(tmp_path.glob("torchroof-*"))


def test_a_forked_worker_leaves_the_scratch_folder_alone(tmp_path: Path) -> None:
    from torchroof.profiling import _remove_folder

    _remove_folder(tmp_path, os.getpid() + 1)
    assert tmp_path.is_dir()
    _remove_folder(tmp_path, os.getpid())
    assert not tmp_path.exists()


def test_the_trace_tells_no_path_of_this_machine(tmp_path: Path) -> None:
    model = torch.nn.Linear(4, 2)
    with torchroof.profile(model, measure=False) as prof:
        model(torch.ones(1, 4))
    prof.export_trace(tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_text()
    assert tempfile.gettempdir() not in text
    assert json.loads(text)["traceName"] == "window-0.json"

"""Arguments that are none: refused at once, by name, before anything is trained or read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trace_maker import TraceMaker

import torchroof
from torchroof.device.roof import Ceiling
from torchroof.errors import InputError, OptionError, RegistrationError, TorchroofError, UnknownDevice

COMPUTE = {"kind": "compute", "precision": "float32", "pipe": "matrix", "value": 1e12, "unit": "FLOP/s"}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    t = TraceMaker()
    t.step(1, 0, 10000)
    t.op("aten::mm", 100, 200, shapes=[[8, 8], [8, 8]])
    t.launch(120, "gemm", 1000, 2000)
    return t.save(tmp_path)


WRONG: tuple[dict[str, Any], ...] = (
    {"device": 5},
    {"device": b"x"},
    {"ceilings": 5},
    {"ceilings": b"x"},
    {"ceilings": []},
    {"ceilings": {}},
    {"ceilings": COMPUTE},
    {"ceilings": [1, 2]},
    {"ceilings": [COMPUTE | {"value": -1}]},
    {"ceilings": "a\0b"},
)
WRONG_OF_PROFILE: tuple[dict[str, Any], ...] = (
    {"logdir": 5},
    {"logdir": b"x"},
    {"logdir": "a\0b"},
    {"logdir": "x", "name": 5},
    {"logdir": "x", "name": "../y"},
    {"logdir": "x", "name": "/y"},
    {"record_shapes": "no"},
    {"record_shapes": None},
    {"max_events": True},
    {"measure": "x"},
)


@pytest.mark.parametrize("models", [3, [3], "aten::mm", None], ids=str)
def test_formulas_that_are_none_are_refused_by_both(trace: Path, models: Any) -> None:
    for use in (lambda: torchroof.analyze(trace, models=models), torchroof.profile(models=models).__enter__):
        with pytest.raises(RegistrationError, match=r"work_model makes, and .* is none"):
            use()


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_analyze_refuses_by_its_own_errors(trace: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        torchroof.analyze(trace, **options)


@pytest.mark.parametrize("options", WRONG + WRONG_OF_PROFILE, ids=str)
def test_profile_refuses_before_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    trained = False
    with pytest.raises(InputError), torchroof.profile(**options):
        trained = True
    assert not trained and list(tmp_path.iterdir()) == []


def test_local_ceilings_that_nobody_measured_are_missed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("TORCHROOF_CACHE", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UnknownDevice, match="calibrate"), torchroof.profile(device="local"):
        pytest.fail("the block was entered")


def test_ceilings_are_taken_as_values_as_objects_and_as_both(trace: Path) -> None:
    (given,) = (Ceiling(**COMPUTE, origin="given", source="ceilings file"),)
    for ceilings in ([COMPUTE], (given,), iter([given])):
        assert torchroof.analyze(trace, ceilings=ceilings).data.devices[0].ceilings == (given,)


@pytest.mark.parametrize("options", [{"top": "x"}, {"top": 1.5}, {"top": True}, {"depth": 1.5}, {"filter": 5}], ids=str)
def test_lines_refuse_by_name(trace: Path, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        torchroof.analyze(trace).lines(**options)


@pytest.mark.parametrize("path", [None, 5, b"x"])
def test_explain_wants_a_path(trace: Path, path: Any) -> None:
    with pytest.raises(OptionError, match="path"):
        torchroof.analyze(trace).explain(path)


@pytest.mark.parametrize("path", ["a\0b", "x" * 300])
def test_paths_that_cannot_be(trace: Path, path: str) -> None:
    report = torchroof.analyze(trace)
    for use in (report.save, torchroof.load, torchroof.analyze, report.write_logdir):
        with pytest.raises(TorchroofError):
            use(path)


def test_a_recording_whose_folder_is_gone_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    import shutil
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with torchroof.profile(measure=False) as prof:
        torch.ones(3) + 1
        for folder in tmp_path.iterdir():
            shutil.rmtree(folder)
    assert any("a window was lost" in note for note in prof.notes)
    with pytest.raises(torchroof.errors.CaptureError, match="a window was lost"):
        prof.report  # noqa: B018

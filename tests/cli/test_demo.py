"""`torchroof demo`, run in this process on the CPU with one small batch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from torchroof.cli import main
from torchroof.device.cache import cpu_name

pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from torchroof.measure import calibrate

    monkeypatch.setenv("TORCHROOF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("KINETO_LOG_LEVEL", "9")
    monkeypatch.setattr(calibrate, "LIVE", replace(calibrate.LIVE, total_s=0.3, main_memory=16 << 20))


def test_the_lesson_as_json(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Two steps count. One image has 3 x 224 x 224 numbers; what the layers have to do, tests/workloads tells."""
    options = ["--steps", "2", "--batch-size", "1", "--device", "cpu", "--format", "json"]
    assert main(["demo", *options, "--logdir", str(tmp_path / "runs")]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["steps"] == 2
    assert report["devices"][0]["name"].startswith(cpu_name())
    layers = {x["path"]: x for x in report["layers"]}
    assert {path: x["type"] for path, x in layers.items()} == {
        "": "Lesson",
        "conv": "Conv2d",
        "relu": "ReLU",
        "pool": "MaxPool2d",
        "flatten": "Flatten",
        "fc": "Linear",
    }
    assert layers[""]["inputs"][0]["shape"] == [1, 3, 224, 224]
    assert (tmp_path / "runs" / "torchroof.report.json").is_file()


def test_another_network(capfd: pytest.CaptureFixture[str]) -> None:
    options = ["--steps", "1", "--batch-size", "3", "--device", "cpu", "--format", "json"]
    assert main(["demo", "--model", "mlp", *options]) == 0
    report = json.loads(capfd.readouterr().out)
    assert {x["type"] for x in report["layers"]} == {"MLP", "Linear", "GELU"}
    assert report["layers"][0]["inputs"][0]["shape"] == [3, 1024]
    # Four products forward; backward two for each layer, but none for the first one's input: 4 + 2 * 4 - 1 calls.
    assert sum(row["calls"] for row in report["rows"] if row["op"] in ("aten::addmm", "aten::mm")) == 11


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--steps", "1", "--batch-size", "1", "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("1 step of", "conv", "fc", "fwd", "bwd", "opt", "total"))


@pytest.mark.parametrize(
    "wrong",
    [["--model", "alexnet"], ["--steps", "0"], ["--batch-size", "x"], ["--device", "abacus"]],
)
def test_wrong_options(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", *wrong]) == 2
    assert capsys.readouterr().err.count("\n") == 1

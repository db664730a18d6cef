"""`torchroof demo`, run in this process on the CPU with one small batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchroof.cli import main
from torchroof.device.cache import cpu_name

pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from torchroof.capture import measure

    monkeypatch.setenv("TORCHROOF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("KINETO_LOG_LEVEL", "9")
    monkeypatch.setattr(measure.cpu_ceilings, "__defaults__", (0.3,))


def test_the_two_layers_that_compute(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Batch 1: the convolution does 2 x 27 x 16 x 224 x 224 = 43,352,064 FLOPs forward and its bias none, its
    weight's gradient as many, and no gradient of the images; Linear 2 x 200,704 x 10 = 4,014,080 forward and
    twice that backward. Two steps count."""
    options = ["--steps", "2", "--batch-size", "1", "--device", "cpu", "--format", "json"]
    assert main(["demo", *options, "--logdir", str(tmp_path / "runs")]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["steps"] == 2
    assert report["devices"][0]["name"].startswith(cpu_name())
    products = {"aten::convolution", "aten::convolution_backward", "aten::addmm", "aten::mm"}
    flops = {
        (path, phase): sum(
            row["flops"]
            for row in report["rows"]
            if (row["path"], row["phase"]) == (path, phase) and row["op"] in products
        )
        for path in ("conv", "fc")
        for phase in ("forward", "backward")
    }
    assert flops == {
        ("conv", "forward"): 2 * 43_352_064,
        ("conv", "backward"): 2 * 43_352_064,
        ("fc", "forward"): 2 * 4_014_080,
        ("fc", "backward"): 2 * 8_028_160,
    }
    assert {x["path"]: x["type"] for x in report["layers"]} == {
        "": "Lesson",
        "conv": "Conv2d",
        "relu": "ReLU",
        "pool": "MaxPool2d",
        "flatten": "Flatten",
        "fc": "Linear",
    }
    assert (tmp_path / "runs" / "torchroof.report.json").is_file()


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--steps", "1", "--batch-size", "1", "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("1 step of", "conv", "fc", "(optimizer)", "total"))


@pytest.mark.parametrize(
    "wrong",
    [["--model", "alexnet"], ["--steps", "0"], ["--batch-size", "x"], ["--device", "abacus"]],
)
def test_wrong_options(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", *wrong]) == 2
    assert capsys.readouterr().err.count("\n") == 1

"""`torchroof report` on a model of many layers: fold, depth, filter and one layer's accounting, from the outside."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from torchroof.cli import main


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four blocks of a Linear each; every product's kernel runs 20 us, that of the last block 60."""
    monkeypatch.setenv("TORCHROOF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    events = [_event("nn.Module: Model_0", "python_function", 0, 1000)]
    for i in range(4):
        start = 100 + 200 * i
        link = {"correlation": i + 1}
        shapes = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
        events += [
            _event(f"nn.Module: Block_{i}", "python_function", start, 100),
            _event(f"nn.Module: Linear_{i}", "python_function", start + 10, 80),
            _event("aten::mm", "cpu_op", start + 20, 30, **shapes),
            _event("cudaLaunchKernel", "cuda_runtime", start + 30, 5, **link),
            _event("sgemm", "kernel", start + 60, 60 if i == 3 else 20, 9, device=0, stream=9, **link),
        ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events, "deviceProperties": []}))
    return path


def _event(name: str, category: str, start_us: float, us: float, thread: int = 1, **args: object) -> dict[str, object]:
    return {"ph": "X", "name": name, "cat": category, "pid": 1, "tid": thread, "ts": start_us, "dur": us, "args": args}


def told(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> str:
    assert main(["report", *map(str, argv)]) == 0
    return capsys.readouterr().out


def labels(text: str) -> list[str]:
    return [row["label"] for row in csv.DictReader(io.StringIO(text))]


def test_equal_layers_fold_in_the_table_but_not_in_csv(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = told(capsys, trace)
    assert "Model_0.Block_[0–2].Linear_[0–2] ×3" in table and "Model_0.Block_3.Linear_3" in table
    assert "×" not in told(capsys, trace, "--no-fold")
    # The layers, and the host's time before the first kernel or after the last.
    assert len(labels(told(capsys, trace, "--format", "csv"))) == 4 + 1


def test_depth_and_filter(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Model_0.Block_[0–2] ×3" in told(capsys, trace, "--depth", "2")
    assert labels(told(capsys, trace, "--depth", "1", "--format", "csv")) == ["Model_0", "(host, no owner)"]
    filtered = told(capsys, trace, "--filter", "Block_[12]", "--format", "csv")
    assert labels(filtered)[-1] == "(3 more)" and len(labels(filtered)) == 3


def test_explain(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, trace, "--device", "T4", "--explain", "Model_0.Block_3.Linear_3")
    # 64 x 64 x 64 multiply-adds of 2 FLOPs: 524,288.
    assert "524 k" in text and "1 × sgemm" in text and "2·m·n·k" in text
    data = json.loads(told(capsys, trace, "--explain", "Model_0.Block_[0-2]", "--format", "json"))
    assert data["total"]["kernel_ns"] == 60_000 and len(data["members"]) == 3
    assert told(capsys, trace, "--explain", "(root)", "-o", tmp_path / "out.txt") == ""
    assert "Model_0" in (tmp_path / "out.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (["--filter", "("], "regular expression"),
        (["--explain", "Model_0.Block_9"], "Model_0.Block_"),
        (["--explain", "Model_0", "--format", "csv"], "table or json"),
        (["--depth", "1", "--by", "op"], "depth"),
    ],
)
def test_refusals_are_one_line(trace: Path, capsys: pytest.CaptureFixture[str], words: list[str], about: str) -> None:
    assert main(["report", str(trace), *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and about in err


@pytest.mark.parametrize("depth", ["-1", "two", "1.5"])
def test_a_depth_is_a_whole_number(trace: Path, capsys: pytest.CaptureFixture[str], depth: str) -> None:
    assert main(["report", str(trace), "--depth", depth]) == 2
    assert "depth" in capsys.readouterr().err

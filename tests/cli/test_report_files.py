"""What `report` does with files that are cut, too large, or not what they seem."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_maker import TraceMaker

import torchroof
from torchroof.cli import main
from torchroof.errors import TruncatedTrace


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    trace = TraceMaker()
    for i in range(20):
        trace.op("aten::mm", 1000 * i, 1000 * i + 500, shapes=[[2, 3], [3, 4]])
        trace.launch(1000 * i + 10, "mm", 1000 * i + 100, 1000 * i + 300)
    path = trace.save(tmp_path)
    path.write_text(path.read_text()[:-300])
    return path


def test_a_cut_trace_is_reported_and_is_an_error(cut: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(cut)]) == 2
    out, err = capsys.readouterr()
    assert "aten::mm" in out and "the file ends in the middle of the trace" in out
    assert err.splitlines() == [
        "torchroof: trace.json: the file ends in the middle of the trace; copy or record it again; "
        "with --partial this is no error"
    ]


def test_partial_makes_it_none(cut: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(cut), "--partial"]) == 0
    out, err = capsys.readouterr()
    assert "the file ends in the middle" in out and err == ""


def test_the_error_carries_the_report(cut: Path) -> None:
    with pytest.raises(TruncatedTrace, match="ends in the middle") as caught:
        torchroof.analyze(cut)
    report = torchroof.analyze(cut, partial=True)
    carried = caught.value.report
    assert isinstance(carried, torchroof.Report) and carried.data == report.data
    assert report.data.totals.kernels == 19


@pytest.mark.parametrize("more", [[], ["--partial"]])
def test_a_trace_cut_before_its_first_event_has_no_report(
    cut: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    cut.write_text(cut.read_text()[:200])
    assert main(["report", str(cut), *more]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "the file ends in the middle of the trace" in err
    with pytest.raises(TruncatedTrace) as caught:
        torchroof.analyze(cut)
    assert caught.value.report is None


def test_memory_is_limited_on_request(cut: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(cut), "--memory", "0.00001"]) == 2
    assert "raise --memory" in capsys.readouterr().err
    assert main(["report", str(cut), "--memory", "none"]) == 2
    assert "'none' is no number of GiB over 0" in capsys.readouterr().err


def test_names_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = TraceMaker()
    evil = "\x1b]0;owned\x07\x1b[2J[bold red]x[/]\u202e<script>"
    trace.host("user_annotation", evil, 0, 1000)
    trace.op(evil, 10, 900)
    trace.launch(20, evil, 30, 530)
    path = trace.save(tmp_path)
    for options in ([], ["--by", "kernel"], ["--by", "op"], ["--layers-from", "annotations"], ["--format", "csv"]):
        assert main(["report", str(path), *options]) == 0
        out = capsys.readouterr().out
        assert not {c for c in out if not c.isprintable() and c not in "\n\r"}, options
        assert "[bold red]" in out

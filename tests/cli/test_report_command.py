"""`torchroof report` from the outside: what it prints where, and what it refuses in one line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from torchroof.cli import main
from torchroof.report import codec
from torchroof.reports import load

CORRELATION = {"correlation": 7}


def event(name: str, category: str, start_us: float, us: float, thread: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "cat": category, "pid": 1, "tid": thread, "ts": start_us, "dur": us, "args": args}


EVENTS = [
    event("aten::mm", "cpu_op", 10, 30, **{"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}),
    event("cudaLaunchKernel", "cuda_runtime", 20, 5, **CORRELATION),
    event("sgemm", "kernel", 50, 20, 9, device=0, stream=9, **CORRELATION),
]
TRACE = {"traceEvents": EVENTS, "deviceProperties": []}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(TRACE))
    return path


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHROOF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")


def refused(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> str:
    """The one line that the command printed when it refused."""
    assert main([str(word) for word in argv]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1 and told.err.startswith("torchroof: ")
    return told.err


def test_the_table(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(trace), "--device", "T4"]) == 0
    told = capsys.readouterr()
    assert "aten::mm" in told.out and "total" in told.out and told.err == ""
    assert max(map(len, told.out.splitlines())) <= 100


def test_json_is_alone_on_stdout_and_notes_are_on_stderr(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(trace), "--format", "json"]) == 0
    told = capsys.readouterr()
    data = codec.decode(told.out.encode(), "stdout")
    assert data.totals.kernels == 1 and data.totals.kernel_ns == 20_000
    assert told.out.count("\n") == 1
    assert told.err.splitlines() == [f"note: {note.text}" for note in data.notes] != []


def test_csv_by_op(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(trace), "--format", "csv", "--by", "op"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    # 64 x 64 x 64 multiply-adds of 2 FLOPs; the kernel runs 20 us.
    ran = [(r["label"], r["flops"], r["kernel_ns"]) for r in rows if r["kernels"] != "0"]
    assert ran == [("aten::mm", "524288", "20000")]


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_an_output_file_and_the_report_read_again(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    saved = tmp_path / name
    assert main(["report", str(trace), "--format", "json", "-o", str(saved)]) == 0
    assert capsys.readouterr().out == ""
    assert load(saved).data.totals.kernels == 1
    assert saved.read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    assert main(["report", str(saved), "--by", "op"]) == 0
    assert "aten::mm" in capsys.readouterr().out
    assert "the trace it was made of" in refused(capsys, "report", saved, "--device", "T4")


def test_a_table_in_a_file_is_plain(trace: Path, tmp_path: Path) -> None:
    assert main(["report", str(trace), "-o", str(tmp_path / "out.txt")]) == 0
    text = (tmp_path / "out.txt").read_text(encoding="utf-8")
    assert text.startswith("torchroof") and text.endswith("\n") and "\x1b" not in text


def test_given_ceilings_make_the_roof(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ceilings = [
        {"kind": "compute", "precision": "float32", "pipe": "vector", "value": 1e12, "unit": "FLOP/s"},
        {"kind": "bandwidth", "level": "dram", "value": 1e11, "unit": "byte/s"},
    ]
    (tmp_path / "c.json").write_text(json.dumps(ceilings))
    assert main(["report", str(trace), "--ceilings", str(tmp_path / "c.json"), "--format", "json"]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]
    # 524,288 FLOPs at 1e12 are 524 ns; 3 x 64 x 64 x 4 = 49,152 bytes at 1e11 are 492 ns: the larger is the floor.
    assert row["floor_ns"] == 524 and row["side"] == "compute"


def test_logdir(trace: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    folder = tmp_path / "runs"
    assert main(["report", str(trace), "--logdir", str(folder), "-o", os.devnull]) == 0
    assert (folder / "torchroof.trace.json").read_bytes() == trace.read_bytes()
    assert load(folder / "torchroof.report.json").data.totals.kernels == 1
    assert len(list((folder / "torchroof").glob("events.out.tfevents.*"))) == 1


def test_top_hides_into_the_rest(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(trace), "--top", "0"]) == 0
    assert "more)" not in capsys.readouterr().out
    assert main(["report", str(trace), "--top", "0", "--format", "csv"]) == 0
    assert "more)" not in capsys.readouterr().out


BAD_FILES: dict[str, bytes] = {
    "empty.json": b"",
    "text.json": b"hello, world",
    "cut.json.gz": gzip.compress(json.dumps(TRACE).encode() * 50)[:-40],
    "other.json": b'{"a": 1}',
    "wrong.json": b'{"schema":"torchroof.report/9"}',
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / name).write_bytes(BAD_FILES[name])
    assert name in refused(capsys, "report", tmp_path / name)


def test_missing_file_and_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no such file" in refused(capsys, "report", tmp_path / "none.json")
    (tmp_path / "some.json").write_text("[]")
    assert "none.json: no such file" in refused(capsys, "report", tmp_path / "some.json", tmp_path / "none.json")
    (tmp_path / "some.json").unlink()
    assert "holds no trace" in refused(capsys, "report", tmp_path)


def test_unknown_devices(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "H100" in refused(capsys, "report", trace, "--device", "H10")
    assert "torchroof calibrate" in refused(capsys, "report", trace, "--device", "local")


def test_bad_ceilings(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.json").write_text("[{}]")
    assert "c.json" in refused(capsys, "report", trace, "--ceilings", tmp_path / "c.json")


@pytest.mark.parametrize(
    "words", [["--top", "-3"], ["--top", "x"], ["--by", "moon"], ["--format", "xml"], ["--nonsense"]]
)
def test_bad_options(trace: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert "--help" in refused(capsys, "report", trace, *words)


def test_no_file_and_no_such_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert "TRACE" in refused(capsys, "report")
    assert "invalid choice" in refused(capsys, "reprot", "x")


def test_an_unwritable_output_is_refused_before_the_trace_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "none.json"
    assert "cannot write" in refused(capsys, "report", missing, "-o", tmp_path / "missing" / "out.json")
    assert "is a folder" in refused(capsys, "report", missing, "-o", tmp_path)


def test_a_failed_run_leaves_nothing_and_keeps_what_was_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "out.json"
    old.write_text("before")
    refused(capsys, "report", tmp_path / "none.json", "-o", old)
    assert old.read_text() == "before" and os.listdir(tmp_path) == ["out.json"]


def test_the_trace_is_never_overwritten(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = trace.read_bytes()
    assert "is the trace itself" in refused(capsys, "report", trace, "-o", trace)
    assert trace.read_bytes() == before


def test_a_hostile_file_name_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b" not in refused(capsys, "report", tmp_path / "a\x1b[31m\nb.json")


def test_report_imports_neither_torch_nor_pandas_and_the_table_is_what_a_pipe_gets(trace: Path) -> None:
    code = (
        "import sys; from torchroof.cli import main; main(sys.argv[1:]);"
        "print({'torch', 'pandas', 'tensorboard'} & set(sys.modules), file=sys.stderr)"
    )
    for extra in ([], ["--format", "json"], ["--format", "csv"]):
        run = subprocess.run([sys.executable, "-c", code, "report", trace, *extra], capture_output=True, text=True)
        assert run.returncode == 0
        assert run.stderr.splitlines()[-1] == "set()"


def test_a_closed_pipe_is_no_fault(trace: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "torchroof", "report", str(trace)]
    run = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (run.returncode, run.stderr) == (0, "")


def test_the_chart_stands_between_headline_and_table(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(trace), "--device", "T4", "--chart"]) == 0
    told = capsys.readouterr().out
    assert told.index("roof") < told.index("Roofline by op · ") < told.index("Ops by headroom")
    assert "Roofline" not in _table_of(trace, capsys)


def _table_of(trace: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["report", str(trace), "--device", "T4"]) == 0
    return capsys.readouterr().out


def test_svg_goes_to_the_screen_or_a_file(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(trace), "--device", "T4", "--format", "svg"]) == 0
    told = capsys.readouterr().out
    # 2 x 64^3 FLOPs over 3 x 64^2 float32 are 10.7 FLOPs per byte, in 20 µs 26.2 GFLOP/s.
    assert told.startswith("<svg ") and told.endswith("</svg>\n") and "10.7 FLOPs per byte, 26.2 GFLOP/s" in told
    file = tmp_path / "roof.svg"
    assert main(["report", str(trace), "--device", "T4", "--format", "svg", "-o", str(file)]) == 0
    assert capsys.readouterr().out == "" and file.read_text(encoding="utf-8") == told


def test_a_picture_that_cannot_be_is_refused(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "use --format svg" in refused(capsys, "report", trace, "--chart", "--format", "csv")
    assert "has no FLOPs of its own" in refused(capsys, "report", trace, "--chart", "--by", "kernel")
    assert "leave out --format svg" in refused(capsys, "report", trace, "--explain", "x", "--format", "svg")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_pipe_gets_what_its_encoding_can_carry(trace: Path, encoding: str) -> None:
    """Where it is not Unicode, ASCII stands for bars, lines and units: a ? would say that something is unknown."""
    command = [sys.executable, "-m", "torchroof", "report", str(trace), "--device", "A100 SXM 40GB"]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    text = subprocess.run(command, capture_output=True, check=True, env=environment).stdout.decode(encoding)
    wanted = subprocess.run(
        command, capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": "utf-8"}
    ).stdout.decode()
    assert text.isascii() == (encoding != "utf-8")
    assert text.count("?") == wanted.count("?")

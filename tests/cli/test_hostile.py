"""What a command line can be given and no command wants: one line, exit code 2, nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from trace_maker import TraceMaker

import torchroof
from torchroof.cli import main
from torchroof.report import codec
from torchroof.views.export import csv_text

LONG = "x" * 300
DEEP = "[" * 100_000 + "]" * 100_000
COMPUTE = {"kind": "compute", "precision": "float32", "pipe": "matrix", "unit": "FLOP/s"}
DRAM = {"kind": "bandwidth", "level": "dram", "unit": "byte/s"}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    t = TraceMaker()
    t.step(1, 0, 10000)
    t.op("aten::mm", 100, 200, shapes=[[8, 8], [8, 8]])
    t.launch(120, "=cmd|' /C calc'!A0", 1000, 2000)
    return t.save(tmp_path)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["report", *words]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said and said[-1].startswith("torchroof: ")
    return said[-1]


@pytest.mark.parametrize("name", ["", LONG, "a\0b"])
def test_names_that_no_file_can_have(name: str, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, name)
    refused(capsys, str(trace), "--ceilings", name)
    if name:
        refused(capsys, str(trace), "-o", name)
        refused(capsys, str(trace), "--logdir", name)


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        json.dumps([COMPUTE | {"value": 10**400}]),
        json.dumps([COMPUTE | {"value": 1e-300}]),
        json.dumps([DRAM | {"value": 1e-300}]),
        json.dumps([DRAM | {"value": 1e9, "capacity_bytes": 10**400}]),
        "{}",
        "[]",
        "5",
    ],
)
def test_ceilings_beyond_all_measure(text: str, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = trace.with_name("ceilings.json")
    file.write_text(text)
    assert "ceiling" in refused(capsys, str(trace), "--ceilings", str(file))


def test_the_slowest_ceilings_still_judge(trace: Path) -> None:
    ceilings = [COMPUTE | {"value": 1}, DRAM | {"value": 1}]
    report = torchroof.analyze(trace, ceilings=ceilings)
    assert report.data.rows[0].floor_ns == 2 * 8**3 * 10**9
    assert str(report) and report.to_json()


@pytest.mark.parametrize("text", ["null", "5", '"x"'])
def test_json_that_is_no_object_is_called_that(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.json").write_text(text)
    assert "is JSON but no object" in refused(capsys, str(tmp_path / "t.json"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
def test_a_trace_may_come_through_a_pipe(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe, folder = trace.with_name("pipe"), trace.with_name("logs")
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_bytes(trace.read_bytes()))
    writer.start()
    assert main(["report", str(pipe), "--format", "json", "--logdir", str(folder)]) == 0
    writer.join()
    piped = json.loads(capsys.readouterr().out)
    assert piped == json.loads(torchroof.analyze(trace).to_json())
    assert list(folder.rglob("*.report.json"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device on this system")
@pytest.mark.parametrize("words", [[], ["devices"], ["report", "TRACE"], ["report", "TRACE", "--format", "json"],
                         ["explain", "--list"], ["--help"], ["report", "--help"], ["--version"]])  # fmt: skip
@pytest.mark.parametrize("end", ["> /dev/full", ">&-"])
def test_a_screen_that_takes_nothing(words: list[str], end: str, trace: Path) -> None:
    told = " ".join(str(trace) if word == "TRACE" else word for word in words)
    run = subprocess.run(
        ["/bin/sh", "-c", f"'{sys.executable}' -m torchroof {told} {end}"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert "torchroof: cannot write to standard output" in run.stderr and "Traceback" not in run.stderr


def test_a_closed_screen_is_no_fault_of_a_file(trace: Path) -> None:
    command = f"'{sys.executable}' -m torchroof report {trace} --format json -o {trace.parent}/r.json >&- 2>&-"
    assert subprocess.run(["/bin/sh", "-c", command], check=False).returncode == 0
    assert torchroof.load(trace.parent / "r.json").data.rows


def test_a_logdir_does_not_take_the_trace(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    renamed = trace.rename(trace.with_name("torchroof.report.json"))
    before = renamed.read_bytes()
    assert "is the trace itself" in refused(capsys, str(renamed), "--logdir", str(trace.parent))
    assert renamed.read_bytes() == before


def test_a_logdir_names_the_trace_that_is_missing(trace: Path) -> None:
    with pytest.raises(torchroof.errors.TraceError, match="nofile: no such file"):
        torchroof.analyze(trace).write_logdir(trace.parent / "logs", "nofile")
    assert not (trace.parent / "logs").exists()


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a/../../b", "a\0b", 5])
def test_a_run_stays_inside_its_logdir(name: str, trace: Path) -> None:
    with pytest.raises(torchroof.errors.OptionError, match="inside a logdir"):
        torchroof.analyze(trace).write_logdir(trace.parent / "logs", name=name)


def test_reports_are_known_by_their_keys_in_any_order(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = trace.with_name("saved.json")
    torchroof.analyze(trace).save(saved)
    plain = json.loads(saved.read_bytes())
    saved.write_text(json.dumps(plain, sort_keys=True, indent=1))
    marked = trace.with_name("marked.json")
    marked.write_bytes(b"\xef\xbb\xbf" + json.dumps(plain).encode())
    for file in (saved, marked):
        assert main(["report", str(file)]) == 0
        assert torchroof.load(file).data == torchroof.analyze(trace).data
    assert not codec.looks_like_report(trace.read_bytes())


def test_reports_that_were_tampered_with(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = trace.with_name("saved.json")
    torchroof.analyze(trace).save(saved)
    plain = json.loads(saved.read_bytes())
    for change in ({"ceiling": 10**30}, {"ceiling": -1}):
        saved.write_text(json.dumps(plain | {"rows": [plain["rows"][0] | change]}))
        assert "damaged" in refused(capsys, str(saved))
    saved.write_text(json.dumps(plain).replace('"environment": {', f'"environment": {{"deep": {DEEP},'))
    refused(capsys, str(saved))
    saved.write_text(json.dumps(plain | {"rows": [plain["rows"][0] | {"flops": 10**30}]}))
    assert torchroof.load(saved).rows["flops"][0] == 10**30


def test_no_tensor_has_more_elements_than_can_be_numbered(tmp_path: Path) -> None:
    t = TraceMaker()
    t.step(1, 0, 10000)
    t.op("aten::mm", 100, 200, shapes=[[10**18, 10**18], [10**18, 10**18]])
    t.launch(120, "gemm", 1000, 2000)
    report = torchroof.analyze(t.save(tmp_path))
    assert report.data.rows[0].flops is None and report.rows["flops"].isna().all() and len(report.layers)


def test_csv_holds_no_formulas(trace: Path) -> None:
    report = torchroof.analyze(trace)
    cells = csv_text(report.lines("kernel"))
    assert "'=cmd|" in cells and not any(line.startswith("=") for line in cells.replace('"', "\n").splitlines())

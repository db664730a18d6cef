"""`report` over a folder or several files."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest
from job_maker import make_job, save

from torchroof.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ranks")
    save(make_job(5, ranks=3), made)
    return made


def test_a_folder_is_one_merged_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert "torchroof  3 ranks · 2 steps" in out and "net.0" in out and "ncclDevKernel_AllReduce_Sum_f32" in out
    assert err == ""


def test_files_are_ranks_too_and_json_is_the_whole(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(folder / f"rank{i}.json") for i in range(3)]
    assert main(["report", *files, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "torchroof.ranks/1"
    assert [rank["rank"] for rank in data["ranks"]] == [0, 1, 2]
    assert main(["report", str(folder), "--format", "json", "-o", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_text()) == data
    assert main(["report", str(folder), "-o", str(tmp_path / "out.txt"), "--top", "1"]) == 0
    assert "2 more ranks" in (tmp_path / "out.txt").read_text()


def _pour(content: bytes, write: int) -> None:
    with open(write, "wb") as pipe:
        pipe.write(content)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no pipes by number on this system")
def test_ranks_may_come_through_pipes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a shell gives them: open in this process only, and to be read once. One that never ends is cut short."""
    assert main(["report", str(folder), "--format", "json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    with ExitStack() as stack:
        names = []
        for i in range(3):
            read, write = os.pipe()
            stack.callback(os.close, read)
            content = (folder / f"rank{i}.json").read_bytes()
            Thread(target=_pour, args=(content, write)).start()
            names.append(f"/dev/fd/{read}")
        assert main(["report", *names, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [rank.pop("source") for rank in data["ranks"]] == [name.rpartition("/")[2] for name in names]
    for rank in expected["ranks"]:
        del rank["source"]
    assert data == expected
    assert main(["report", str(folder / "rank0.json"), "/dev/zero", "--memory", "0.01"]) == 2
    out, err = capsys.readouterr()
    assert "2 ranks" in out and err.startswith("torchroof: rank 1: zero is not JSON")


def test_a_folder_with_one_trace_is_that_trace(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rank0.json").write_bytes((folder / "rank0.json").read_bytes())
    assert main(["report", str(tmp_path)]) == 0
    assert "ranks" not in capsys.readouterr().out


def test_bad_ranks_are_an_error_with_a_report(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i in range(3):
        text = (folder / f"rank{i}.json").read_text()
        (tmp_path / f"rank{i}.json").write_text("nothing" if i == 1 else text[:-200] if i == 2 else text)
    assert main(["report", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert "3 ranks" in out and "not read" in out
    assert [line.split(":")[1] for line in err.splitlines()] == [" rank 1", " rank 2"]
    assert main(["report", str(tmp_path), "--partial"]) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--explain", "net.0"], "--explain is about one trace, and 3 were given"),
        (["--chart"], "--chart is about one trace"),
        (["--format", "csv"], "shown as table or json, not as csv"),
        (["--device", "no such device"], "no such device"),
    ],
)
def test_what_does_not_fit_several_ranks(
    folder: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folder), *options]) == 2
    assert words in capsys.readouterr().err


def test_dask_is_for_several(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder / "rank0.json"), "--dask", "x"]) == 2
    assert "--dask is for several ranks" in capsys.readouterr().err


def test_an_empty_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "holds no trace" in capsys.readouterr().err

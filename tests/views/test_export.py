"""CSV, and files that appear whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import stat
from pathlib import Path

import msgspec
import pytest
import sample

from torchroof.errors import OutputError
from torchroof.views.export import csv_text, plain_columns
from torchroof.views.output import output


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_base_units_and_adds_up_with_its_rest() -> None:
    lines = sample.grouped(top=2)
    rows = read(csv_text(lines))
    assert [row["label"] for row in rows] == [sample.LAYERS[0].label, sample.LAYERS[1].label, "(3 more)"]
    # 4.2 ms of forward over both steps, in ns; 520 GFLOP in FLOPs.
    assert (rows[0]["forward_ns"], rows[0]["flops"], rows[0]["steps"]) == ("4200000", "520000000000", "2")
    for column in ("kernel_ns", "forward_ns", "backward_ns", "optimizer_ns", "host_ns", "headroom_ns"):
        total = sum(int(row[column]) for row in rows)
        phase = column.removesuffix("_ns")
        assert total == lines.total.phase_ns.get(phase, getattr(lines.total, column, None))
    assert float(rows[0]["share_of_step"]) == pytest.approx(13 / 40)


def test_shares_are_of_kernel_time_also_where_kernels_overlap() -> None:
    line = msgspec.structs.replace(sample.LAYERS[0], busy_ns=1)
    assert float(read(csv_text(sample.grouped((line,))))[0]["share_of_step"]) == pytest.approx(13 / 40)


def test_unknown_is_empty_and_never_zero() -> None:
    row = read(csv_text(sample.grouped()))[4]
    assert row["label"] == "bert.pooler.activation" and row["flops"] == row["bytes"] == row["floor_ns"] == ""


def test_phases_that_do_not_occur_have_no_column() -> None:
    names = list(plain_columns(sample.grouped()))
    assert [n for n in names if n in ("forward_ns", "backward_ns", "optimizer_ns")] != []
    assert "recompute_ns" not in names and "phase_ns" not in names


def test_hostile_names_stay_one_cell() -> None:
    line = msgspec.structs.replace(sample.LAYERS[0], label='a,"b"\n\x1b[2Jc')
    assert read(csv_text(sample.grouped((line,))))[0]["label"] == 'a,"b"??[2Jc'


def test_a_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    with output(target) as write:
        write(b"one ")
        assert not target.exists()
        write(b"two")
    assert target.read_bytes() == b"one two"
    assert os.listdir(tmp_path) == ["report.json"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~umask()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), output(target) as write:
        write(b"half")
        _ = 1 / 0
    assert target.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["report.json"]


def test_a_link_stays_a_link_and_a_mode_a_mode(tmp_path: Path) -> None:
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    target.write_bytes(b"")
    target.chmod(0o640)
    link.symlink_to(target)
    with output(link) as write:
        write(b"new")
    assert link.is_symlink() and target.read_bytes() == b"new" and stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_device_is_written_directly() -> None:
    with output(os.devnull) as write:
        write(b"x")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("name", ["", "missing/report.json", "file/report.json"])
def test_what_cannot_be_written_is_said_before_anything_runs(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match="cannot write"), output(tmp_path / name):
        pytest.fail("the block must not run")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with pytest.raises(OutputError, match="No space left"), output("/dev/full") as write:
        write(b"x" * 10)

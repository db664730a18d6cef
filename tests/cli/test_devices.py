"""`torchroof devices`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchroof.cli import main
from torchroof.device import cache
from torchroof.device.cache import Cached
from torchroof.device.catalog import entries, find
from torchroof.device.ceilings_file import ceilings_from_json
from torchroof.device.roof import Ceiling


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHROOF_CACHE_DIR", str(tmp_path))


def test_all_devices_are_listed_within_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert all(entry.name in text for entry in entries())
    assert "…" not in text and "\x1b" not in text
    # 768 GB/s; dense TFLOP/s of vector float32, tf32, float16, no float8, int8.
    (a6000,) = (line.split() for line in lines if "RTX A6000" in line)
    assert a6000 == ["RTX", "A6000", "48", "768", "38.7", "77.4", "155", "–", "310", "high"]


def test_what_was_measured_here_is_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["devices"]) == 0 and "torchroof calibrate" in capsys.readouterr().out
    limit = Ceiling(
        kind="launch", value=1e-6, unit="s", origin="measured", source="t", measured_at="2026-01-01T00:00:00+00:00"
    )
    cache.store(Cached("k", "A card", "cuda", "A card", (limit,), quiet=False))
    assert main(["devices"]) == 0
    assert " ago beside other work: A card" in capsys.readouterr().out


def test_one_device_tells_every_ceiling_its_source_and_how_sure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["devices", "MI210"]) == 0
    out = capsys.readouterr().out
    entry = find("MI210")
    assert entry.source in out and "confidence: high" in out
    for cell in ("45.3 TFLOP/s", "22.6 TFLOP/s", "181 TFLOP/s", "181 TOP/s", "1.638 TB/s", "1.5 µs", "datasheet"):
        assert cell in out
    assert "not measured on this device" in out


def test_a_name_may_be_several_words_and_a_caution_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "RTX", "3060", "Ti"]) == 0
    assert "608 GB/s" in capsys.readouterr().out


@pytest.mark.parametrize("columns", ["80", "200"])
def test_a_narrow_screen_cuts_no_figure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for entry in entries():
        assert main(["devices", entry.key]) == 0
        out = capsys.readouterr().out
        assert "…" not in out
        assert max(map(len, out.splitlines())) <= int(columns)


def test_json_of_one_and_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "T4", "--format", "json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert (one["key"], one["confidence"], one["memory_bytes"]) == ("t4", "high", 16 * 2**30)
    assert ceilings_from_json(one["ceilings"]) == find("T4").roof().ceilings
    assert main(["devices", "--format", "json"]) == 0
    every = json.loads(capsys.readouterr().out)
    assert [d["key"] for d in every] == [e.key for e in entries()]
    assert one in every


def test_an_unknown_device_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "H10O"]) == 2
    caught = capsys.readouterr()
    assert caught.out == "" and caught.err.count("\n") == 1
    assert "H100 SXM 80GB" in caught.err

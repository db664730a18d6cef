"""Reading the catalogue: strict, and the index never stands in for a file that changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from torchroof.device.catalog import entries
from torchroof.device.entry import parse_entry
from torchroof.device.shelf import INDEX, index_text, read_shelf
from torchroof.errors import CeilingsError
from torchroof.resources import configs_folder

FOLDER = configs_folder() / "devices"
CARD = """
[card]
name = "Card"
patterns = ['^Card$']
vendor = "maker"
architecture = "sm_86 Some"
multiprocessors = 10
memory_bandwidth_bytes_per_s = 100_000_000_000
source = "printed"
confidence = "high"
[card.vector_flops_per_s]
float32 = 1_000_000_000_000
"""


def card(**changes: Any) -> dict[str, Any]:
    table: dict[str, Any] = {
        "name": "Card",
        "patterns": ["^Card$"],
        "vendor": "maker",
        "architecture": "sm_86 Some",
        "memory_bandwidth_bytes_per_s": 10**11,
        "source": "printed",
        "confidence": "high",
        "vector_flops_per_s": {"float32": 10**12},
    } | changes
    return {k: v for k, v in table.items() if v is not None}


def test_the_index_is_fresh() -> None:
    text = (FOLDER / INDEX).read_text(encoding="utf-8")
    assert text == index_text(FOLDER), "run python scripts/index_devices.py"


def test_the_index_and_the_files_say_the_same(tmp_path: Path) -> None:
    for path in FOLDER.glob("*.toml"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert read_shelf(tmp_path) == entries()


def test_an_edited_file_is_read_itself(tmp_path: Path) -> None:
    file = tmp_path / "maker.toml"
    file.write_text(CARD, encoding="utf-8")
    (tmp_path / INDEX).write_text(index_text(tmp_path), encoding="utf-8")
    file.write_text(CARD.replace("100_000_000_000", "200_000_000_000"), encoding="utf-8")
    (entry,) = read_shelf(tmp_path)
    assert entry.memory_bandwidth_bytes_per_s == 2e11


def test_the_index_is_used_while_it_is_fresh(tmp_path: Path) -> None:
    (tmp_path / "maker.toml").write_text(CARD, encoding="utf-8")
    index = index_text(tmp_path).replace('"Card"', '"Indexed"')
    (tmp_path / INDEX).write_text(index, encoding="utf-8")
    (entry,) = read_shelf(tmp_path)
    assert entry.name == "Indexed"


@pytest.mark.parametrize("index", ["", "[1]", "{", '{"maker.toml": {"checksum": 1}}'])
def test_a_broken_index_is_no_obstacle(tmp_path: Path, index: str) -> None:
    (tmp_path / "maker.toml").write_text(CARD, encoding="utf-8")
    (tmp_path / INDEX).write_text(index, encoding="utf-8")
    (entry,) = read_shelf(tmp_path)
    assert entry.key == "card"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"speed": 3}, "unknown key 'speed'"),
        ({"name": None}, "lacks the key name"),
        ({"memory_bandwidth_bytes_per_s": 3350}, "memory_bandwidth_bytes_per_s = 3350 is outside"),
        ({"memory_bandwidth_bytes_per_s": 3.35e15}, "memory_bandwidth_bytes_per_s = 3350000000000000.0 is outside"),
        ({"memory_bandwidth_bytes_per_s": float("nan")}, "memory_bandwidth_bytes_per_s = nan is outside"),
        ({"memory_bytes": 80}, "memory_bytes = 80 is outside"),
        ({"boost_hz": 1980}, "boost_hz = 1980 is outside"),
        ({"l2_bytes": 50}, "l2_bytes = 50 is outside"),
        ({"multiprocessors": True}, "multiprocessors = True is outside"),
        ({"multiprocessors_reported": [448, 0]}, "multiprocessors_reported = 0 is outside"),
        ({"sparsity": 4}, "sparsity = 4 is outside"),
        ({"vector_flops_per_s": {"float32": 38.7}}, "vector_flops_per_s.float32 = 38.7 is outside"),
        ({"matrix_flops_per_s": {"fp16": 1e14}}, "unknown precision 'fp16'"),
        ({"matrix_flops_per_s": 1e14}, "not a table of rates"),
        ({"vector_flops_per_s": None}, "has no rate"),
        ({"confidence": "sure"}, "confidence = 'sure' is none of"),
        ({"source": ""}, "source = '' is not a text"),
        ({"patterns": "^Card$"}, "is not a list"),
        ({"patterns": ["("]}, "patterns holds '('"),
        ({"patterns": [3]}, "patterns holds 3"),
    ],
)
def test_a_slip_is_refused_with_file_device_key_and_value(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CeilingsError, match=re.escape(message)) as caught:
        parse_entry("card", card(**changes), "maker.toml")
    assert str(caught.value).startswith("maker.toml: [card] ")
    assert "\n" not in str(caught.value)


def test_what_is_no_toml_and_what_is_there_twice(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[card\n", encoding="utf-8")
    with pytest.raises(CeilingsError, match=r"a\.toml is not readable TOML"):
        read_shelf(tmp_path)
    (tmp_path / "a.toml").write_text("loose = 1\n", encoding="utf-8")
    with pytest.raises(CeilingsError, match="loose = 1 stands outside any device"):
        read_shelf(tmp_path)
    (tmp_path / "a.toml").write_text(CARD, encoding="utf-8")
    (tmp_path / "b.toml").write_text(CARD, encoding="utf-8")
    with pytest.raises(CeilingsError, match=r"b\.toml: \[card\] is in the catalogue already"):
        read_shelf(tmp_path)


def test_a_variant_of_nothing_is_refused(tmp_path: Path) -> None:
    text = CARD.replace("vendor =", 'variant_of = "other"\nvendor =')
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    with pytest.raises(CeilingsError, match="variant_of = 'other' is not in the catalogue"):
        read_shelf(tmp_path)


@pytest.mark.parametrize(
    ("architecture", "capability", "warp"),
    [
        ("sm_86 Ampere (half)", (8, 6), 32),
        ("sm_100 Blackwell", (10, 0), 32),
        ("gfx90a CDNA2", (9, 0), 64),
        ("gfx942 CDNA3", (9, 4), 64),
        ("gfx1100 RDNA3", (11, 0), 32),
        ("Apple GPU", None, None),
    ],
)
def test_capability_of_an_architecture(architecture: str, capability: tuple[int, int] | None, warp: int | None) -> None:
    entry = parse_entry("card", card(architecture=architecture), "maker.toml")
    assert (entry.capability, entry.warp) == (capability, warp)

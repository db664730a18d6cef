"""Parts of cards that show themselves as devices, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from torchroof.device.catalog import find, match
from torchroof.device.entry import Entry

GIB = 2**30


def matched(name: str, memory: float, units: int) -> Entry:
    properties: dict[str, Any] = {"name": name, "totalGlobalMem": int(memory), "numSms": units}
    found = match(properties)
    assert found.entry is not None, found.notes
    assert found.notes[0].startswith(repr(name)) and "part of a card" in found.notes[0]
    return found.entry


def test_an_instance_of_an_h100() -> None:
    """16 of 132 multiprocessors are 12.1 % of 989.4 TFLOP/s; 10.5 GB are an eighth of the memory, so of 3352 GB/s
    and 50 MiB, too. OpenXLA's dump of such an instance has 419 GB/s and 6.25 MiB."""
    entry, card = matched("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10.5e9, 16), find("H100 SXM 80GB")
    assert entry.matrix_flops_per_s["bfloat16"] == pytest.approx(card.matrix_flops_per_s["bfloat16"] * 16 / 132)
    assert entry.matrix_flops_per_s["bfloat16"] == pytest.approx(119.9e12, rel=1e-3)
    assert entry.vector_flops_per_s["float32"] == pytest.approx(card.vector_flops_per_s["float32"] * 16 / 132)
    assert entry.memory_bandwidth_bytes_per_s == pytest.approx(419e9, rel=2e-3)
    assert entry.l2_bytes == 6.25 * 2**20
    assert all(c.origin == "derived" for c in entry.roof(launch=False).ceilings)
    assert "16 of 132 multiprocessors and 1/8 of the memory" in entry.name


def test_an_instance_of_an_a100() -> None:
    """3g.40gb: 42 of 108 multiprocessors, half of 80 GB."""
    entry = matched("NVIDIA A100-SXM4-80GB MIG 3g.40gb", 42e9, 42)
    assert entry.matrix_flops_per_s["bfloat16"] == pytest.approx(312e12 * 42 / 108)
    assert entry.memory_bandwidth_bytes_per_s == pytest.approx(2039e9 / 2, rel=1e-3)


def test_the_whole_card_as_one_instance() -> None:
    entry = matched("NVIDIA H100 80GB HBM3 MIG 7g.80gb", 85e9, 132)
    assert entry.memory_bandwidth_bytes_per_s == find("H100 SXM 80GB").memory_bandwidth_bytes_per_s


def test_a_card_of_eight_dies_divided_into_eight() -> None:
    entry, card = matched("AMD Instinct MI300X", 206e9 / 8, 38), find("MI300X")
    assert entry.matrix_flops_per_s["float16"] == pytest.approx(card.matrix_flops_per_s["float16"] / 8)
    assert entry.memory_bandwidth_bytes_per_s == pytest.approx(card.memory_bandwidth_bytes_per_s / 8)


def test_parts_that_share_all_memory_keep_its_bandwidth() -> None:
    entry, card = matched("AMD Instinct MI300X", 206e9, 152), find("MI300X")
    assert entry.matrix_flops_per_s["float16"] == pytest.approx(card.matrix_flops_per_s["float16"] / 2)
    assert entry.memory_bandwidth_bytes_per_s == card.memory_bandwidth_bytes_per_s


def test_one_die_of_a_board_of_two_has_its_own_peaks() -> None:
    """The board has 383 TFLOP/s in float16 and 3277 GB/s; a device is one die of it."""
    found = match({"name": "AMD Instinct MI250X", "totalGlobalMem": int(68.7e9), "numSms": 110})
    assert found.entry is not None
    assert found.entry.matrix_flops_per_s["float16"] == pytest.approx(383e12 / 2)
    assert found.entry.memory_bandwidth_bytes_per_s == pytest.approx(3277e9 / 2, rel=1e-3)

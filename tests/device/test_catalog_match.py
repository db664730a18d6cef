"""Devices as traces report them, with the traps of look-alike names."""

from __future__ import annotations

from typing import Any

import pytest

from torchroof.device.catalog import Match, differences, find, match

GIB = 2**30


def device(name: str, memory: float, units: int, capability: tuple[int, int] = (0, 0), warp: int = 32) -> Match:
    return match(
        {
            "id": 0,
            "name": name,
            "totalGlobalMem": int(memory),
            "numSms": units,
            "computeMajor": capability[0],
            "computeMinor": capability[1],
            "warpSize": warp,
        }
    )


def key(found: Match) -> str | None:
    return found.entry.key if found.entry else None


@pytest.mark.parametrize(
    ("name", "memory", "units", "expected"),
    [
        # As real trace files have them.
        ("NVIDIA B200", 191503007744, 148, "b200"),
        ("NVIDIA A100-SXM4-40GB", 42481549312, 108, "a100_sxm_40gb"),
        ("NVIDIA A100-PG509-200", 42297524224, 108, "a100_sxm_40gb"),
        ("NVIDIA A100-PCIE-40GB", 42346610688, 108, "a100_pcie_40gb"),
        ("NVIDIA A100 80GB PCIe", 84987740160, 108, "a100_pcie_80gb"),
        ("Tesla V100-SXM2-32GB", 34079637504, 80, "v100_sxm2_32gb"),
        ("Tesla V100-SXM2-16GB", 16945709056, 80, "v100_sxm2_16gb"),
        ("NVIDIA H100 80GB HBM3", 85045477376, 132, "h100_sxm_80gb"),
        ("NVIDIA B300 SXM6 AC", 287431131136, 148, "b300"),
        ("AMD Instinct MI210", 68702699520, 104, "mi210"),
        ("AMD Instinct MI300X", 206141652992, 304, "mi300x"),
        ("AMD Instinct MI300X VF", 205.6e9, 304, "mi300x"),
        # A sixteenth of the memory of these goes to error correction.
        ("Tesla T4", 15.84e9, 40, "t4"),
        ("NVIDIA L4", 22.5 * GIB, 58, "l4"),
        ("NVIDIA L40S", 45.0 * GIB, 142, "l40s"),
        ("NVIDIA RTX A6000", 47.5 * GIB, 84, "rtx_a6000"),
        # The bare name is another part than the 80 GB one.
        ("NVIDIA H100", 102085492736, 132, "h100_bare_96gb"),
        # The number in the name is the host's memory.
        ("NVIDIA GH200 480GB", 95 * GIB, 132, "gh200_96gb"),
        ("NVIDIA GH200 144G HBM3e", 143 * GIB, 132, "gh200_144gb"),
        # Names inside one another.
        ("NVIDIA H20", 97285 * 2**20, 78, "h20"),
        ("NVIDIA H200", 143771 * 2**20, 132, "h200_sxm"),
        ("NVIDIA H200 NVL", 143771 * 2**20, 132, "h200_nvl"),
        ("NVIDIA GB200", 186 * GIB, 152, "gb200"),
        ("NVIDIA A10", 22.5 * GIB, 72, "a10"),
        ("NVIDIA A10G", 22.5 * GIB, 80, "a10g"),
        ("NVIDIA L40", 45 * GIB, 142, "l40"),
        # One name, several cards.
        ("NVIDIA GeForce RTX 3080", 10 * GIB, 68, "rtx_3080"),
        ("NVIDIA GeForce RTX 3080", 12 * GIB, 70, "rtx_3080_12gb"),
        ("NVIDIA GeForce RTX 3060", 12 * GIB, 28, "rtx_3060"),
        ("NVIDIA GeForce RTX 3060", 8 * GIB, 28, "rtx_3060_8gb"),
        ("NVIDIA GeForce RTX 4060 Ti", 16 * GIB, 34, "rtx_4060_ti_16gb"),
        # One die of a board, under three names.
        ("AMD Radeon Graphics", 68.7e9, 104, "mi250_gcd"),
        ("AMD Radeon Graphics", 68.7e9, 110, "mi250x_gcd"),
        ("AMD Instinct MI250X / MI250", 68.7e9, 104, "mi250_gcd"),
        ("AMD Instinct MI250X / MI250", 68.7e9, 110, "mi250x_gcd"),
        ("AMD Instinct MI250X", 68.7e9, 110, "mi250x_gcd"),
        # Drivers count work-group processors and execution units.
        ("Radeon RX 7900 XTX", 24 * GIB, 48, "rx_7900_xtx"),
        ("AMD Radeon RX 7900 XTX", 24 * GIB, 96, "rx_7900_xtx"),
        ("Intel(R) Data Center GPU Max 1550", 64 * GIB, 448, "intel_max_1550_tile"),
        # Every Jetson Orin module has this name.
        ("Orin", 61.4 * GIB, 16, "jetson_agx_orin_64gb"),
    ],
)
def test_a_reported_device_is_matched(name: str, memory: float, units: int, expected: str) -> None:
    assert key(device(name, memory, units)) == expected


@pytest.mark.parametrize(
    ("name", "memory", "units", "why"),
    [
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10.5e9, 0, "slice"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10.5e9, 133, "slice"),
        ("NVIDIA B7 MIG 1g.10gb", 10.5e9, 16, "slice"),
        ("Orin", 7.4 * GIB, 8, "8 multiprocessors"),
        ("NVIDIA H100", 85e9, 132, "79.16 GiB of memory"),
        ("NVIDIA H100 80GB HBM3", 85e9, 114, "114 multiprocessors"),
        ("AMD Instinct MI300X", 206e9 / 8, 37, "37 multiprocessors"),
        ("AMD Instinct MI300X", 206e9 / 5, 38, "38 multiprocessors"),
        ("AMD Radeon Graphics", 16 * GIB, 8, "none of the devices"),
        ("NVIDIA GeForce RTX 3080", 10 * GIB, 70, "none of the devices"),
        ("Quadro GP100", 17069309952, 56, "not in the device catalogue"),
        ("NVIDIA RTX A1000", 8 * GIB, 18, "not in the device catalogue"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 16 * GIB, 76, "not in the device catalogue"),
        ("AMD Radeon RX 7900 XT", 20 * GIB, 42, "not in the device catalogue"),
        ("NVIDIA GH200", 95 * GIB, 132, "not in the device catalogue"),
        ("NVIDIA A100", 85e9, 108, "not in the device catalogue"),
    ],
)
def test_never_another_cards_numbers(name: str, memory: float, units: int, why: str) -> None:
    found = device(name, memory, units)
    assert found.entry is None
    (note,) = found.notes
    assert why in note and "\n" not in note


def test_a_name_of_two_cards_without_figures_is_not_guessed() -> None:
    found = match({"name": "NVIDIA GeForce RTX 3080"})
    assert found.entry is None and "RTX 3080 12GB" in found.notes[0]
    assert key(match({"name": "NVIDIA GeForce RTX 3090"})) == "rtx_3090"


def test_a_match_passes_on_its_caution() -> None:
    (note,) = device("NVIDIA GeForce RTX 3060 Ti", 8 * GIB, 38).notes
    assert "608 GB/s" in note
    assert device("Tesla T4", 15.84e9, 40).notes == ()


@pytest.mark.parametrize(
    ("memory", "units", "capability", "warp", "expected"),
    [
        (206141652992, 304, (9, 4), 64, "mi300x"),
        (256 * GIB, 304, (9, 4), 64, "mi325x"),
        (15.84e9, 40, (7, 5), 32, "t4"),
        (68.7e9, 110, (9, 0), 64, "mi250x_gcd"),
        # MI210 and a die of MI250 are alike in all that is told.
        (68.7e9, 104, (9, 0), 64, None),
        # A100 SXM or PCIe.
        (85e9, 108, (8, 0), 32, None),
        # The same figures with the wavefront of another make fit nothing.
        (206141652992, 304, (9, 4), 32, None),
        (68.7e9, 110, (9, 0), 32, None),
        (1e9, 3, (8, 6), 32, None),
    ],
)
def test_a_nameless_device_is_known_by_its_figures_only_when_one_fits(
    memory: float, units: int, capability: tuple[int, int], warp: int, expected: str | None
) -> None:
    found = device("", memory, units, capability, warp)
    assert key(found) == expected
    assert "does not name its device" in found.notes[0]


@pytest.mark.parametrize("properties", [{}, {"name": None}, {"name": "", "numSms": 0}, {"name": "", "numSms": 132}])
def test_nothing_told_is_nothing_matched(properties: dict[str, Any]) -> None:
    found = match(properties)
    assert found.entry is None and len(found.notes) == 1


def test_differences_of_a_chosen_device() -> None:
    t4 = find("T4")
    assert differences(t4, {"numSms": 40, "totalGlobalMem": int(15.84e9)}) == ()
    assert differences(t4, {}) == ()
    assert differences(t4, {"numSms": 132, "totalGlobalMem": 80 * GIB}) == (
        "the trace's device has 132 multiprocessors, T4 has 40",
        "the trace's device has 80 GiB of memory, T4 has 16 GiB",
    )


@pytest.mark.parametrize(("factor", "fits"), [(1.04, True), (1.06, False), (0.94, True), (0.90, True), (0.87, False)])
def test_memory_may_be_five_per_cent_off_the_size_in_gb_or_gib(factor: float, fits: bool) -> None:
    # 0.95 of 40 GB is 0.885 of 40 GiB.
    assert (device("NVIDIA A100-SXM4-40GB", 40 * GIB * factor, 108).entry is not None) == fits

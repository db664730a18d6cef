"""Names that people type."""

from __future__ import annotations

import pytest

from torchroof.device.catalog import entries, find
from torchroof.errors import UnknownDevice


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("RTX A6000", "rtx_a6000"),
        ("NVIDIA RTX A6000", "rtx_a6000"),
        ("rtx_a6000", "rtx_a6000"),
        ("A6000", "rtx_a6000"),
        ("H100 SXM", "h100_sxm_80gb"),
        ("NVIDIA H100 80GB HBM3", "h100_sxm_80gb"),
        ("h100 pcie", "h100_pcie"),
        ("NVIDIA H100", "h100_bare_96gb"),
        ("T4", "t4"),
        ("tesla t4", "t4"),
        ("A100 80GB", "a100_sxm_80gb"),
        ("A100 80GB PCIe", "a100_pcie_80gb"),
        ("NVIDIA A100-SXM4-40GB", "a100_sxm_40gb"),
        ("V100 SXM2", "v100_sxm2_16gb"),
        ("V100 PCIe", "v100_pcie_16gb"),
        ("  L4 ", "l4"),
        ("L40S", "l40s"),
        ("A10", "a10"),
        ("H20", "h20"),
        ("H200", "h200_sxm"),
        ("B200", "b200"),
        ("MI210", "mi210"),
        ("MI250", "mi250_gcd"),
        ("MI300X", "mi300x"),
        ("AMD Instinct MI300X", "mi300x"),
        ("RTX 3080", "rtx_3080"),
        ("RTX 3080 12GB", "rtx_3080_12gb"),
        ("Apple M1", "apple_m1"),
    ],
)
def test_a_name_finds_its_device(typed: str, key: str) -> None:
    assert find(typed).key == key


@pytest.mark.parametrize("typed", ["H100", "A100", "A100 SXM", "GH200", "4090", "Max 1550", "h100 80gb"])
def test_an_ambiguous_name_is_refused_with_the_candidates(typed: str) -> None:
    with pytest.raises(UnknownDevice, match=r"may be any of .*, .*; name one of them$") as caught:
        find(typed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "near"),
    [("RTX A600", "RTX A6000"), ("H10O", "H100 SXM 80GB"), ("MI300", "MI300X"), ("A100-SXM-80", "A100 SXM 80GB")],
)
def test_an_unknown_name_is_told_the_near_ones(typed: str, near: str) -> None:
    with pytest.raises(UnknownDevice, match="no device named") as caught:
        find(typed)
    assert near in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("typed", ["", "  ", "NVIDIA", "zzz", ".*", "(", "GPU"])
def test_what_names_nothing_is_unknown(typed: str) -> None:
    with pytest.raises(UnknownDevice):
        find(typed)


def test_every_key_and_every_plain_name_finds_its_own_entry() -> None:
    for entry in entries():
        assert find(entry.key) is entry
        assert find(entry.name) is entry
        assert find(entry.name.upper()) is entry

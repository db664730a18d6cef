"""Ceilings derived from what a driver tells: by hand, and against the catalogue's own figures."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from torchroof.device.catalog import entries
from torchroof.device.derive import Reported, derive
from torchroof.device.entry import Entry
from torchroof.device.roof import Roof

ADA = Reported(
    name="NVIDIA GeForce RTX 4090",
    architecture="sm_89",
    multiprocessors=128,
    clock_hz=2.52e9,
    memory_clock_hz=10_501e6,
    memory_bus_bits=384,
)


def roof(reported: Reported) -> Roof:
    return Roof("x", derive(reported))


def test_a_consumer_card_by_hand() -> None:
    """128 x 2.52 GHz x 256 = 82.6 TFLOP/s of float32; consumer cards have half of 1024 in bfloat16: 165.2.
    10,501 MHz x 384 bits / 8 x 2 transfers = 1008 GB/s."""
    found = roof(ADA)
    assert found.compute("float32", "vector").value == pytest.approx(82.6e12, rel=1e-3)  # type: ignore[union-attr]
    assert found.compute("bfloat16", "matrix").value == pytest.approx(165.2e12, rel=1e-3)  # type: ignore[union-attr]
    assert found.compute("int8", "matrix").value == pytest.approx(660.6e12, rel=1e-3)  # type: ignore[union-attr]
    assert found.bandwidth().value == pytest.approx(1008e9, rel=1e-3)  # type: ignore[union-attr]
    assert {(c.origin, c.confidence) for c in found.ceilings} == {("derived", "low")}


def test_the_same_chip_for_professionals_has_the_full_rate() -> None:
    found = roof(replace(ADA, name="NVIDIA RTX 6000 Ada Generation"))
    assert found.compute("bfloat16", "matrix").value == pytest.approx(330.3e12, rel=1e-3)  # type: ignore[union-attr]


def test_what_is_not_told_is_not_derived() -> None:
    assert derive(replace(ADA, architecture="sm_55")) == ()
    assert {c.kind for c in derive(replace(ADA, clock_hz=None))} == {"bandwidth"}
    assert {c.kind for c in derive(replace(ADA, memory_bus_bits=None))} == {"compute"}


def test_memory_clocks_that_mean_something_else() -> None:
    """GB10 tells the data rate as its clock (8533 MHz x 256 bits = 273 GB/s); what Orin tells is no use."""
    gb10 = replace(ADA, name="NVIDIA GB10", architecture="sm_121", memory_clock_hz=8533e6, memory_bus_bits=256)
    assert roof(gb10).bandwidth().value == pytest.approx(273e9, rel=1e-3)  # type: ignore[union-attr]
    assert roof(replace(gb10, architecture="sm_87")).bandwidth() is None


OTHER_RATES = re.compile(r"^(h20|a10g|l20|l40|h800|b300|gb300|l40s|t4|rtx_2080|mi210|mi100|gb10)", re.IGNORECASE)
"""Cut, capped or doubled against their architecture; the name would have to tell."""


def _known() -> list[Entry]:
    fitting = [e for e in entries() if e.multiprocessors and e.boost_hz and not OTHER_RATES.match(e.key)]
    return [e for e in fitting if derive(_reported(e))]


def _reported(entry: Entry) -> Reported:
    return Reported(
        name=f"NVIDIA {'GeForce ' if re.match('rtx_[2-5]0[5-9]0', entry.key) else ''}{entry.name}",
        architecture=entry.architecture.split()[0],
        multiprocessors=entry.multiprocessors_reported[0]
        if "gfx11" in entry.architecture
        else entry.multiprocessors or 0,
        clock_hz=entry.boost_hz,
    )


@pytest.mark.parametrize("entry", _known(), ids=lambda e: e.key)
def test_the_rates_agree_with_the_catalogue(entry: Entry) -> None:
    """To 16 %: tensor peaks of data-centre cards are printed at a lower clock (H100 NVL: 1545 of 1785 MHz)."""
    found = {(c.pipe, c.precision): c.value for c in derive(_reported(entry))}
    for pipe, rates in (("matrix", entry.matrix_flops_per_s), ("vector", entry.vector_flops_per_s)):
        for precision in ("float32", "bfloat16", "float16", "tf32"):
            if precision in rates and (pipe, precision) in found:
                assert found[pipe, precision] == pytest.approx(rates[precision], rel=0.16), (pipe, precision)


def test_the_comparison_covers_most_of_the_catalogue() -> None:
    assert len(_known()) > 45

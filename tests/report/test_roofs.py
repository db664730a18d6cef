"""Which roof a device of a trace gets: the order of what is asked for, carried, printed and measured here."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
from trace_maker import A100

from torchroof.device.cache import Cached
from torchroof.device.catalog import find
from torchroof.device.roof import Ceiling
from torchroof.errors import OptionError, UnknownDevice
from torchroof.report.roofs import Chosen, Wish, choose_roofs
from torchroof.trace.metadata import CaptureFacts

DRAM = Ceiling(
    kind="bandwidth",
    level="dram",
    value=1.2e12,
    unit="byte/s",
    origin="measured",
    source="torch",
    pattern="copy",
    measured_at="2026-12-01T00:00:00+00:00",
)
PRODUCT = replace(
    DRAM, kind="compute", level=None, pattern=None, precision="bfloat16", pipe="matrix", value=2.6e14, unit="FLOP/s"
)
CARD: dict[str, Any] = {"deviceProperties": [A100]}
NO_WISH = Wish()
PRINTED = find("A100 SXM 40GB").roof()


def choose(metadata: dict[str, Any], wish: Wish = NO_WISH, *, on_cpu: bool = False, **facts: Any) -> Chosen:
    (chosen,) = choose_roofs(metadata, CaptureFacts(**facts), (0,), wish, on_cpu=on_cpu)
    return chosen


def carrying(*ceilings: Ceiling) -> dict[str, list[dict[str, Any]]]:
    return {"0": [asdict(c) for c in ceilings]}


def origins(chosen: Chosen) -> tuple[str, str]:
    """What judges bfloat16 products and main memory."""
    assert chosen.roof is not None
    compute, memory = chosen.roof.compute("bfloat16", "matrix"), chosen.roof.bandwidth()
    assert compute is not None and memory is not None
    return compute.origin, memory.origin


def test_the_catalogue_where_nothing_was_measured() -> None:
    chosen = choose(CARD)
    assert origins(chosen) == ("datasheet", "datasheet")
    assert chosen.roof == PRINTED and chosen.multiprocessors == 108


def test_what_was_measured_judges_and_the_datasheet_stays_beside_it() -> None:
    chosen = choose(CARD, ceilings=carrying(DRAM, PRODUCT))
    assert origins(chosen) == ("measured", "measured")
    assert chosen.roof is not None and set(PRINTED.ceilings) < set(chosen.roof.ceilings)
    # 2.6e14 of 3.12e14
    assert chosen.roof.sibling(PRODUCT, "datasheet").value == 312e12  # type: ignore[union-attr]
    # A precision that was not measured is judged by its printed peak.
    assert chosen.roof.compute("float16", "matrix").origin == "datasheet"  # type: ignore[union-attr]


def test_a_measured_launch_floor_replaces_the_typical_one() -> None:
    launch = replace(DRAM, kind="launch", level=None, pattern=None, unit="s", value=2e-6)
    chosen = choose(CARD, ceilings=carrying(DRAM, launch))
    assert chosen.roof is not None and [c.value for c in chosen.roof.ceilings if c.kind == "launch"] == [2e-6]


@pytest.mark.parametrize(
    ("prefer", "expected"), [("measured", ("measured", "measured")), ("datasheet", ("datasheet", "datasheet"))]
)
def test_the_user_says_which_judges(prefer: str, expected: tuple[str, str]) -> None:
    assert origins(choose(CARD, Wish(prefer=prefer), ceilings=carrying(DRAM, PRODUCT))) == expected


def test_a_cache_that_only_a_measurement_knows_stays_under_the_datasheets_roof() -> None:
    l2 = replace(DRAM, level="l2", value=5e12, capacity_bytes=40 << 20)
    chosen = choose(CARD, Wish(prefer="datasheet"), ceilings=carrying(l2, DRAM, PRODUCT))
    assert chosen.roof is not None and chosen.roof.bandwidth(1 << 20) == l2
    assert chosen.roof.bandwidth().origin == "datasheet"  # type: ignore[union-attr]


def test_what_is_not_known_cannot_judge() -> None:
    with pytest.raises(OptionError, match="torchroof calibrate"):
        choose(CARD, Wish(prefer="measured"))
    with pytest.raises(OptionError, match="no datasheet peaks"):
        choose({}, Wish(prefer="datasheet"), on_cpu=True, ceilings=carrying(DRAM, PRODUCT))
    with pytest.raises(OptionError, match="must be one of"):
        choose(CARD, Wish(prefer="sheet"))


def test_given_ceilings_go_before_all() -> None:
    given = replace(DRAM, origin="given", pattern=None)
    chosen = choose(CARD, Wish(ceilings=(given,)), ceilings=carrying(DRAM, PRODUCT))
    assert chosen.roof is not None and chosen.roof.ceilings == (given,)
    chosen = choose(CARD, Wish(device="T4", ceilings=(given,)))
    assert chosen.roof is not None and chosen.roof.bandwidth() == given and chosen.roof.matched == "t4"


CPU = Cached("k", "A cpu", "cpu", "A cpu, 2 threads", (DRAM,))
HERE = (CPU, Cached("g", str(A100["name"]), "cuda", str(A100["name"]), (DRAM, PRODUCT)))


def test_local_ceilings_are_those_of_the_same_device() -> None:
    chosen = choose(CARD, Wish(local=HERE))
    assert origins(chosen) == ("measured", "measured") and chosen.notes == ()
    chosen = choose({}, Wish(local=HERE), on_cpu=True, device_names={"0": "A cpu, 2 threads"})
    assert chosen.roof is not None and chosen.roof.ceilings == (DRAM,) and chosen.notes == ()


def test_a_gpus_trace_never_gets_a_cpus_ceilings() -> None:
    with pytest.raises(UnknownDevice, match="no ceilings of NVIDIA A100-SXM4-40GB have been measured"):
        choose(CARD, Wish(local=(CPU,)))
    with pytest.raises(UnknownDevice, match="which the trace does not name"):
        choose({}, Wish(local=HERE))
    with pytest.raises(UnknownDevice, match="no ceilings of the CPU"):
        choose({}, Wish(local=HERE[1:]), on_cpu=True)


def test_another_cpus_ceilings_are_named() -> None:
    for names, said in (({"0": "Another cpu, 8 threads"}, "was on Another cpu, 8 threads"), ({}, "does not say")):
        (note,) = choose({}, Wish(local=HERE), on_cpu=True, device_names=names).notes
        assert said in note and "measured on A cpu, 2 threads" in note


def test_doubtful_local_ceilings_say_so() -> None:
    (note,) = choose(CARD, Wish(local=(replace(HERE[1], quiet=False),))).notes
    assert "may be too low" in note


def test_a_card_as_the_roof_of_a_cpu_run_is_told() -> None:
    (note,) = choose(CARD, Wish(device="T4"), on_cpu=True).notes
    assert "on a CPU" in note and "T4" in note

"""Ceilings as JSON, there and back, and everything that can be wrong with them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from torchroof.device.catalog import entries
from torchroof.device.ceilings_file import ceilings_from_json, ceilings_to_json, read_ceilings
from torchroof.device.roof import Ceiling
from torchroof.errors import CeilingsError

COMPUTE = {"kind": "compute", "precision": "float32", "pipe": "vector", "value": 1e12, "unit": "FLOP/s"}
MEMORY = {"kind": "bandwidth", "level": "dram", "value": 2e11, "unit": "byte/s"}
LAUNCH = {"kind": "launch", "value": 2e-6, "unit": "s"}


def test_every_ceiling_of_the_catalogue_comes_back_equal() -> None:
    for entry in entries():
        ceilings = entry.roof().ceilings
        assert ceilings_from_json(json.loads(json.dumps(ceilings_to_json(ceilings)))) == ceilings


def test_a_measured_ceiling_comes_back_equal() -> None:
    ceiling = Ceiling(
        kind="bandwidth",
        level="l2",
        value=2.5e10,
        unit="byte/s",
        origin="measured",
        source="triad",
        confidence="high",
        capacity_bytes=2**20,
        measured_at="2024-05-01T10:00:00Z",
    )
    assert ceilings_from_json(ceilings_to_json([ceiling])) == (ceiling,)


def test_a_short_file_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([COMPUTE, MEMORY | {"capacity_bytes": None}, LAUNCH]))
    compute, memory, launch = read_ceilings(path)
    assert (compute.value, compute.precision, compute.pipe) == (1e12, "float32", "vector")
    assert (memory.value, memory.level) == (2e11, "dram")
    assert (launch.value, launch.unit) == (2e-6, "s")
    assert {c.origin for c in (compute, memory, launch)} == {"given"}


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (COMPUTE | {"speed": 1}, "unknown key 'speed'"),
        (COMPUTE | {"kind": "flops"}, "unknown kind 'flops'"),
        (COMPUTE | {"unit": "TFLOP/s"}, "has the unit 'TFLOP/s'; it must be 'FLOP/s'"),
        (MEMORY | {"unit": "GB/s"}, "has the unit 'GB/s'; it must be 'byte/s'"),
        (LAUNCH | {"unit": "us"}, "has the unit 'us'; it must be 's'"),
        (COMPUTE | {"value": 0}, "value = 0, which is not a positive finite number"),
        (COMPUTE | {"value": -1.5}, "value = -1.5, which is not a positive finite number"),
        (COMPUTE | {"value": float("inf")}, "value = inf, which is not"),
        (COMPUTE | {"value": float("nan")}, "value = nan, which is not"),
        (COMPUTE | {"value": "1e12"}, "value = '1e12', which is not"),
        (COMPUTE | {"value": True}, "value = True, which is not"),
        (COMPUTE | {"value": None}, "lacks 'value'"),
        ({"value": 1, "unit": "s"}, "lacks 'kind'"),
        (COMPUTE | {"pipe": "tensor"}, "needs a precision and a pipe"),
        (COMPUTE | {"precision": None}, "needs a precision and a pipe"),
        (MEMORY | {"level": None}, "needs a level"),
        (MEMORY | {"pipe": "vector"}, "has pipe, which only a compute ceiling has"),
        (COMPUTE | {"level": "dram"}, "has level, which only a bandwidth ceiling has"),
        (LAUNCH | {"capacity_bytes": 1}, "has capacity_bytes, which only a bandwidth ceiling has"),
        (MEMORY | {"capacity_bytes": -1}, "capacity_bytes = -1, which is not a positive"),
        (MEMORY | {"capacity_bytes": 1.5}, "capacity_bytes = 1.5, which is not a whole number"),
        (MEMORY | {"origin": "guessed"}, "unknown origin 'guessed'"),
        (MEMORY | {"source": 3}, "source = 3, which is not a text"),
        ([], "is not an object"),
    ],
)
def test_what_is_wrong_is_named_with_its_position(item: Any, message: str) -> None:
    with pytest.raises(CeilingsError, match=re.escape(message)) as caught:
        ceilings_from_json([LAUNCH, item])
    assert str(caught.value).startswith("ceiling 2 ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [{}, "text", 3, None, []])
def test_ceilings_are_a_list_with_something_in_it(data: object) -> None:
    with pytest.raises(CeilingsError):
        ceilings_from_json(data)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot read"), (b"{", "is not JSON"), (b"\xff", "is not JSON"), (b"[3]", "ceiling 1")],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "c.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CeilingsError, match=message) as caught:
        read_ceilings(path)
    assert "c.json" in str(caught.value) and "\n" not in str(caught.value)

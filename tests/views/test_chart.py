"""The roofline in the terminal: golden text, points in their cells, and what must never pass."""

from __future__ import annotations

import unicodedata
from math import log10
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from picture_maker import DRAM, FLOAT16, ROOF, ROWS, drawn, row
from rich.cells import cell_len
from rich.console import Console, Group

from torchroof.device.roof import Ceiling
from torchroof.report.model import Layer
from torchroof.report.picture import Picture
from torchroof.views import chart
from torchroof.views.terminal import plain_text

GOLDEN = Path(__file__).parent / "golden"


def text(found: Picture, width: int, ascii_only: bool = False) -> list[str]:
    return plain_text(Group(*chart.draw(found, width, ascii_only)), width).splitlines()


@pytest.mark.parametrize(("width", "ascii_only", "name"), [(100, False, "chart_100"), (80, True, "chart_80_ascii")])
def test_golden(width: int, ascii_only: bool, name: str) -> None:
    layers = (Layer(path="net.fc1", type="Linear", flagged=True, why="far under its compute roof"),)
    found = "\n".join(text(drawn(*ROWS, layers=layers), width, ascii_only)) + "\n"
    assert found == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def plot(lines: list[str]) -> list[str]:
    """The rows of the plot, right of its wall."""
    return [line.split("│", 1)[1] for line in lines if "│" in line]


def test_a_point_stands_in_the_cell_of_its_intensity_and_rate() -> None:
    found = drawn(ROWS[0])
    rows = plot(text(found, 100))
    # No strip: 100 cells less 8 for the ticks and the wall.
    across = (log10(200) - found.x.low) / (found.x.high - found.x.low)
    up = (log10(2e13) - found.y.low) / (found.y.high - found.y.low)
    row_of_it = rows[len(rows) - 1 - int(up * len(rows))]
    assert row_of_it[int(across * 92)] == "1"
    assert sum(line.count("1") for line in rows if "TFLOP" not in line and "TB" not in line) == 1


def test_points_of_one_cell_are_told_in_the_key() -> None:
    lines = text(drawn(*(row(f"net.{i}", 10**10, 10**8, 5, 1) for i in range(3))), 100)
    key = [line for line in lines if "net." in line]
    assert [line.split()[0] for line in key] == ["1", "2", "3"]
    assert "at 1" not in key[0] and key[1].endswith("at 1") and key[2].endswith("at 1")


def test_the_key_tells_the_bound_in_words_and_a_suspicion_by_its_sign() -> None:
    lines = text(drawn(*ROWS), 100)
    odd = next(line for line in lines if "net.odd" in line)
    assert "◆ cache" in odd and "200%!" in odd
    copy = next(line for line in lines if "net.copy" in line)
    assert "■ memory" in copy and "4.0%" in copy and "25%" in copy


def test_colours_are_those_of_the_table() -> None:
    console = Console(width=100, force_terminal=True, color_system="standard", record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(Group(*chart.draw(drawn(*ROWS), 100)))
    assert "\x1b[32m● compute" in console.export_text(styles=True)


def test_ascii_is_ascii() -> None:
    evil = msgspec.structs.replace(ROWS[0], path="層.\x1b[31m\u202e×…")
    lines = text(drawn(evil, *ROWS[1:]), 80, ascii_only=True)
    assert all(line.isascii() and line.isprintable() for line in lines)


def test_a_ceiling_that_finds_no_room_for_its_name_is_still_told() -> None:
    many = [row(f"n.{i}.{j}", 10 ** (9 + j // 2), 10 ** (7 + i // 4), 1 + i, 0.5) for i in range(16) for j in range(8)]
    told = "\n".join(text(drawn(*many, ceilings=(FLOAT16, DRAM)), 60))
    assert "float16 matrix 100 TFLOP/s" in told and "dram 1 TB/s" in told


ROOFS: list[tuple[Ceiling, ...]] = [ROOF, (), (DRAM,), (FLOAT16,)]
figures = st.tuples(st.integers(0, 10**16), st.integers(1, 10**13), st.integers(1, 10**5), st.integers(0, 10**5))


@given(
    st.lists(figures, max_size=25), st.text(max_size=80), st.integers(60, 200), st.booleans(),
    st.sampled_from(ROOFS),
)  # fmt: skip
@settings(max_examples=40)
def test_nothing_is_wider_than_the_screen_or_steers_it(
    facts: list[tuple[int, int, int, int]], name: str, width: int, ascii_only: bool, roof: tuple[Ceiling, ...]
) -> None:
    rows = [row(f"{name}.{i}", f, b, us / 1e3, floor / 1e3) for i, (f, b, us, floor) in enumerate(facts)]
    found = drawn(*rows, ceilings=roof)
    lines = text(found, width, ascii_only)
    assert all(cell_len(line) <= width for line in lines)
    assert all(c.isprintable() or unicodedata.category(c) == "Zs" for line in lines for c in line)
    for ceiling in found.ceilings:
        assert f"{ceiling.name} {ceiling.rate}" in "\n".join(lines)

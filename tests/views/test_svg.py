"""The SVG and the sheet it shows: points where the geometry puts them, words clear of each other, names harmless."""

from __future__ import annotations

import io
import re
from math import log10
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from picture_maker import DRAM, FLOAT16, ROOF, ROWS, drawn, row

from torchroof.device.roof import Ceiling
from torchroof.errors import OptionError
from torchroof.report.model import Layer
from torchroof.report.placing import Box
from torchroof.views.drawing import HEIGHT, WIDTH, Mark, Stroke, Words, draw, sheet
from torchroof.views.svg import svg

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "</title><script>alert(1)</script>&lt;\"'\x1b[31m\x00\u202e\ufffe]]>"


def elements(text: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(text).iter(SVG + tag))


def marks(*rows: object, **more: object) -> dict[str, Mark]:
    items = draw(drawn(*rows, **more)).items  # type: ignore[arg-type]
    return {item.tip.splitlines()[0]: item for item in items if isinstance(item, Mark) and item.tip}


def test_a_point_lies_where_its_intensity_and_rate_say() -> None:
    found = drawn(*ROWS)
    x_axis, y_axis, frame = found.x, found.y, sheet(found).frame
    fc1 = marks(*ROWS)["net.fc1"]
    across = (log10(200) - x_axis.low) / (x_axis.high - x_axis.low)
    up = (log10(2e13) - y_axis.low) / (y_axis.high - y_axis.low)
    assert fc1.x == pytest.approx(frame.left + across * (frame.right - frame.left))
    assert fc1.y == pytest.approx(frame.bottom - up * (frame.bottom - frame.top))
    circles = [e for e in elements(svg(found), "circle") if e.get("class", "").startswith("f-compute")]
    assert f"{fc1.x:.1f}" in {e.get("cx") for e in circles}


def test_a_quarter_of_the_bandwidth_is_a_quarter_up_the_strip() -> None:
    copy, place = marks(*ROWS)["net.copy"], sheet(drawn(*ROWS))
    assert place.strip is not None and place.strip.left < copy.x < place.strip.right < place.frame.left
    zero, whole = place.strip_y(0.0), place.strip_y(1.0)
    assert (zero - copy.y) / (zero - whole) == pytest.approx(0.25)


def test_areas_follow_the_share_of_time() -> None:
    found = marks(row("a", 10**9, 10**8, 40, 1), row("b", 10**10, 10**8, 10, 1))
    # From the same smallest radius, four times the time adds twice the radius.
    assert (found["a"].radius - 4) / (found["b"].radius - 4) == pytest.approx(2)


def test_a_bound_has_a_shape_as_well_as_a_colour() -> None:
    bounds = ("compute", "memory", "cache", "latency", "communication", None)
    found = marks(*(row(f"net.{b}", 10**9 * (i + 1), 10**8, 1, 0.5, bound=b) for i, b in enumerate(bounds)))
    assert len({mark.shape for mark in found.values()}) == len(bounds)


def test_measured_lines_are_unbroken_and_others_dashed() -> None:
    lines = [item for item in draw(drawn(*ROWS)).items if isinstance(item, Stroke) and item.role == "roof"]
    place = sheet(drawn(*ROWS))
    by_height = {round(item.y1, 3): item for item in lines if item.y0 == item.y1}
    assert by_height[round(place.y(14), 3)].dashed and not by_height[round(place.y(13), 3)].dashed


def test_it_is_xml_with_a_title_a_description_and_nothing_foreign() -> None:
    text = svg(drawn(*ROWS))
    root = ElementTree.fromstring(text)
    assert root.get("viewBox") == "0 0 900 600" and root.get("role") == "img"
    assert root[0].tag == SVG + "title" and root[0].text == "Roofline by layer: A device"
    assert root[1].tag == SVG + "desc" and "net.fc1: 20% of its roof, 10% of step time" in (root[1].text or "")
    assert not re.search(r"href|<script|<image|@import|url\(", text)
    assert {e.tag.removeprefix(SVG) for e in root.iter()} == {
        "svg", "title", "desc", "style", "line", "polygon", "circle", "text", "g",
    }  # fmt: skip


def test_every_rule_of_its_style_reaches_only_itself() -> None:
    style = elements(svg(drawn(*ROWS)), "style")[0].text or ""
    light, dark = style.split("@media (prefers-color-scheme:dark){")
    for part in (light, dark.removesuffix("}")):
        rules = re.findall(r"([^{}]+)\{[^}]*\}", part)
        assert rules and all(rule.startswith(".torchroof-auto ") for rule in rules)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_theme_is_kept_to(theme: str) -> None:
    text = svg(drawn(*ROWS), theme)
    assert "prefers-color-scheme" not in text
    assert ("#0d1117" in text) is (theme == "dark")


def test_another_theme_is_refused() -> None:
    with pytest.raises(OptionError, match="no theme 'pink'"):
        svg(drawn(*ROWS), "pink")


def test_every_role_has_a_colour() -> None:
    text = svg(drawn(*ROWS), "light")
    used = set(re.findall(r"\b([fs]-[a-z]+)", " ".join(re.findall(r'class="([^"]*)"', text))))
    assert used <= set(re.findall(r"\.([fs]-[a-z]+)\{", text))


def test_names_cannot_leave_their_place() -> None:
    evil = msgspec.structs.replace(ROWS[0], path=EVIL)
    text = svg(drawn(evil, *ROWS[1:]))
    ElementTree.fromstring(text)
    assert "<script" not in text and not re.search("[\x00-\x09\x0b-\x1f\u202e\ufffe]", text)


def test_colliding_labels_and_all_ceilings_find_room() -> None:
    rows = [row(f"encoder.layer.{i}.attention.query", 10**10 + i, 10**8, 5, 1) for i in range(9)]
    drawing = draw(drawn(*rows))
    words = [item.text for item in drawing.items if isinstance(item, Words)]
    # All nine points are in one place: one name, and eight more counted.
    assert [text for text in words if "+8" in text and "attention.query" in text]
    assert {"float16 matrix 100 TFLOP/s, datasheet", "dram 1 TB/s, measured"} <= set(words)


ROOFS: list[tuple[Ceiling, ...]] = [ROOF, (), (DRAM,), (FLOAT16,)]
figures = st.tuples(
    st.integers(0, 10**16), st.integers(1, 10**13), st.integers(1, 10**5), st.integers(0, 10**5), st.booleans()
)


@given(st.lists(figures, max_size=25), st.text(max_size=60), st.sampled_from(ROOFS))
@settings(max_examples=40)
def test_labels_lie_inside_and_none_overlap(
    facts: list[tuple[int, int, int, int, bool]], name: str, roof: tuple[Ceiling, ...]
) -> None:
    rows = [
        row(f"{name}.{i}", flops, moved, us / 1e3, floor / 1e3, bound="latency" if flag else "compute")
        for i, (flops, moved, us, floor, flag) in enumerate(facts)
    ]
    layers = tuple(Layer(path=f"{name}.{i}", type=None, flagged=f[4]) for i, f in enumerate(facts))
    found = drawn(*rows, ceilings=roof, layers=layers)
    drawing, place = draw(found), sheet(found)
    outer = Box((place.strip or place.frame).left, place.frame.top, place.frame.right, place.frame.bottom)
    assert all(box.inside(outer) for box in drawing.labels)
    words = [item.box for item in drawing.items if isinstance(item, Words) and item.halo and not item.angle]
    assert not any(a.overlaps(b) for i, a in enumerate(words) for b in words[i + 1 :])
    level = [item for item in drawing.items if isinstance(item, Words) and not item.angle]
    assert all(item.box.inside(Box(0, 0, WIDTH, HEIGHT)) for item in level)
    text = svg(found)
    ElementTree.fromstring(text)
    assert not re.search(r'"-?(nan|inf)"|[ ,]nan', text)


@pytest.mark.parametrize("which", ["full", "no roof", "nothing"])
def test_the_png_shows_the_same_sheet(which: str) -> None:
    pytest.importorskip("tensorboard")
    from PIL import Image

    from torchroof.views.tensorboard.png import SCALE, png

    found = {"full": drawn(*ROWS), "no roof": drawn(*ROWS, ceilings=()), "nothing": drawn()}[which]
    image = Image.open(io.BytesIO(png(found)))
    assert image.size == (SCALE * WIDTH, SCALE * HEIGHT)
    for mark in [m for m in draw(found).items if isinstance(m, Mark) and m.shape == "circle"]:
        assert image.getpixel((round(SCALE * mark.x), round(SCALE * mark.y))) == (0x1A, 0x7F, 0x37)

"""The page as one file from disk: the same figures, a policy of its own, and names that want to be more than names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect
from reading import layer, report, row, uneven
from served import Tab

from torchroof import units
from torchroof.cli import main
from torchroof.report import board, codec
from torchroof.report.model import Note, ReportData
from torchroof.reports import Report
from torchroof.views.page import html

BLOCKS = 4
HOSTILE = (
    "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=2</script>",
    "<!--<script>",
    "javascript:window.hacked=3",
    "a\u202egnp.exe",
    "\u2028\u2029]]>'\"`${window.hacked=4}",
    "__proto__",
    "constructor",
    "&lt;b&gt;<b>bold</b>",
)


def folded() -> ReportData:
    """Four equal blocks of two layers, a head, an optimizer."""
    rows = [row(f"blocks.{i}.{name}", ns) for i in range(BLOCKS) for name, ns in (("up", 4000), ("down", 3000))]
    rows += [row("head", 9000), row("head", 5000, phase="backward"), row(None, 700, phase="optimizer", type=None)]
    layers = [layer("", "Model"), *(layer(f"blocks.{i}", "Block") for i in range(BLOCKS))]
    layers += [layer(str(r.path), "Linear") for r in rows[:-2]]
    return report(rows, layers)


def hostile() -> ReportData:
    """Every text of a report that a file may fill, filled."""
    rows = [
        row(name, 1000 * (at + 1), type=name, op=name, attribution=name, unknown=name, flops=None if at % 3 else 1000)
        for at, name in enumerate(HOSTILE)
    ]
    layers = [layer(name, name, aliases=(name,), why=name, flagged=True) for name in HOSTILE]
    data = report(rows, layers, notes=tuple(Note(kind="x", text=name) for name in HOSTILE))
    kernels = tuple(msgspec.structs.replace(k, name=HOSTILE[at]) for at, k in enumerate(data.kernels))
    device = msgspec.structs.replace(data.devices[0], name=HOSTILE[1])
    return msgspec.structs.replace(data, kernels=kernels, devices=(device,), environment={"torch": HOSTILE[0]})


@pytest.fixture
def shown(opened: Callable[..., Page], tmp_path: Path) -> Callable[..., Tab]:
    """Opens a report's file from disk."""

    def open_file(data: ReportData, view: str = "", **options: Any) -> Tab:
        file = tmp_path / "report.html"
        file.write_bytes(html(data).encode())
        page = opened(**options)
        page.goto(file.as_uri() + (f"#{view}" if view else ""))
        page.locator("#torchroof[data-details=ready]").wait_for()
        return Tab(page, page)

    return open_file


def test_equal_layers_are_one_line_until_they_are_unfolded(shown: Callable[..., Tab]) -> None:
    tab = shown(folded())
    tab.page.get_by_label("fold out all").click()
    assert set(tab.listed()) == {
        "", "blocks.[0–3]", "blocks.[0–3].up", "blocks.[0–3].down", "head", "(optimizer)",
    }  # fmt: skip
    # Four of 4,000 ns, in one step.
    assert tab.cell("blocks.[0–3].up", "time") == units.TimeScale.of(42_700).text(16_000)
    tab.row("blocks.[0–3].up").click()
    expect(tab.page.locator(".panel .members button")).to_have_count(BLOCKS)
    tab.page.locator(".panel .members button").nth(2).click()
    expect(tab.page.locator(".t-row.selected")).to_have_attribute("data-key", "blocks.2.up")
    assert tab.cell("blocks.2.up", "time") == units.TimeScale.of(42_700).text(4000)


def test_the_headline_names_what_the_list_begins_with(shown: Callable[..., Tab]) -> None:
    """And a click on it opens that."""
    tab = shown(uneven())
    told = board.board(uneven()).headline
    first = tab.page.locator(".starts li").first.locator(".start-name")
    expect(first).to_have_text("blocks.[0–7].up×8")
    expect(tab.page.locator(".worst")).to_have_text(str(told.worst))
    assert str(told.worst).startswith("blocks.[0–7].up ×8")
    tab.page.locator(".worst").click()
    expect(tab.page.locator(".t-row.selected")).to_have_attribute("data-key", "blocks.[0–7].up")


def test_the_file_from_the_command_line(opened: Callable[..., Page], tmp_path: Path) -> None:
    report_file, page_file = tmp_path / "r.json", tmp_path / "r.html"
    Report(folded()).save(report_file)
    assert main(["report", str(report_file), "--format", "html", "-o", str(page_file)]) == 0
    page = opened()
    page.goto(page_file.as_uri())
    expect(page.locator(".t-row").first).to_be_visible()
    expect(page.locator("h1")).to_have_text(Report(folded()).headline.verdict)


def test_the_view_is_in_the_address_of_the_file(shown: Callable[..., Tab]) -> None:
    tab = shown(folded(), "shape=flat&sort=label&sel=head")
    expect(tab.page.locator(".t-row.selected")).to_have_attribute("data-key", "head")
    assert tab.listed() == ["(optimizer)", "blocks.[0–3].down", "blocks.[0–3].up", "head"]
    tab.page.locator("[data-sort=time]").click()
    assert "sort=time" in tab.page.url


@pytest.mark.parametrize("dark", [False, True])
def test_dark_follows_the_system_and_can_be_switched(shown: Callable[..., Tab], dark: bool) -> None:
    tab = shown(folded(), color_scheme="dark" if dark else "light")
    page = tab.page.locator("html")
    expect(page).to_have_attribute("data-theme", "dark" if dark else "light")
    tab.page.get_by_label("dark or light").click()
    expect(page).to_have_attribute("data-theme", "light" if dark else "dark")


def test_hostile_names_are_only_names(shown: Callable[..., Tab]) -> None:
    tab = shown(hostile(), "fold=0", viewport={"width": 2400, "height": 1600})
    page = tab.page
    page.get_by_label("fold out all").click()
    seen = page.locator("body").inner_text()
    for name in HOSTILE:
        assert re.sub("[\u202e\u2028\u2029]", "?", name) in seen, name
    for at in range(len(HOSTILE)):
        page.locator(".t-row").nth(at).click()
        expect(page.locator(".panel .summary")).to_be_visible()
    for by in ("op", "kernel"):
        page.locator(f"[data-control=by] [data-value={by}]").click()
        page.locator(".t-row").first.click()
    page.mouse.move(300, 600)
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, b > b, main script, iframe, a[href^=javascript]").count() == 0
    assert page.evaluate("Object.prototype.hasOwnProperty.call({}, 'x')") is False
    texts = page.locator("[data-column=label]").evaluate_all("all => all.map(one => one.innerHTML)")
    assert not any("<img" in text or "<script" in text for text in texts)


def test_the_chart_of_hostile_names_is_saved(shown: Callable[..., Tab]) -> None:
    """XML forbids most control characters: one in a name made the SVG malformed, and the PNG was never saved."""
    tab = shown(report([row("a\x00b\x1b\ufffe]]>&<", 2000), row("b", 1000)], [layer("b", "Linear")]))
    saved = {}
    for kind in ("SVG", "PNG"):
        tab.page.get_by_title("Save the chart").click()
        with tab.page.expect_download() as download:
            tab.page.locator(f"[data-action={kind}]").click()
        saved[kind] = Path(download.value.path()).read_bytes()
    root = ElementTree.fromstring(saved["SVG"])
    assert "a?b??]]>&<" in [text.strip() for text in root.itertext()]
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("data-")]
    assert saved["PNG"].startswith(b"\x89PNG")


def test_the_policy_lets_only_our_script_run() -> None:
    text = html(folded())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    assert rules["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/=]{44}'", rules["script-src"])
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/=]{44}'", rules["style-src"])
    assert "unsafe" not in policy[1] and "http" not in policy[1]


def test_another_script_in_the_file_does_not_run(chromium: Browser, tmp_path: Path) -> None:
    added = tmp_path / "added.html"
    added.write_bytes(html(folded()).replace("</body>", "<script>window.hacked=1</script></body>").encode())
    page = chromium.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(added.as_uri())
    expect(page.locator(".t-row").first).to_be_visible()
    assert page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in text for text in refused)
    page.close()


def test_what_is_in_the_file_is_the_board_and_the_details(tmp_path: Path) -> None:
    for data in (folded(), hostile()):
        text = html(data)
        block = re.search(r'<script type="application/json" id="torchroof-data">(.*?)</script>', text, re.DOTALL)
        assert block is not None and "<" not in block[1] and "\u2028" not in block[1]
        found = json.loads(block[1])
        made = json.loads(codec.encode(board.whole(data)))
        for one in (found, made):
            one["page"]["headline"].pop("ceilings")  # texts of ages
        assert found == made
        assert text.count("<script") == 2 and "http://" not in text.replace("http://www.w3.org/", "")
        assert re.findall(r"https?://(?!www\.w3\.org)", text) == []


def test_a_report_without_anything(shown: Callable[..., Tab]) -> None:
    empty = msgspec.structs.replace(report([row("a", 1)]), rows=(), kernels=(), layers=(), devices=())
    totals = msgspec.structs.replace(empty.totals, kernel_ns=None, kernels=None, step_ns=0, busy_ns=0, causes={})
    tab = shown(msgspec.structs.replace(empty, totals=totals))
    expect(tab.page.locator("h1")).to_contain_text("not in the file")
    assert "NaN" not in tab.page.locator("body").inner_text()
    assert "null" not in tab.page.locator("body").inner_text()
    assert "undefined" not in tab.page.locator("body").inner_text()


def test_a_report_without_a_roof(shown: Callable[..., Tab]) -> None:
    data = folded()
    bare = tuple(
        msgspec.structs.replace(
            r, floor_ns=None, efficiency=None, headroom_ns=None, bound=None, ceiling=None, side=None
        )
        for r in data.rows
    )
    device = msgspec.structs.replace(data.devices[0], ceilings=())
    tab = shown(msgspec.structs.replace(data, rows=bare, devices=(device,)))
    expect(tab.page.locator(".ceilings")).to_contain_text("No roof is known")
    expect(tab.page.locator(".chart path.point")).to_have_count(4)
    assert tab.page.locator("[data-roof]").count() == 0
    assert tab.cell("head", "headroom") == "?"

"""The page in a real Chromium, in a real TensorBoard, on runs that were really profiled."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from served import Server, Tab

import torchroof
from torchroof import units
from torchroof.report.board import board as board_of
from torchroof.report.difference import difference
from torchroof.report.explain import explain
from torchroof.report.line import Line
from torchroof.report.tree import Node, tree
from torchroof.views.tensorboard.logdir import write

SECOND = "&p.torchroof.run=second%2Ftorchroof"
WIDE = {"width": 2400, "height": 1600}


@pytest.fixture(scope="module")
def second(runs: Path) -> torchroof.Report:
    return torchroof.load(runs / "second" / "torchroof.report.json")


@pytest.fixture(scope="module")
def first(runs: Path) -> dict[int, torchroof.Report]:
    return {step: torchroof.load(runs / "first" / f"torchroof.{step}.report.json") for step in (2, 5, 8)}


def scale_of(report: torchroof.Report) -> units.TimeScale:
    lines = report.lines(by="phase")
    return units.TimeScale.of(max(lines.total.kernel_ns, lines.step_ns // 100) / lines.steps)


def key(node: Node) -> str:
    return node.label if node.path is None else node.path


def copied(shown: Tab, kind: str) -> str:
    """What the page puts on the clipboard."""
    shown.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.frame.get_by_role("button", name="Copy", exact=True).click()
    shown.frame.locator(f"[data-action={kind}]").click()
    expect(shown.frame.locator(".toast")).to_contain_text("copied")
    text: str = shown.page.evaluate("() => navigator.clipboard.readText()")
    return text


def headroom(line: Line, scale: units.TimeScale, steps: int) -> str:
    """What could be won back, in the words of the terminal's table."""
    if not line.headroom_is_least:
        return scale.text(line.headroom_least_ns / steps)
    return f"≥{scale.text(line.headroom_least_ns / steps).lstrip('<')}" if line.headroom_least_ns else "?"


def test_every_line_has_the_names_and_the_numbers_of_the_report(
    tab: Callable[..., Tab], second: torchroof.Report
) -> None:
    shown = tab(SECOND, viewport=WIDE)
    shown.frame.get_by_label("fold out all").click()
    scale, steps = scale_of(second), second.lines().steps
    nodes = tree(second.data)
    assert len(nodes) > 8
    for node in nodes:
        line = node.total
        told = {column: shown.cell(key(node), column) for column in ("headroom", "time", "host", "flops", "bytes")}
        assert told == {
            "headroom": headroom(line, scale, steps),
            "time": scale.text(line.kernel_ns / steps),
            "host": scale.text(line.host_ns / steps),
            "flops": units.quantity(None if line.flops is None else line.flops / steps, ""),
            "bytes": units.quantity(None if line.bytes is None else line.bytes / steps, ""),
        }, node.label
        for phase, part in node.phases.items():
            assert shown.cell(key(node), f"phase:{phase}") == scale.text(part.kernel_ns / steps)
        assert shown.cell(key(node), "efficiency").strip("~!") == units.percent(line.efficiency)
        assert shown.cell(key(node), "bound") == (line.bound or "?")
        assert shown.cell(key(node), "type") == (node.type or "")


def test_copied_csv_has_every_figure_exactly(tab: Callable[..., Tab], second: torchroof.Report) -> None:
    shown = tab(f"{SECOND}&p.torchroof.shape=flat&p.torchroof.fold=0", viewport=WIDE)
    rows = list(csv.DictReader(io.StringIO(copied(shown, "CSV"))))
    lines = {line.label: line for line in second.lines().lines}
    assert {row["label"] for row in rows} == set(lines)
    for row in rows:
        line = lines[row["label"]]
        for name in ("kernel_ns", "host_ns", "headroom_least_ns", "flops", "bytes", "kernels"):
            value = getattr(line, name)
            assert row[name] == ("" if value is None else str(value)), (row["label"], name)
        for name in ("efficiency", "intensity", "achieved_flops_per_s", "achieved_bytes_per_s"):
            value = getattr(line, name)
            assert (float(row[name]) if row[name] else None) == value, (row["label"], name)
        assert row["bound"] == (line.bound or "")


def test_copied_markdown_is_a_table_of_what_is_shown(tab: Callable[..., Tab]) -> None:
    shown = tab(SECOND)
    lines = copied(shown, "Markdown").splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert len(lines) == 2 + len(shown.listed())
    assert lines[0].startswith("| Layer | Class | Headroom")


def test_the_headline_is_the_reports(tab: Callable[..., Tab], second: torchroof.Report) -> None:
    shown, head = tab(SECOND), board_of(second.data).headline
    expect(shown.frame.locator("h1")).to_have_text(head.verdict)
    expect(shown.frame.locator("[data-figure=step_ns]")).to_have_text(units.duration(head.step_ns))
    for tile, value in (("step efficiency", head.step_efficiency), ("MFU", head.mfu), ("HFU", second.data.totals.hfu)):
        expect(shown.frame.locator(f"[data-tile='{tile}'] .tile-value")).to_have_text(
            re.compile(f"^≥?{units.percent(value)}$")
        )
    widths = shown.frame.locator(".bar .segment").evaluate_all(
        "all => all.map(one => [one.dataset.cause, Number(one.style.flexGrow)])"
    )
    assert widths == [[share.name, pytest.approx(share.fraction, rel=1e-4)] for share in head.causes]
    if head.worst:
        expect(shown.frame.locator(".worst")).to_have_text(head.worst)


@pytest.mark.parametrize("by", ["layer", "op"])
def test_the_chart_has_the_points_of_the_report(tab: Callable[..., Tab], second: torchroof.Report, by: str) -> None:
    """By their coordinates, and each drawn where the axes' ticks say that it is."""
    shown = tab(f"{SECOND}&p.torchroof.by={by}&p.torchroof.fold=0")
    drawn = shown.frame.locator(".chart path.point").evaluate_all(
        """all => all.map(one => ({key: one.dataset.key, x: one.dataset.x ?? null, y: Number(one.dataset.y),
            share: Number(one.dataset.share), bound: one.dataset.bound,
            at: one.getAttribute("transform").match(/[-\\d.]+/g).map(Number)}))"""
    )
    points = {point.label: point for point in second.picture(by, fold=False).points}
    assert {one["key"] or "(root)" for one in drawn} == set(points)
    for one in drawn:
        point = points[one["key"] or "(root)"]
        assert (None if one["x"] is None else float(one["x"])) == pytest.approx(point.x, abs=1e-12)
        assert one["y"] == pytest.approx(point.y, abs=1e-12)
        assert one["share"] == pytest.approx(point.share) and one["bound"] == (point.bound or "unplaced")
    ticks = shown.frame.locator(".chart svg").evaluate(
        """svg => [...svg.querySelectorAll(".tick")].map(one => [one.querySelector("text").textContent,
            ...one.getAttribute("transform").match(/[-\\d.]+/g).map(Number)])"""
    )
    decades = {f"{10**n}{prefix}": n + e for e, prefix in enumerate(("", "k", "M", "G")) for n in range(3)}
    decades = {
        text: n if text.isdigit() else 3 * "kMG".index(text[-1]) + 3 + len(text) - 2 for text, n in decades.items()
    }
    decades |= {"0.1": -1, "0.01": -2, "0.001": -3}
    across = {decades[text]: x for text, x, y in ticks if not y and text in decades}
    low, high = min(across), max(across)
    for one in drawn:
        if one["x"] is not None and high > low:
            expected = across[low] + (float(one["x"]) - low) * (across[high] - across[low]) / (high - low)
            assert one["at"][0] == pytest.approx(expected, abs=1.0)


def test_ceilings_are_drawn_as_they_are_known(tab: Callable[..., Tab], second: torchroof.Report) -> None:
    shown = tab(SECOND)
    lines = shown.frame.locator("[data-roof]").evaluate_all(
        "all => all.map(one => [one.dataset.roof, Number(one.dataset.value), one.hasAttribute('stroke-dasharray')])"
    )
    expected = [(c.name, c.value, not c.measured) for c in second.picture().ceilings]
    assert sorted(map(tuple, lines)) == sorted(expected) and len(lines) >= 2


def test_sorting(tab: Callable[..., Tab], second: torchroof.Report) -> None:
    shown = tab(f"{SECOND}&p.torchroof.shape=flat&p.torchroof.fold=0")
    lines = {line.label: line for line in second.lines().lines}

    def values(name: str) -> list[int]:
        return [getattr(lines[key or "(root)"], name) for key in shown.listed()]

    assert values("headroom_most_ns") == sorted(values("headroom_most_ns"), reverse=True)
    shown.frame.locator("[data-sort=time]").click()
    assert values("kernel_ns") == sorted(values("kernel_ns"), reverse=True)
    shown.frame.locator("[data-sort=time]").click()
    assert values("kernel_ns") == sorted(values("kernel_ns"))
    shown.frame.locator("[data-sort=label]").click()
    labels = [key or "(root)" for key in shown.listed()]
    assert labels == sorted(labels, key=lambda label: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", label)])
    shown.frame.locator("[data-sort=flops]").click()
    known = [lines[key or "(root)"].flops for key in shown.listed()]
    assert known == sorted([v for v in known if v is not None], reverse=True) + [None] * known.count(None)


def test_filters(tab: Callable[..., Tab], second: torchroof.Report) -> None:
    shown = tab(SECOND)
    shown.frame.get_by_label("fold out all").click()
    shown.page.keyboard.press("/")
    shown.page.keyboard.type("gelu")
    gelu = [node for node in tree(second.data) if node.type == "GELU"]
    expect(shown.frame.locator(".t-row:not(.faint)")).to_have_count(len(gelu))
    # Its containers stay, faint, so that it has its place.
    assert shown.listed()[0] == "" and set(shown.listed()) > {node.path for node in gelu}
    shown.control("clear").click()
    shown.control("class").select_option("Linear")
    linear = [node for node in tree(second.data) if node.type == "Linear"]
    expect(shown.frame.locator(".t-row:not(.faint)")).to_have_count(len(linear))
    shown.control("clear").click()
    shown.control("phase").select_option("backward")
    scale, steps = scale_of(second), second.lines().steps
    for node in tree(second.data):
        if "backward" in node.phases and shown.row(key(node)).count():
            assert shown.cell(key(node), "time") == scale.text(node.phases["backward"].kernel_ns / steps)
    shown.control("phase").select_option("")
    bound = second.picture().points[0].bound or "unplaced"
    shown.frame.locator(f"button[data-bound={bound}]").click()
    bounds = shown.frame.locator(".t-row:not(.faint) [data-column=bound]")
    expect(bounds.filter(has_not_text=bound)).to_have_count(0)
    assert set(bounds.all_inner_texts()) == {bound}


def test_folding_in_and_out(tab: Callable[..., Tab], second: torchroof.Report) -> None:
    shown = tab(SECOND)
    shown.frame.get_by_label("fold in all").click()
    assert not any(one.startswith("blocks") for one in shown.listed())
    shown.row("").locator("[data-twist]").click()
    nodes = tree(second.data)
    below = [node for node in nodes if node.parent == 0]
    assert {key(node) for node in below} < set(shown.listed())
    inner = next(node for node in below if node.path == "head")
    shown.row("head").locator("[data-twist]").click()
    children = {key(node) for node in nodes if node.parent is not None and nodes[node.parent] is inner}
    assert children and children < set(shown.listed())
    shown.row("head").locator("[data-twist]").click()
    assert not children & set(shown.listed())


def test_selecting_opens_the_accounting(tab: Callable[..., Tab], second: torchroof.Report) -> None:
    shown = tab(f"{SECOND}&p.torchroof.fold=0")
    shown.frame.get_by_label("fold out all").click()
    shown.row("head.0").click()
    account = explain(second.data, "head.0")
    panel = shown.frame.locator(".panel")
    expect(panel.locator("h2")).to_contain_text("Linear")
    expect(shown.root()).to_have_attribute("data-details", "ready")
    cards = panel.locator("details.part")
    expect(cards).to_have_count(len(account.parts))
    for at, part in enumerate(account.parts):
        card = cards.nth(at)
        assert (card.get_attribute("data-op"), card.get_attribute("data-phase")) == (part.op or "", part.phase)
        told = card.text_content() or ""
        for words in (part.formula, part.verdict, part.because, units.duration(part.kernel_ns / account.steps)):
            assert words is None or words in told, (part.op, words)
        for ceiling in part.ceilings:
            assert units.quantity(ceiling.value, "") in told
    # The chart marks it, and nothing else.
    marked = shown.frame.locator(".chart path.point").evaluate_all(
        "all => all.filter(one => one.getAttribute('opacity') === '1').map(one => one.dataset.key)"
    )
    assert marked == ["head.0"]
    shown.press("Escape")
    expect(panel.locator("h2")).to_have_text("Where to start")


def test_a_click_on_a_point_selects_its_line(tab: Callable[..., Tab], second: torchroof.Report) -> None:
    shown = tab(SECOND, viewport=WIDE)
    smallest = shown.frame.locator(".chart path.point").last  # it lies on top
    name = smallest.get_attribute("data-key") or ""
    box = smallest.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    shown.page.mouse.move(x - 3, y)
    shown.page.mouse.move(x, y)
    expect(shown.frame.locator(".tip")).to_be_visible()
    point = next(p for p in second.picture().points if p.label.split(" ×")[0] == (name or "(root)"))
    expect(shown.frame.locator(".tip")).to_contain_text(f"{units.percent(point.efficiency)} of what the roof allows")
    shown.page.mouse.down()
    shown.page.mouse.up()
    expect(shown.frame.locator(".t-row.selected")).to_have_attribute("data-key", name)


def test_a_box_selects_points(tab: Callable[..., Tab]) -> None:
    shown = tab(f"{SECOND}&p.torchroof.shape=flat", viewport=WIDE)
    count = shown.frame.locator(".chart path.point").count()
    shown.frame.locator("[data-control=drag] [data-value=box]").click()
    box = shown.frame.locator(".chart-canvas").bounding_box()
    assert box is not None
    shown.page.mouse.move(box["x"] + 47, box["y"] + 16)
    shown.page.mouse.down()
    shown.page.mouse.move(box["x"] + 300, box["y"] + 200)
    shown.page.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] - 46)
    shown.page.mouse.up()
    expect(shown.frame.locator(".panel h2")).to_have_text(re.compile(r"\d+ points? in the box"))
    inside = int((shown.frame.locator(".panel h2").inner_text()).split()[0])
    assert 0 < inside <= count
    expect(shown.frame.locator(".t-row")).to_have_count(inside)
    shown.press("Escape")
    expect(shown.frame.locator(".panel h2")).to_have_text("Where to start")


def test_the_window_changes(tab: Callable[..., Tab], first: dict[int, torchroof.Report]) -> None:
    shown = tab("&p.torchroof.run=first%2Ftorchroof")
    step = shown.frame.locator("[data-figure=step_ns]")
    expect(shown.root()).to_have_attribute("data-step", "8")  # the last is shown first
    expect(step).to_have_text(units.duration(first[8].headline.step_ns))
    shown.frame.locator("h1").click()
    shown.press("[")
    expect(shown.root()).to_have_attribute("data-step", "5")
    expect(step).to_have_text(units.duration(first[5].headline.step_ns))
    slider = shown.frame.get_by_label("window", exact=True)
    slider.focus()
    shown.press("ArrowLeft")
    expect(shown.root()).to_have_attribute("data-step", "2")
    expect(step).to_have_text(units.duration(first[2].headline.step_ns))
    assert "p.torchroof.step=2" in shown.page.evaluate("location.hash")


def test_windows_come_while_the_page_is_open(
    start: Callable[..., Server], tab: Callable[..., Tab], runs: Path, tmp_path: Path
) -> None:
    """What is read stays in view, and what training writes meanwhile is there to be chosen."""
    report = torchroof.load(runs / "second" / "torchroof.report.json")
    parts = (report.data, report.headline, report.lines(top=3), tmp_path)
    write(*parts, step=1)
    write(*parts, step=2)
    shown = tab(server=start(tmp_path))
    slider = shown.frame.get_by_label("window", exact=True)
    expect(shown.root()).to_have_attribute("data-step", "2")
    shown.frame.locator("h1").click()
    shown.press("[")
    expect(shown.root()).to_have_attribute("data-step", "1")
    shown.row("head").click()
    write(*parts, step=3)
    write(*parts, step=4)
    expect(slider).to_have_attribute("max", "3", timeout=40_000)  # the page asks every ten seconds
    expect(shown.root()).to_have_attribute("data-step", "1")
    expect(slider).to_have_value("0")
    expect(shown.frame.locator(".t-row.selected")).to_have_attribute("data-key", "head")
    shown.frame.locator("h1").click()
    for step in ("2", "3", "4"):
        shown.press("]")
        expect(shown.root()).to_have_attribute("data-step", step)


def test_another_run_is_chosen(tab: Callable[..., Tab], second: torchroof.Report) -> None:
    shown = tab("&p.torchroof.run=first%2Ftorchroof")
    shown.frame.get_by_role("button", name="run", exact=True).click()
    shown.frame.get_by_role("option").filter(has_text="second/torchroof").click()
    expect(shown.root()).to_have_attribute("data-run", "second/torchroof")
    expect(shown.frame.locator("[data-figure=step_ns]")).to_have_text(units.duration(second.headline.step_ns))


def test_two_runs_are_compared(
    tab: Callable[..., Tab], first: dict[int, torchroof.Report], second: torchroof.Report
) -> None:
    shown = tab(f"{SECOND}&p.torchroof.shape=flat&p.torchroof.fold=0", viewport=WIDE)
    shown.frame.get_by_role("button", name="baseline").click()
    shown.frame.get_by_role("option").filter(has_text="first/torchroof step 5").click()
    expect(shown.root()).to_have_attribute("data-compared", "yes")
    scale = scale_of(second)

    def signed(ns: float) -> str:
        return "0" if ns == 0 else f"{'+' if ns > 0 else '−'}{scale.text(abs(ns))}"

    changes = difference(second.data, first[5].data).lines
    assert {c.status for c in changes} == {"both", "added", "removed"}
    for change in changes:
        name = "" if change.path == "" else change.label
        row = f"− {name}" if change.status == "removed" else name
        assert shown.cell(row, "d_time") == signed(change.kernel_ns), change.label
        assert shown.cell(row, "d_headroom") == signed(change.headroom_least_ns), change.label
        tags = shown.row(row).locator(".tag").all_inner_texts()
        assert tags == {"both": [], "added": ["new"], "removed": ["gone"]}[change.status]
    moved = second.headline.step_ns - first[5].headline.step_ns
    expect(shown.frame.locator("[data-figure=step_change]")).to_contain_text(
        f"{'+' if moved > 0 else '−'}{units.duration(abs(moved))}"
    )


def test_a_link_restores_the_view(tab: Callable[..., Tab], board: Server) -> None:
    shown = tab("&p.torchroof.run=first%2Ftorchroof")
    shown.frame.locator("[data-control=shape] [data-value=flat]").click()
    shown.frame.locator("[data-sort=time]").click()
    shown.control("class").select_option("LayerNorm")
    shown.frame.locator("h1").click()
    shown.press("[")
    expect(shown.root()).to_have_attribute("data-step", "5")
    shown.frame.locator(".t-row").first.click()
    keys, selected = shown.listed(), shown.frame.locator(".t-row.selected").get_attribute("data-key")
    address = shown.page.evaluate("location.href")
    assert quote(selected or "", safe="") in address
    again = tab(address.partition("#torchroof")[2])
    assert again.listed() == keys
    expect(again.root()).to_have_attribute("data-step", "5")
    expect(again.frame.locator(".t-row.selected")).to_have_attribute("data-key", selected or "")
    expect(again.frame.locator("[data-control=class]")).to_have_value("LayerNorm")
    expect(again.frame.locator(".sorted [data-sort=time]")).to_have_count(1)
    # A hash that changes under an open page is followed, too.
    again.page.evaluate("location.hash = location.hash.replace('step=5', 'step=2')")
    expect(again.root()).to_have_attribute("data-step", "2")


def test_a_link_restores_a_comparison_and_what_is_searched_for(tab: Callable[..., Tab]) -> None:
    shown = tab(SECOND)
    shown.frame.get_by_role("button", name="baseline").click()
    shown.frame.get_by_role("option").filter(has_text="first/torchroof step 5").click()
    expect(shown.root()).to_have_attribute("data-compared", "yes")
    shown.frame.get_by_role("button", name="Ops", exact=True).click()
    shown.frame.get_by_role("button", name="By phase", exact=True).click()
    shown.page.keyboard.press("/")
    shown.page.keyboard.type("norm")
    shown.frame.locator(".t-row").first.click()
    keys = shown.listed()
    assert keys and all("norm" in key for key in keys)
    again = tab(shown.page.evaluate("location.href").partition("#torchroof")[2])
    expect(again.root()).to_have_attribute("data-compared", "yes")
    assert again.listed() == keys
    for name in ("Ops", "By phase"):
        expect(again.frame.get_by_role("button", name=name, exact=True)).to_have_attribute("aria-pressed", "true")
    expect(again.frame.get_by_role("searchbox")).to_have_value("norm")
    expect(again.frame.locator(".t-row.selected")).to_have_attribute("data-key", keys[0])
    points = "all => all.map(one => one.dataset.key + one.getAttribute('transform'))"
    drawn = [one.frame.locator(".chart path.point").evaluate_all(points) for one in (shown, again)]
    assert drawn[0] == drawn[1] and drawn[0]


def test_dark_follows_tensorboard(tab: Callable[..., Tab]) -> None:
    shown = tab(SECOND)
    body = shown.frame.locator("body")
    light = body.evaluate("body => getComputedStyle(body).backgroundColor")
    shown.page.locator("app-header-dark-mode-toggle button").click()
    shown.page.get_by_role("menuitem", name="Dark", exact=True).click()
    expect(shown.frame.locator("html")).to_have_attribute("data-theme", "dark")
    assert body.evaluate("body => getComputedStyle(body).backgroundColor") != light
    point = shown.frame.locator(".chart path.point").first
    assert point.get_attribute("stroke") != "#ffffff"
    dark = tab(SECOND, color_scheme="dark")
    expect(dark.frame.locator("html")).to_have_attribute("data-theme", "dark")


def test_everything_by_keyboard(tab: Callable[..., Tab], second: torchroof.Report) -> None:
    shown = tab(SECOND)
    shown.frame.locator("h1").click()
    shown.press("t")
    shown.press("Home")
    shown.press("ArrowLeft")  # folds the model in
    assert not any(one.startswith("blocks") for one in shown.listed())
    shown.press("ArrowRight")
    shown.press("ArrowDown")
    shown.press("Enter")
    chosen = shown.frame.locator(".t-row.selected")
    expect(chosen).to_have_count(1)
    shown.press("Escape")
    shown.press("r")
    shown.press("ArrowRight")
    expect(shown.frame.locator(".tip")).to_be_visible()
    shown.press("Enter")
    expect(shown.frame.locator(".panel .summary")).to_be_visible()
    shown.press("Escape")
    shown.press("o")
    assert shown.listed()[0].startswith("aten::") or shown.listed()[0].startswith("(")
    shown.press("k")
    expect(shown.frame.locator("[data-sort=each]")).to_be_visible()
    shown.press("?")
    expect(shown.frame.get_by_role("dialog")).to_be_visible()
    shown.press("Escape")
    expect(shown.frame.get_by_role("dialog")).to_have_count(0)


def test_the_chart_is_saved(tab: Callable[..., Tab]) -> None:
    shown = tab(SECOND)
    for kind, begins in (("SVG", b"<?xml"), ("PNG", b"\x89PNG")):
        shown.frame.get_by_title("Save the chart").click()
        with shown.page.expect_download() as saved:
            shown.frame.locator(f"[data-action={kind}]").click()
        assert saved.value.suggested_filename == f"roofline-second-torchroof-2.{kind.lower()}"
        content = Path(saved.value.path()).read_bytes()
        assert content.startswith(begins)
        if kind == "SVG":
            assert b"<path" in content and b"<script" not in content and b"class=" not in content


def test_kernels_are_those_of_the_report(tab: Callable[..., Tab], second: torchroof.Report) -> None:
    shown = tab(f"{SECOND}&p.torchroof.by=kernel", viewport=WIDE)
    rows = list(csv.DictReader(io.StringIO(copied(shown, "CSV"))))
    told = sorted((row["label"], row["layer"], row["op"], row["phase"], int(row["kernel_ns"])) for row in rows)
    assert told == sorted((k.name, k.path or "", k.op or "", k.phase or "", k.kernel_ns) for k in second.data.kernels)


def test_a_link_to_nothing_shows_what_is_there(tab: Callable[..., Tab]) -> None:
    shown = tab(
        "&p.torchroof.run=gone&p.torchroof.step=x&p.torchroof.by=nothing&p.torchroof.sel=no.such.layer&p.torchroof.top=-3"
    )
    expect(shown.frame.locator(".t-row").first).to_be_visible()
    expect(shown.frame.locator(".panel h2")).to_have_text("Where to start")


def test_under_a_path_prefix(start: Callable[..., Server], tab: Callable[..., Tab], runs: Path) -> None:
    server = start(runs, "--path_prefix", "/tb/x")
    assert server.url.endswith("/tb/x/")
    shown = tab(SECOND, server)
    expect(shown.frame.locator(".t-row").first).to_be_visible()


def test_an_empty_logdir_tells_how_to_get_a_report(
    start: Callable[..., Server], tab: Callable[..., Tab], runs: Path, tmp_path: Path
) -> None:
    server = start(tmp_path)
    shown = tab("", server, ready="h1")
    expect(shown.frame.locator("h1")).to_have_text("No report here yet")
    expect(shown.frame.locator("main")).to_contain_text("torchroof.profile(model, logdir=")
    # It comes while the page is open.
    torchroof.load(runs / "second" / "torchroof.report.json").write_logdir(tmp_path / "new")
    expect(shown.frame.locator(".t-row").first).to_be_visible(timeout=30_000)


def test_what_cannot_be_read_is_told_and_passed_over(
    start: Callable[..., Server], tab: Callable[..., Tab], runs: Path, tmp_path: Path
) -> None:
    from test_routes import write_foreign

    write_foreign(tmp_path, runs)
    server = start(tmp_path)
    shown = tab("&p.torchroof.run=cut", server, ready=".source-note")
    expect(shown.frame.locator("h1")).to_have_text("This window cannot be read")
    expect(shown.frame.locator(".source-notes")).to_contain_text("ends too early")
    expect(shown.frame.locator(".source-notes")).to_contain_text("it has the schema torchroof.report/2")
    shown.frame.get_by_role("button", name="run", exact=True).click()
    shown.frame.get_by_role("option").filter(has_text="good/torchroof").click()
    expect(shown.frame.locator(".t-row").first).to_be_visible()


def test_figures_as_text_are_those_of_units(tab: Callable[..., Tab]) -> None:
    """The page writes a figure as the command line does: over many sizes, and ties."""
    shown = tab(SECOND)
    values = [
        0.0,
        1.0,
        0.5,
        1.5,
        2.5,
        99.95,
        99.5,
        100.5,
        101.5,
        999.4,
        999.5,
        1e3,
        999_500.0,
        1e6,
        1.125,
        8.125,
        0.001,
    ]
    values += [(7 ** (i % 9)) * 10.0 ** ((i * 5) % 13 - 4) / (1 + i % 13) for i in range(400)]
    calls = "([name, all]) => all.map(one => torchroof.format[name](one))"
    for name, function in (
        ("digits", units.digits),
        ("duration", units.duration),
        ("percent", units.percent),
        ("share", units.share),
    ):
        told = shown.frame.locator("body").evaluate(f"(_, given) => ({calls})(given)", [name, values])
        assert told == [function(value) for value in values], name
    told = shown.frame.locator("body").evaluate(
        "(_, all) => all.map(one => torchroof.format.quantity(one, 'B'))", values
    )
    assert told == [units.quantity(value, "B") for value in values]
    for largest in (3.0, 40_000.0, 2e6, 5e9, 3e11):
        scale = units.TimeScale.of(largest)
        told = shown.frame.locator("body").evaluate(
            "(_, [of, all]) => all.map(one => torchroof.format.timeScale(of).text(one))", [largest, values]
        )
        assert told == [scale.text(value) for value in values], largest

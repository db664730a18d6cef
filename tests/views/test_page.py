"""The page for a terminal: golden text at three widths, its columns added up again, and what must never pass."""

from __future__ import annotations

import io
import re
from pathlib import Path

import msgspec
import pytest
import sample
from rich.console import Console

from torchroof.report.lenses import Line, Lines
from torchroof.report.model import CAUSES
from torchroof.report.summary import Headline, Share
from torchroof.views.table import Page
from torchroof.views.terminal import html, plain_text, screen_width

GOLDEN = Path(__file__).parent / "golden"
MARGIN = 0.0051
"""Half of the last decimal of a time of two decimals."""


def page(lines: Lines | None = None, headline: Headline | None = None, **more: object) -> Page:
    return Page(sample.data(**more), headline or sample.headline(), lines or sample.grouped(top=4))


def printed(text: str) -> list[str]:
    """The lines of the table between its rules, then those of its sums."""
    first, second = (i for i, line in enumerate(text.splitlines()) if line.startswith("───"))
    lines = text.splitlines()
    return lines[first + 1 : second] + lines[second + 1 : second + 3]


def numbers(line: str, labels: int) -> list[float]:
    """The bare numbers of a line behind its label, ``<0.01`` as half of it."""
    words = line[labels:].split()
    return [float(w.lstrip("<")) / (2 if w[0] == "<" else 1) for w in words if re.fullmatch(r"<?[\d.]+", w)]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_golden(width: int) -> None:
    text = plain_text(page(), width) + "\n"
    assert text == (GOLDEN / f"page_{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", range(40, 241, 8))
def test_no_line_is_wider_than_the_screen_and_no_number_is_cut(width: int) -> None:
    text = plain_text(page(), width)
    assert max(map(len, text.splitlines())) <= width
    table = printed(text)
    assert all("6.50" in line for line in table[:1])
    assert "…" not in "".join(line[-20:] for line in table) or width >= 140  # shapes may be cut, numbers not


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_printed_columns_add_up_to_the_printed_total(width: int) -> None:
    text = plain_text(page(), width)
    heading = next(line for line in text.splitlines() if line.strip().startswith(("time", "class")))
    units = text.splitlines()[text.splitlines().index(heading) + 1]
    checked = 0
    for match in re.finditer(r"(time|fwd|bwd|opt|host|headroom)\b", heading):
        end = match.end()
        assert units[:end].endswith("ms"), "a time's unit stands under its name"
        cells = [re.search(r"<?[\d.]+$", line[:end]) for line in printed(text)]
        *parts, total = [float(c.group().lstrip("<")) if c else 0.0 for c in cells]
        assert sum(parts) == pytest.approx(total, abs=MARGIN * len(parts) + 0.01)
        checked += 1
    assert checked >= {80: 2, 120: 5, 200: 6}[width]


def test_times_are_means_per_step() -> None:
    # 4.2 + 8.8 ms over two steps are 6.50 ms a step, and 13 of the 40 ms of both steps are 32.5 %.
    # Headroom: 13 - 3.1 ms of floor + 1.0 ms of host = 10.9 ms, 5.45 a step.
    line = printed(plain_text(page(), 120))[0]
    assert line.split()[2:4] == ["6.50", "32.5"]
    assert line.split()[-2] == "5.45"


def test_the_first_screen_answers() -> None:
    """Twenty-four lines of eighty: what binds the step, what is worst, what could be won, the first layers."""
    screen = "\n".join(plain_text(page(), 80).splitlines()[:24])
    for answer in ("Host-bound", "host 42%", "5.45 ms per step could be won", "8.85 ms of 20 ms", "(optimizer)"):
        assert answer in screen


def test_flagged_lines_stand_out_without_colour_too() -> None:
    lines = printed(plain_text(page(), 80))
    assert [line.startswith("▶") for line in lines] == [True, True, False, False, False, False]


def test_colour_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(**more: bool) -> str:
        file = io.StringIO()
        Console(file=file, width=100, force_terminal=True, color_system="standard", **more).print(page())
        return file.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[35m" in drawn()  # host is magenta
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[(?:\d+;)*[34]\dm", drawn())
    assert "\x1b" not in plain_text(page(), 100)


def test_a_terminal_that_knows_only_ascii() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    Console(file=file, width=80).print(page())
    file.flush()
    text = raw.getvalue().decode("ascii")
    assert "launch 1.5" in text and "us (given)" in text and "> " in text and "####" in text


HOSTILE = "a\x1b[31m\x9b2J[bold]x[/]\u202egnp\x07\n\r\t<script>alert(1)</script>\u2028\x00|`"


@pytest.mark.parametrize("width", [80, 200])
def test_hostile_names_reach_no_terminal(width: int) -> None:
    evil = {
        "path": HOSTILE,
        "type": HOSTILE,
        "why": HOSTILE,
        "inputs": HOSTILE,
        "outputs": HOSTILE,
        "parameters": HOSTILE,
    }
    line = msgspec.structs.replace(sample.LAYERS[0], label=HOSTILE, bound=HOSTILE, **evil)
    head = sample.headline(
        device=HOSTILE, verdict=HOSTILE, worst=HOSTILE, notes=(HOSTILE,), ceilings=(HOSTILE,), mfu_of=HOSTILE,
        causes=(Share(HOSTILE, 1.0, 1.0),),
    )  # fmt: skip
    drawn = page(sample.grouped((line,)), head, unattributed=(
        msgspec.structs.replace(sample.data().unattributed[0], reason=HOSTILE),))  # fmt: skip
    text = plain_text(drawn, width)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028]", text)
    assert "[bold]x[/]" in text  # no markup of rich's: it stands as it came
    assert max(map(len, text.splitlines())) <= width
    marked_up = html(drawn, 200)
    assert "<script" not in marked_up and "&lt;script" in marked_up


def test_html_is_one_piece_without_outside_things() -> None:
    text = html(page())
    assert text.startswith("<pre") and text.rstrip().endswith("</pre>")
    assert "style=" in text and not re.search(r"http|<link|<script|class=", text)
    assert "8.85" in text
    assert "#000000" not in text and "background" not in text  # the reader's page may be dark or light


def test_an_empty_report() -> None:
    nothing = sample.line("total")
    lines = Lines(by="layer", sort="headroom", steps=1, step_ns=0, lines=(), rest=None, total=nothing)
    head = sample.headline(
        steps=0, step_ns=0.0, causes=(), step_efficiency=None, mfu=None, mfu_of=None, with_owner=None, with_flops=None,
        with_bytes=None, matrix_flops=None, matrix_time=None, ceilings=(), worst=None,
        verdict="No kernel ran.", notes=(),
    )  # fmt: skip
    totals = msgspec.structs.replace(sample.data().totals, causes=dict.fromkeys(CAUSES, 0), step_ns=0)
    text = plain_text(page(lines, head, totals=totals, unattributed=()), 80)
    assert "no kernel to list" in text
    assert "None" not in text and "nan" not in text


def without_roof(line: Line) -> Line:
    return msgspec.structs.replace(line, floor_ns=None, efficiency=None, headroom_ns=None, bound=None, flagged=False)


def test_without_a_roof_the_columns_that_need_one_are_gone_and_the_page_says_how_to_get_it() -> None:
    lines = sample.grouped(tuple(map(without_roof, sample.LAYERS)))
    lines = msgspec.structs.replace(lines, total=without_roof(lines.total))
    head = sample.headline(ceilings=(), step_efficiency=None, mfu=None, worst=None)
    assert "known, but no kernel" in plain_text(page(lines, head), 120)
    text = plain_text(page(lines, head, devices=()), 120)
    table = text[text.index("Layers by") :]
    assert "--device" in text
    assert "headroom  " not in table and "effic." not in table and "bound" not in table
    assert "6.50" in table


def test_what_is_left_over_is_always_told() -> None:
    text = " ".join(plain_text(page(), 80).split())
    # 10,000 ns of tanh and 1.5 ms without a launch, over two steps; 1.51 of 23.01 ms are 6.6 %.
    assert (
        "left over 755 µs per step, 6.6% of kernel time, without known work: no launch record 750 µs, tanh 5 µs" in text
    )
    clean = " ".join(plain_text(page(headline=sample.headline(left_over=(), without_work_ns=0.0)), 80).split())
    assert "nothing: every kernel has an owner and known work" in clean


def test_over_100_percent_is_a_suspicion_and_partial_is_marked() -> None:
    fast = msgspec.structs.replace(sample.LAYERS[0], efficiency=1.12)
    part = msgspec.structs.replace(sample.LAYERS[1], partial=True)
    text = plain_text(page(sample.grouped((fast, part))), 120)
    assert "112%!" in text and "suspect the ceiling, data that came from a cache, or the work model" in text
    assert "~30%" in text and "rates cover the rest" in text


def test_the_bar_is_as_long_as_the_causes_say() -> None:
    bar = plain_text(page(), 91).splitlines()
    drawn = next(line for line in bar if line.startswith("step"))[11:]
    # 80 cells: host 0.415 x 80 = 33.2; compute ends at 0.74 x 80 = 59.2; memory at 0.915 x 80 = 73.2.
    assert (drawn.count("█"), drawn.count("▓"), drawn.count("▒")) == (33, 26, 14)
    assert len(drawn) == 80


def test_screen_width_follows_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "97")
    assert screen_width() == 97
    monkeypatch.setenv("COLUMNS", "7")
    assert screen_width() == 40


def test_small_steps_are_told_in_microseconds() -> None:
    tiny = replace_times(sample.grouped((sample.LAYERS[0],)), 1000)
    text = plain_text(page(tiny), 80)
    # 13 ms over two steps, a thousandth of it: 6.50 µs.
    assert re.search(r"time.*\n\s+µs", text) and "6.50" in text


def replace_times(lines: Lines, divisor: int) -> Lines:
    def small(line: Line) -> Line:
        names = ("kernel_ns", "busy_ns", "host_ns", "floor_ns", "headroom_ns")
        changed = {name: getattr(line, name) // divisor for name in names}
        phases = {phase: ns // divisor for phase, ns in line.phase_ns.items()}
        return msgspec.structs.replace(line, phase_ns=phases, **changed)

    return msgspec.structs.replace(
        lines, lines=tuple(map(small, lines.lines)), total=small(lines.total), step_ns=lines.step_ns // divisor
    )

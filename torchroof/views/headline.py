"""The top of the page: where the step's time goes, what is worst, and how far the figures can be trusted."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from torchroof import units
from torchroof.report.summary import Headline, Share
from torchroof.views import palette
from torchroof.views.columns import AT_LEAST
from torchroof.views.text import clean, shorten

FIELD = 11
_TAX = 0.01
"""Cells of the names at the left."""
_NAME = 64
"""Cells that the worst line's name may take where the table's labels are shorter."""
LOW_ROOF = "set aside, for it is too low"
UNUSED_ROOF = "known, but no kernel has known work to place under it"
NO_ROOF = "unknown; name a device with --device, or its ceilings with --ceilings"
_BAR = 80
"""Most cells of the step's bar."""


def draw(headline: Headline, has_roof: bool, width: int, ascii_only: bool, label_width: int) -> list[RenderableType]:
    """The headline as renderables, one under the other."""

    def text(value: str, style: str = "") -> Text:
        return Text(clean(value, ascii_only), style)

    title = Text().append("torchroof  ", "bold").append(text(f"{headline.device} · {_steps(headline)}"))
    words = [text(headline.verdict, "bold")]
    if headline.worst:
        label = headline.worst_label or ""
        worst = shorten(clean(label, ascii_only), max(label_width, _NAME)) + headline.worst.removeprefix(label)
        words.append(text("").append(text(f"{palette.MARK} ", palette.FLAG)).append(text(worst)))
    grid = fields()
    if headline.causes:
        grid.add_row("step", _bar(headline.causes, min(_BAR, width - FIELD), ascii_only))
        grid.add_row("", _legend(headline.causes, width - FIELD, ascii_only))
    for name, parts in (
        ("steps", _uneven(headline)),
        ("passes", _passes(headline)),
        ("efficiency", _efficiency(headline)),
        ("work", _work(headline)),
        ("taxes", _taxes(headline)),
        ("known", _known(headline)),
        ("recording", _recording(headline)),
        ("roof", headline.ceilings or (_no_judge(headline, has_roof),)),
    ):
        if told := " · ".join(parts):
            grid.add_row(name, text(told))
    return [title, Text(""), *words, Text(""), grid]


def _no_judge(headline: Headline, has_roof: bool) -> str:
    if headline.roof_set_aside:
        return LOW_ROOF
    return UNUSED_ROOF if has_roof else NO_ROOF


def fields() -> Table:
    """Rows of a name at the left and words that wrap beside it."""
    grid = Table.grid(padding=0)
    grid.add_column(style=palette.QUIET, width=FIELD, no_wrap=True)
    grid.add_column()
    return grid


def _steps(headline: Headline) -> str:
    count = f"{headline.steps} step{'' if headline.steps == 1 else 's'}"
    return f"{count} of {units.duration(headline.step_ns)}" if headline.step_ns else f"{count} without work"


def _uneven(headline: Headline) -> Iterable[str]:
    """That steps differ much in length; below five of them nothing is said of their middle."""
    if headline.uneven is not None:
        shortest, longest = units.span(min(headline.steps_ns), max(headline.steps_ns))
        middle = f", half of them under {units.duration(headline.median_ns)}" if headline.median_ns is not None else ""
        yield (
            f"vary {units.digits(headline.uneven, 2)}-fold, {shortest} to {longest} on the host{middle}: "
            f"a busy machine, or steps of unlike work?"
        )


def _taxes(headline: Headline) -> Iterable[str]:
    """Time that only changes how numbers are stored, where there is enough of it to matter."""
    for words, fraction in (("casts to other types", headline.cast), ("copies into other layouts", headline.layout)):
        if fraction >= _TAX:
            yield f"{words} take {units.percent(fraction)} of kernel time"


def _passes(headline: Headline) -> Iterable[str]:
    """Gradients that are accumulated: what one backward pass and one step of the optimizer take."""
    passes, steps, total_ns = headline.backward_passes, headline.optimizer_steps, headline.step_ns * headline.steps
    if passes > steps:
        yield f"{passes} backward, {units.duration(total_ns / passes)} each"
        yield f"{steps} of the optimizer, {units.duration(total_ns / steps)} each" if steps else "none of the optimizer"


def _recording(headline: Headline) -> Iterable[str]:
    """What recording cost, where it was measured, else an estimate of our own part."""
    if headline.slowdown is not None:
        steps = headline.slowdown_steps
        yield (
            f"a step took {units.digits(headline.slowdown, 3)} × as long as the "
            f"{steps} step{'' if steps == 1 else 's'} not recorded"
        )
    elif headline.scopes_ns is not None:
        yield f"layer scopes took about {units.duration(headline.scopes_ns)} of a step (an estimate)"


def _efficiency(headline: Headline) -> Iterable[str]:
    if headline.step_efficiency is not None:
        whole, running = headline.step_efficiency, headline.kernel_efficiency
        apart = running is not None and units.percent(running) != units.percent(whole)
        while_running = f" ({units.percent(running)} while kernels ran)" if apart else ""
        yield f"{_share(whole, headline.step_efficiency_is_least)} of the roof over the step{while_running}"
    if headline.mfu is not None:
        yield f"MFU {_share(headline.mfu, headline.mfu_is_least)} of {headline.mfu_of or 'peak'}"


def _share(fraction: float, at_least: bool) -> str:
    """A percentage; a lower bound of less than the least that is told keeps its first digit."""
    text = units.percent(fraction)
    if not at_least:
        return text
    return f"{AT_LEAST}{units.digits(100 * fraction, 1)}%" if text.startswith("<") else AT_LEAST + text


def _work(headline: Headline) -> Iterable[str]:
    if headline.matrix_flops is not None and headline.matrix_time is not None:
        yield (
            f"matmul + conv + attention: {units.percent(headline.matrix_flops)} of FLOPs, "
            f"{units.percent(headline.matrix_time)} of time"
        )


def _known(headline: Headline) -> Iterable[str]:
    shares = (
        (headline.with_owner, "layer or optimizer"),
        (headline.with_flops, "FLOPs"),
        (headline.with_bytes, "bytes"),
    )
    told = [f"{name} {units.percent(share)}" for share, name in shares if share is not None]
    if told:
        yield f"{', '.join(told)} of kernel time"


def _bar(causes: tuple[Share, ...], width: int, ascii_only: bool) -> Text:
    bar, reached, drawn = Text(no_wrap=True), 0.0, 0
    for share, shade in zip(causes, _shades(causes), strict=True):
        reached += share.fraction
        cells = max(0, min(width, round(reached * width)) - drawn)
        bar.append(clean(shade, ascii_only) * cells, palette.cause(share.name))
        drawn += cells
    return bar


def _legend(causes: tuple[Share, ...], width: int, ascii_only: bool) -> Text:
    """Each cause with its shade and share; a line ends between two causes only."""
    legend, reached = Text(), 0
    for share, shade in zip(causes, _shades(causes), strict=True):
        text = f"{shade} {share.name} {units.percent(share.fraction)}"
        entry = Text(clean(text, ascii_only), palette.cause(share.name))
        if reached and reached + 2 + entry.cell_len > width:
            legend.append("\n")
            reached = 0
        elif reached:
            legend.append("  ")
            reached += 2
        legend.append(entry)
        reached += entry.cell_len
    return legend


def _shades(causes: tuple[Share, ...]) -> list[str]:
    return [palette.SHADES[i] if i < len(palette.SHADES) else palette.MINOR for i in range(len(causes))]

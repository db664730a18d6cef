"""The foot of the page: what is left over, why lines are flagged, what the marks mean, and the notes."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from torchroof import units
from torchroof.report.lenses import Lines
from torchroof.report.summary import Headline, Moved, Share
from torchroof.views import palette
from torchroof.views.columns import AT_LEAST
from torchroof.views.headline import fields
from torchroof.views.text import clean, shorten

_NAMED = 3
"""What is left over is named in so many words; the rest is counted."""


def draw(headline: Headline, lines: Lines, ascii_only: bool, label_width: int) -> Iterator[RenderableType]:
    """Rows of a name and words that wrap beside it; labels are those of the table."""
    yield Text("")
    grid = fields()
    told = (
        ("left over", _left_over(headline)),
        ("copies", map(_moved, headline.copies[:_NAMED])),
        ("uncounted", _apart(lines)),
        ("why", _whys(headline, lines, label_width)),
        ("marks", _legends(lines)),
        ("note", headline.notes),
    )
    for name, sentences in told:
        for sentence in sentences:
            grid.add_row(name, Text(clean(sentence, ascii_only)))
    yield grid


def _left_over(headline: Headline) -> Iterator[str]:
    """What no model answers for, and by which ops or for what reason; always told where a kernel ran."""
    if headline.with_bytes is None:
        return
    if not headline.left_over:
        yield "nothing: every kernel has an owner and known work"
        return
    named = ", ".join(map(_part, headline.left_over[:_NAMED]))
    more = f", {len(headline.left_over) - _NAMED} more" if len(headline.left_over) > _NAMED else ""
    time, share = units.duration(headline.without_work_ns), units.percent(headline.without_work)
    yield f"{time} per step, {share} of kernel time, without known work: {named}{more}"


def _part(part: Share) -> str:
    return f"{part.name.removeprefix('aten::')} {units.duration(part.ns)}"


def _moved(copies: Moved) -> str:
    words = f"{copies.kind} {units.duration(copies.ns)} per step"
    if not copies.bytes:
        return words
    return f"{words} for {units.quantity(copies.bytes, 'B')}, {units.quantity(copies.bytes / copies.ns * 1e9, 'B/s')}"


def _apart(lines: Lines) -> Iterator[str]:
    for line in lines.apart:
        kernels = f"{line.kernels} kernel{'' if line.kernels == 1 else 's'}"
        yield f"{kernels} {line.label.strip('()')}, {units.duration(line.kernel_ns)} in the file"


def _whys(headline: Headline, lines: Lines, label_width: int) -> Iterator[str]:
    """Why lines are flagged, but for the one that the headline tells of."""
    flagged = [line for line in lines.lines if line.flagged]
    told = [line for line in flagged if line.label != headline.worst_label]
    for why in dict.fromkeys(line.why for line in told if line.why):
        labels = [shorten(clean(line.label), label_width) for line in told if line.why == why]
        yield f"{palette.MARK} {why}: {', '.join(labels)}"


def _legends(lines: Lines) -> Iterator[str]:
    shown = lines.lines
    flagged = [line for line in shown if line.flagged]
    judged = lines.total.headroom_ns is not None
    if flagged and lines.total.headroom_least_ns:
        held = sum(line.headroom_least_ns for line in flagged) / lines.total.headroom_least_ns
        yield f"{palette.MARK} most headroom: {units.percent(held)} of all is in the lines marked so"
    if judged and any(line.headroom_least_ns > line.kernel_ns for line in shown):
        yield "headroom may exceed time: it counts the time that the device waited for the host, too"
    if judged and any(line.headroom_is_least and line.headroom_least_ns for line in shown):
        yield f"{AT_LEAST} at least: part of the line has no floor; it is sorted as if all of that could be won"
    if any(line.partial for line in shown):
        yield "~ part of the line's time has no model; rates cover the rest"
    if any(line.efficiency is not None and line.efficiency > 1 for line in shown):
        yield "! over 100%: suspect the ceiling, data that came from a cache, or the work model, not the hardware"

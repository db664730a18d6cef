"""The page of several ranks: who waits for whom, each rank's step, and how far layers differ between ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from torchroof import units
from torchroof.ranks.model import Collective, LayerSpread, Rank, RanksData, Spread
from torchroof.units import TimeScale
from torchroof.views import headline, palette
from torchroof.views.text import clean, shorten

_LABEL = 48
"""Cells of a layer's or a file's name."""


@dataclass(frozen=True)
class RanksPage:
    """The merged report as rich draws it. ``top`` lines of each table, None for all."""

    data: RanksData
    top: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        draw = _Draw(options.ascii_only, self.top)
        yield from draw.page(self.data)


@dataclass(frozen=True)
class _Draw:
    ascii_only: bool
    top: int | None

    def page(self, data: RanksData) -> Iterator[RenderableType]:
        read = [rank for rank in data.ranks if rank.fault is None]
        title = f"{len(data.ranks)} ranks · {_steps(read)}{_spread_words(data.step_ns)}"
        yield Text().append("torchroof  ", "bold").append(self.text(title))
        yield Text("")
        if data.straggler:
            yield self.text(f"{palette.MARK} ", palette.FLAG).append(self.text(data.straggler.text, "bold"))
            yield Text("")
        yield from self._ranks(data.ranks, data.straggler.rank if data.straggler else None)
        yield from self._layers(data.layers, data.by, len(read))
        yield from self._collectives(data.collectives)
        foot = headline.fields()
        for rank in data.ranks:
            if rank.fault:
                foot.add_row("not read", self.text(f"rank {rank.rank}: {rank.fault}"))
        for note in data.notes:
            foot.add_row("note", self.text(note))
        yield foot

    def text(self, value: str, style: str = "") -> Text:
        return Text(clean(value, self.ascii_only), style)

    def _table(self, title: str, label: str, headings: Sequence[str], words: str | None = None) -> Table:
        """Where the terminal is narrow, the label and the last column, of ``words``, go on in a further line:
        figures are not cut."""
        table = Table(
            box=box.ASCII2 if self.ascii_only else box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False,
            title=self.text(title), title_justify="left", title_style=palette.HEADING, header_style=palette.QUIET,
        )  # fmt: skip
        table.add_column(label, overflow="fold")
        for heading in headings:
            lines = "\n".join(clean(line, self.ascii_only) for line in heading.split("\n"))
            table.add_column(lines, justify="right", no_wrap=True)
        if words is not None:
            table.add_column(words, overflow="fold")
        return table

    def _label(self, value: str, style: str = "") -> Text:
        return self.text(shorten(clean(value, self.ascii_only), _LABEL), style)

    def _ranks(self, ranks: Sequence[Rank], straggler: int | None) -> Iterator[RenderableType]:
        scale = TimeScale.of(max((r.step_ns / r.parts for r in ranks), default=0.0))
        headings = [f"step {scale.unit}", "busy", "kernels", "waiting", "moving", "host", "waited\nfor"]
        table = self._table("Ranks, per step and device", "rank", headings, "file")
        shown = self._most_telling(ranks, straggler)
        for rank in shown:
            mark = f" {palette.MARK}" if rank.rank == straggler else ""
            times = (rank.step_ns, rank.busy_ns, rank.kernel_ns, rank.waiting_ns, rank.moving_ns, rank.host_ns,
                     rank.waited_for_ns)  # fmt: skip
            known = rank.fault is None and rank.kernel_ns is not None
            cells = [scale.text(ns / rank.parts if known and ns is not None else None) for ns in times]
            state = "not read: " if rank.fault else "cut: " if rank.cut else ""
            table.add_row(self.text(f"{rank.rank}{mark}"), *map(Text, cells), self._label(state + rank.source))
        yield table
        if len(shown) < len(ranks):
            yield self.text(f"{len(ranks) - len(shown)} more ranks, with shorter steps", palette.QUIET)
            yield Text("")

    def _most_telling(self, ranks: Sequence[Rank], straggler: int | None) -> list[Rank]:
        """In order of rank; of too many those that were not read, the straggler, and the longest steps."""
        chosen = sorted(ranks, key=lambda r: (not r.fault, r.rank != straggler, -r.step_ns / r.parts))[: self.top]
        return sorted(chosen, key=lambda r: r.rank)

    def _layers(self, layers: Sequence[LayerSpread], by: str, ranks: int) -> Iterator[RenderableType]:
        if not layers:
            return
        scale = TimeScale.of(layers[0].kernel_ns.max)
        headings = ["min", "median", "max", "of\nrank", "host\nmedian", "host\nmax", "of\nrank", "ranks"]
        table = self._table(f"{by.capitalize()}s by kernel time per step, {scale.unit}", by, headings)
        shown = layers[: self.top]
        for layer in shown:
            kernel, host = layer.kernel_ns, layer.host_ns
            cells = [*map(scale.text, (kernel.min, kernel.median, kernel.max)), str(kernel.max_rank)]
            cells += [*map(scale.text, (host.median, host.max)), str(host.max_rank)]
            count = f"{layer.ranks}" if layer.ranks < ranks else "all"
            table.add_row(self._label(layer.label or "(root)"), *map(Text, cells), Text(count))
        yield table
        if len(shown) < len(layers):
            yield self.text(f"{len(layers) - len(shown)} more", palette.QUIET)
            yield Text("")

    def _collectives(self, collectives: Sequence[Collective]) -> Iterator[RenderableType]:
        if not collectives:
            return
        scale = TimeScale.of(max(c.kernel_ns for c in collectives))
        headings = ["calls", f"time {scale.unit}", "waiting", "moving", "ranks"]
        table = self._table("Communication, whole files, all ranks", "collective", headings, "")
        shown = collectives[: self.top]
        for one in shown:
            group = "" if one.group is None else f" in group {one.group}"
            cells = [str(one.calls), *map(scale.text, (one.kernel_ns, one.waiting_ns, one.moving_ns))]
            table.add_row(
                self._label(one.name + group), *map(Text, cells), Text(str(len(one.ranks))),
                self.text(f"not divided: {one.unsplit}" if one.unsplit else "", palette.QUIET),
            )  # fmt: skip
        yield table
        if len(shown) < len(collectives):
            yield self.text(f"{len(collectives) - len(shown)} more", palette.QUIET)
            yield Text("")


def _steps(ranks: Iterable[Rank]) -> str:
    counts = {rank.steps for rank in ranks}
    if not counts:
        return "none could be read"
    low, high = min(counts), max(counts)
    return f"{low if low == high else f'{low} to {high}'} step{'' if high == 1 else 's'}"


def _spread_words(spread: Spread | None) -> str:
    if spread is None:
        return ""
    told = f" of {units.duration(spread.median)}"
    same = units.duration(spread.min) == units.duration(spread.max)
    return told if same else f"{told} ({units.duration(spread.min)} to {units.duration(spread.max)})"

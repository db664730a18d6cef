"""Renderables as text and as HTML, and how wide the reader's screen is."""

from __future__ import annotations

import io
import os
import sys

from rich.console import Console, RenderableType

WIDTH = 120
"""Where no terminal tells a width: a file, a pipe, a notebook."""
_NARROWEST, _WIDEST = 40, 240
_PRE = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:1.2;'
    "font-family:Menlo,Consolas,'DejaVu Sans Mono','Courier New',monospace\">{code}</pre>\n"
)


class Screen(Console):
    """Standard output at the reader's width. A closed pipe is an ordinary BrokenPipeError, not rich's exit."""

    def __init__(self) -> None:
        super().__init__(width=screen_width(), highlight=False)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def screen_width() -> int:
    """COLUMNS, else the width of the terminal that any standard stream is, else WIDTH."""
    told = os.environ.get("COLUMNS", "")
    width = int(told) if told.isdecimal() and int(told) else _terminal_width() or WIDTH
    return max(_NARROWEST, min(width, _WIDEST))


def _terminal_width() -> int | None:
    for stream in (sys.__stdout__, sys.__stderr__, sys.__stdin__):
        try:
            if stream is not None and (columns := os.get_terminal_size(stream.fileno()).columns):
                return columns
        except (OSError, ValueError):
            continue
    return None


def show(view: RenderableType) -> None:
    """Prints a view: in colour where a terminal or FORCE_COLOR wants it, else as plain text."""
    if sys.stdout.isatty() or os.environ.get("FORCE_COLOR"):
        Screen().print(view)
    else:
        print_plain(view, screen_width())


def print_plain(view: RenderableType, width: int) -> None:
    """Prints the view as plain text; in ASCII alone where standard output can carry nothing else."""
    print(plain_text(view, width, getattr(sys.stdout, "encoding", None) or "utf-8"))


class _Sheet(io.StringIO):
    """Text for something of this encoding."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._for = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._for


def plain_text(view: RenderableType, width: int, encoding: str = "utf-8") -> str:
    """The view without colour and without blanks at the ends of lines."""
    file = _Sheet(encoding)
    Console(file=file, width=width, color_system=None, legacy_windows=False).print(view)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def html(view: RenderableType, width: int = WIDTH) -> str:
    """The view as one self-contained piece of HTML: inline styles, every name escaped."""
    console = Console(
        file=io.StringIO(), width=width, record=True, force_terminal=True, color_system="truecolor",
        legacy_windows=False, force_jupyter=False, no_color=False,
    )  # fmt: skip
    console.print(view)
    return console.export_html(inline_styles=True, code_format=_PRE)

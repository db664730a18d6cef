"""How verbs with short answers print them."""

from __future__ import annotations

import os
import sys

from rich.console import Console, Group, RenderableType

from torchroof.views.terminal import print_plain, screen_width

PIPED_WIDTH = 1000
"""Wide enough that nothing is cut or wrapped where the reader is a program."""


def show(*views: RenderableType) -> None:
    """To standard output: coloured on a terminal unless NO_COLOR is set; plain and uncut in a pipe."""
    page = Group(*views)
    if sys.stdout.isatty():
        Console(width=screen_width(), highlight=False).print(page)
    else:
        print_plain(page, screen_width() if os.environ.get("COLUMNS") else PIPED_WIDTH)

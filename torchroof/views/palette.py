"""Colours and marks with one meaning everywhere: the bar of a step, the column `bound`, the flags."""

from __future__ import annotations

# Readable on a light and on a dark ground, and each told from the others.
CAUSE = {
    "compute": "green",
    "memory": "dodger_blue2",
    "cache": "cyan",
    "latency": "yellow",
    "communication": "indian_red",
    "copy": "steel_blue",
    "data": "dark_orange3",
    "sync": "medium_orchid",
    "host": "magenta",
    "unmodelled": "dim",
    "unplaced": "dim",
    "unattributed": "dim",
}
FLAG = "bold red"
HEADING = "bold"
QUIET = "dim"
SUSPECT = "bold yellow"
SHADES = "█▓▒░"
"""What tells the largest causes apart without colour."""
MINOR = "·"
"""The shade of every further cause."""
MARK = "▶"
"""Stands before a flagged layer."""


def cause(name: str | None) -> str:
    """The style of a cause or bound."""
    return CAUSE.get(name or "", "")

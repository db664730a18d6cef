"""Colours and marks with one meaning everywhere: the bar of a step, the column `bound`, the flags."""

from __future__ import annotations

CAUSE = {
    "compute": "green",
    "memory": "blue",
    "cache": "bright_cyan",
    "latency": "yellow",
    "communication": "cyan",
    "copy": "bright_blue",
    "data": "bright_yellow",
    "sync": "bright_magenta",
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

"""What the command's exit code means. README.md has the same table."""

from __future__ import annotations

DONE = 0
"""Done; what could not be known is in the notes."""
FAILED = 1
"""A check that was asked for failed, or torchroof itself did (with a traceback)."""
UNUSABLE = 2
"""Bad input or usage: one line says what and what to do."""
INTERRUPTED = 130
"""Ctrl-C."""

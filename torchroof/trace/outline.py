"""Where a key of the outermost object stands in JSON text that is not parsed, nor all there yet."""

from __future__ import annotations

import re

EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*(?=\[)')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+("?)|[][{}]', re.DOTALL)
"""A string, with its closing quote if that is there; or a bracket."""
_CUT_KEY = re.compile(rb'"traceEvents"\s*(?::\s*)?\Z')
_QUOTE, _OPENING = ord('"'), b"[{"


class Outline:
    """Strings and brackets of a text that grows, each looked at once. ``depth`` is that of the text's beginning."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._at = 0

    def list_of_events(self, text: bytes) -> int | None:
        """Where the next list of events begins that is a key of the outermost object; None where there is none yet."""
        for token in _TOKEN.finditer(text, self._at):
            first = text[token.start()]
            if first == _QUOTE:
                if not token[1]:
                    return None  # the string goes on: it is looked at again
                if self._depth == 1 and token.end() - token.start() == len(b'"traceEvents"'):
                    key = EVENTS_KEY.match(text, token.start())
                    if key is not None:
                        self._at = key.end()
                        return key.end()
                    if _CUT_KEY.match(text, token.start()):
                        return None
            else:
                self._depth += 1 if first in _OPENING else -1
            self._at = token.end()
        return None

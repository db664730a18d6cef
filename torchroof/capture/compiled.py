"""torch.compile: nothing may be compiled while our hooks are in, and a step that compiles is known.

Dynamo writes the hooks that it finds into a frame's guards, so a frame compiled under ours would be compiled again
when they go. Compiled without them, they may come later. So they step aside for as long as dynamo compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from torchroof.capture.torch_private import compile_callbacks, keep_from_compiling, private_api


class CompileWatch:
    """Calls ``before`` and ``after`` around every compilation while attached, and counts them.

    ``hooks`` are functions that dynamo may come across while it looks for code to compile, and must leave alone.
    """

    def __init__(
        self, before: Callable[[], None], after: Callable[[], None], hooks: tuple[Callable[..., object], ...]
    ) -> None:
        self._before = before
        self._after = after
        self._hooks = hooks
        self._handler: Any = None
        self._aside = False
        self.attached = False
        """Whether it listens: then no hook of ours is in while something is compiled."""
        self.count = 0
        """Compilations so far."""

    def attach(self) -> None:
        """Begins to listen, where dynamo is loaded and can be listened to; importing it is left to the user. Called
        at the end of each step, too."""
        if self._aside and not private_api().is_compiling():
            self._aside = False
            self._after()
        if self._handler is not None:
            return
        handler = compile_callbacks()
        if handler is None:
            return
        keep_from_compiling(*self._hooks)
        self._handler = handler
        self._register()
        handler.clear = self._clear
        self.attached = True

    def detach(self) -> None:
        """Listens no more."""
        handler, self._handler, self.attached = self._handler, None, False
        if handler is None:
            return
        vars(handler).pop("clear", None)
        for remove, callback in (
            (handler.remove_start_callback, self._begin),
            (handler.remove_end_callback, self._end),
        ):
            with suppress(ValueError):
                remove(callback)

    def _register(self) -> None:
        self._handler.register_start_callback(self._begin)
        self._handler.register_end_callback(self._end)

    def _clear(self) -> None:
        """In place of the handler's own: whoever resets dynamo forgets all callbacks but ours. torch.export does so
        before it traces, of which it tells nobody; so the hooks stay aside until the step ends."""
        type(self._handler).clear(self._handler)
        self._register()
        if private_api().is_compiling():
            self._aside = True
            self._begin()

    def _begin(self, *_: object) -> None:
        self.count += 1
        self._before()

    def _end(self, *_: object) -> None:
        self._after()

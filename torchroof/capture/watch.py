"""Stops a recording that has grown past its limit of events."""

from __future__ import annotations

import threading
from collections.abc import Callable

from torchroof.capture.torch_private import EVENTS_PER_BLOCK, call_in_main_thread, private_api

_POLL_S = 0.05


class EventLimit:
    """Reads torch's own count of recorded host events every 50 ms and has ``stop`` called once it is reached.

    Some kernels of a GPU, and the events within those 50 ms, may come on top. ``stop`` runs in the main
    thread, between two bytecodes of whatever it does, because a recording can be stopped only by the thread
    that records. Recorded on another thread, it stops at the next `check`.
    """

    def __init__(self, max_events: int, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._blocks = private_api().event_blocks
        self._first = self._blocks() if self._blocks else 0
        self._max_blocks = -(-max_events // EVENTS_PER_BLOCK)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._request: Callable[[], None] | None = None

    @property
    def events(self) -> int | None:
        """Host events recorded so far, to a block of 512; None where torch does not show it."""
        return (self._blocks() - self._first) * EVENTS_PER_BLOCK if self._blocks else None

    def start(self) -> None:
        if self._blocks is None:
            return
        if threading.current_thread() is threading.main_thread():
            self._request = call_in_main_thread(self._stop_unless_over)
        self._thread = threading.Thread(target=self._poll, name="torchroof event limit", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Stops here if the limit is reached."""
        if self._reached():
            self._stop_unless_over()

    def end(self) -> None:
        """No call of ``stop`` begins after this."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _reached(self) -> bool:
        return self._blocks is not None and self._blocks() - self._first >= self._max_blocks

    def _poll(self) -> None:
        while not self._over.wait(_POLL_S):
            if self._reached():
                if self._request is not None:
                    self._request()
                return

    def _stop_unless_over(self) -> None:
        if not self._over.is_set():
            self._over.set()
            self._stop()

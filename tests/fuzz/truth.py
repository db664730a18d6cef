"""What must be true of the ops of a fuzzed run, read off the raw events by their operands and the time they ran."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trees import BATCH, Owners

MARK = "fuzz: "
"""Before the name of a window of the driver: what runs in it, on whatever thread, is of that sort."""

MATRICES = {
    "aten::mm": (0, 1),
    "aten::addmm": (1, 2),
    "aten::convolution": (0, 1),
    "aten::convolution_backward": (1, 2),
}
"""Where the two matrices of a product are among its operands."""
ACTS = {"aten::relu", "aten::relu_", "aten::tanh", "aten::tanh_", "aten::sigmoid"}
ACTS_BACKWARD = {"aten::threshold_backward", "aten::tanh_backward", "aten::sigmoid_backward"}

Answer = tuple[str, str]
"""A layer's path, and a phase."""


@dataclass(frozen=True)
class Event:
    """A host event of the raw trace. Times in ns of the trace."""

    number: int
    name: str
    thread: str
    start_ns: int
    end_ns: int
    shapes: tuple[Any, ...]
    category: str


def read_events(raw: dict[str, Any]) -> list[Event]:
    """The complete events; ``raw`` was decoded with its decimals kept as text."""
    return [
        Event(
            number,
            e["name"],
            str(e["tid"]),
            to_ns(e["ts"]),
            to_ns(e["ts"]) + to_ns(e["dur"]),
            _tupled(e.get("args", {}).get("Input Dims", [])),
            e["cat"],
        )
        for number, e in enumerate(raw["traceEvents"])
        if e.get("ph") == "X" and "dur" in e and e["cat"] in ("cpu_op", "user_annotation")
    ]


def load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"), parse_float=str)
    return found


def to_ns(us: Any) -> int:
    """µs with up to three decimals, as text or a whole number."""
    whole, _, part = str(us).partition(".")
    return int(whole) * 1000 + int(part.ljust(3, "0"))


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list) else value


class Truth:
    """Answers for one run. ``twice``: it differentiates twice, so that backward passes multiply forwards, too."""

    def __init__(self, owners: Owners, events: list[Event], twice: bool) -> None:
        self._owners, self._twice = owners, twice
        marks = [e for e in events if e.name.startswith(MARK)]
        self._windows = sorted((e.start_ns, e.end_ns, e.name.removeprefix(MARK)) for e in marks)
        self._starts = [start for start, _, _ in self._windows]

    def window(self, event: Event) -> str | None:
        place = bisect_right(self._starts, event.start_ns) - 1
        if place < 0 or event.start_ns > self._windows[place][1]:
            return None
        return self._windows[place][2]

    def answer(self, event: Event) -> Answer | None:
        """Where the op belongs; None for one that its operands do not tell."""
        window = self.window(event)
        if event.name in MATRICES:
            return self._product(event, window)
        shape = event.shapes[0] if event.shapes else None
        if event.name in ACTS | ACTS_BACKWARD:
            return self._activation(event, window)
        if event.name == "aten::sum" and window == "backward" and shape and len(shape) == 2 and shape[0] == BATCH:
            owner = None if shape[1] in self._owners.scaled else self._owners.biases.get(shape[1])
            return (owner, "backward") if owner is not None else None
        if shape in self._owners.parameters:
            return self._on_parameter(event, self._owners.parameters[shape], window)
        return None

    def _product(self, event: Event, window: str | None) -> Answer | None:
        left, right = (event.shapes[i] for i in MATRICES[event.name])
        owner = self._owners.products.get(frozenset((*left, *right)) - {BATCH, 1})
        assert owner is not None, f"nobody's product: {event}"
        path, narrow, _ = owner
        if window == "forward":
            return path, "forward"
        assert window == "backward", event
        # The gradients of a product multiply the other way round.
        forward = event.name != "aten::convolution_backward" and left[:2] == (BATCH, narrow)
        again = forward and (event.name == "aten::addmm" or not self._twice)
        return path, "recompute" if again else "backward"

    def _activation(self, event: Event, window: str | None) -> Answer | None:
        shape = event.shapes[0]
        owner = self._owners.activations.get(shape[-1])
        assert owner is not None, f"nobody's activation: {event}"
        if event.name in ACTS_BACKWARD:
            return owner, "backward"
        return owner, "forward" if window == "forward" else "recompute"

    def _on_parameter(self, event: Event, owner: str, window: str | None) -> Answer | None:
        if window == "backward" and event.name in ("aten::add", "aten::add_"):
            return owner, "grad_accumulate"
        if window == "forward" and event.name == "aten::copy_":
            return owner, "forward"
        if window == "optimizer" and event.name in ("aten::add_", "aten::mul_", "aten::clone", "aten::addcmul_"):
            return owner, "optimizer"
        return None


def key_of(event: Event) -> tuple[Any, ...] | None:
    """What the dispatcher sees of an op: its name and the shapes that count; None for one of no interest."""
    if event.name in MATRICES:
        left, right = MATRICES[event.name]
        return event.name, event.shapes[left], event.shapes[right]
    return (event.name, event.shapes[0]) if event.name in ACTS else None


def never_ran(truth: Truth, events: list[Event], dispatched: Counter[tuple[Any, ...]]) -> list[Event]:
    """The ops that have an event, but that the dispatcher below autograd has not seen.

    They are the last of their kind in a recomputation, and each recomputation does the same.
    """
    recorded: dict[tuple[Any, ...], list[Event]] = {}
    for event in sorted(events, key=lambda e: e.start_ns):
        key = key_of(event)
        if key is not None:
            recorded.setdefault(key, []).append(event)
    found: list[Event] = []
    for key, same in recorded.items():
        missing = len(same) - dispatched[key]
        if missing:
            again = [e for e in same if (truth.answer(e) or ("", ""))[1] == "recompute"]
            each, rest = divmod(len(again), missing)
            assert missing > 0 and each > 0 and not rest, (key, len(same), dispatched[key], len(again))
            found += again[each - 1 :: each]
    assert set(dispatched) <= set(recorded)
    return found

"""Writes the real trace of a CPU run as a GPU would have: launches, streams, a device clock, an autograd thread.

What changes: the backward passes move to a thread of their own, and with them their scopes, the ends of the flows,
the layer calls that the hooks noted there, and the sequence numbers given out there, which begin anew (they are
counted per thread) at numbers that the forward thread uses too. Each op that does work launches one to three
kernels after its last child, and they run later, by a clock that is off, on one of several streams, so that
forward kernels run while the host is in the backward pass. An op that never ran launches nothing. A kernel's name
is the number of its event.
"""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from trace_maker import A100
from truth import ACTS, ACTS_BACKWARD, MATRICES, Event, to_ns

AUTOGRAD_THREAD = "424242"
AUTOGRAD_NUMBER = 9_999
"""What backward nodes call that thread, where their forward op ran on it."""
LAUNCHES = {*MATRICES, *ACTS, *ACTS_BACKWARD, "aten::add", "aten::add_", "aten::mul", "aten::mul_", "aten::sum"}
LAUNCHES |= {"aten::copy_", "aten::mean", "aten::fill_", "aten::cat"}
KERNEL = "kernel of "
_SKEW_NS = -70_000


class GpuWriter:
    """One trace to write. ``made`` are the intervals of sequence numbers of the backward passes."""

    def __init__(self, raw: dict[str, Any], events: Sequence[Event], never_ran: Iterable[Event], seed: int) -> None:
        self._raw, self._events = raw, events
        self._random = random.Random(seed)
        self._never_ran = {event.number for event in never_ran}
        nodes = sorted((e.start_ns, e.end_ns) for e in events if e.name.startswith("autograd::engine"))
        self._nodes = nodes[:1]
        for start, end in nodes:
            if start > self._nodes[-1][1]:  # not one inside another
                self._nodes.append((start, end))
        self._starts = [start for start, _ in self._nodes]
        self._main = next(e.thread for e in events if e.name == "fuzz: backward")
        self._base = min(e.start_ns for e in events)
        self._main_number = self._number_of_main()
        self.launched: set[int] = set()
        """Numbers of the events that have kernels."""

    def write(self, path: Path, made: Sequence[tuple[int, int]], flows: bool = True) -> Path:
        numbers = _renumbered(made)
        events = [self._host(e, numbers) for e in self._raw["traceEvents"] if self._keep(e, flows)]
        events += self._launches()
        raw = {**self._raw, "deviceProperties": [A100], "traceEvents": events}
        raw["torchroof"] = self._facts(numbers)
        path.write_text(json.dumps(raw), encoding="utf-8")
        return path

    def _keep(self, event: dict[str, Any], flows: bool) -> bool:
        return "ts" in event and (flows or event.get("cat") != "fwdbwd")

    def moves(self, thread: str, at_ns: int) -> bool:
        """Whether what began then on that thread is inside an autograd node."""
        place = bisect_right(self._starts, at_ns) - 1
        return thread == self._main and place >= 0 and at_ns <= self._nodes[place][1]

    def _host(self, event: dict[str, Any], numbers: dict[int, int]) -> dict[str, Any]:
        at = to_ns(event["ts"])
        event = {**event, "ts": self._us(at)}
        if "dur" in event:
            event["dur"] = to_ns(event["dur"]) / 1000
        if event.get("cat") not in ("cpu_op", "fwdbwd"):
            return event
        args = event.get("args", {})
        number, made_on = numbers.get(args.get("Sequence number", -1)), args.get("Fwd thread id")
        moves = self.moves(str(event["tid"]), at)
        if number is not None and (made_on == self._main_number if made_on else moves):
            event["args"] = {**args, "Sequence number": number, "Fwd thread id": made_on and AUTOGRAD_NUMBER}
        if moves:
            event["tid"] = int(AUTOGRAD_THREAD)
        return event

    def _number_of_main(self) -> int | None:
        """What backward nodes call the thread that calls backward; None where no flow leads from it to a node."""
        flows: dict[int, list[dict[str, Any]]] = {}
        for event in self._raw["traceEvents"]:
            if event.get("cat") == "fwdbwd":
                flows.setdefault(event["id"], []).append(event)
        ends = {
            (str(end["tid"]), end["ts"])
            for begin, end in (sorted(pair, key=lambda e: e["ph"], reverse=True) for pair in flows.values())
            if str(begin["tid"]) == self._main
        }
        nodes = (e for e in self._raw["traceEvents"] if (str(e.get("tid")), e.get("ts")) in ends)
        return next((e["args"]["Fwd thread id"] for e in nodes if e.get("args", {}).get("Fwd thread id")), None)

    def _us(self, ns: int) -> float:
        return (ns - self._base) / 1000

    def _launches(self) -> list[dict[str, Any]]:
        last_child = self._ends_of_last_children()
        written: list[dict[str, Any]] = []
        free = dict.fromkeys((7, 13, 20), 0)
        for event in sorted(self._events, key=lambda e: e.start_ns):
            begin = last_child.get(event.number, event.start_ns) + 1
            if event.name not in LAUNCHES or event.number in self._never_ran or begin + 2 >= event.end_ns:
                continue
            self.launched.add(event.number)
            thread = AUTOGRAD_THREAD if self.moves(event.thread, event.start_ns) else event.thread
            for _ in range(self._random.choice((1, 1, 1, 2, 3))):
                at = self._random.randint(begin, event.end_ns - 2)
                stream = self._random.choice(list(free))
                start = max(at + self._random.randint(5_000, 3_000_000), free[stream])
                free[stream] = start + self._random.randint(1_000, 90_000)
                correlation = len(written) + 1
                call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": self._pid, "dur": 0.001}
                written.append({**call, "tid": int(thread), "ts": self._us(at), "args": {"correlation": correlation}})
                args = {"device": 0, "stream": stream, "correlation": correlation, "grid": [8, 1, 1]}
                kernel = {"ph": "X", "cat": "kernel", "name": f"{KERNEL}{event.number}", "pid": 0, "tid": stream}
                written.append(
                    {**kernel, "ts": self._us(start + _SKEW_NS), "dur": (free[stream] - start) / 1000, "args": args}
                )
        return written

    @property
    def _pid(self) -> int:
        return int(next(e["pid"] for e in self._raw["traceEvents"] if e.get("cat") == "cpu_op"))

    def _ends_of_last_children(self) -> dict[int, int]:
        """When the last span inside each event ended, by the event's number."""
        ends: dict[int, int] = {}
        open_: dict[str, list[Event]] = {}
        for event in sorted(self._events, key=lambda e: (e.start_ns, -e.end_ns)):
            stack = open_.setdefault(event.thread, [])
            while stack and stack[-1].end_ns < event.end_ns:
                stack.pop()
            for outer in stack:
                ends[outer.number] = max(ends.get(outer.number, 0), event.end_ns)
            stack.append(event)
        return ends

    def _facts(self, numbers: dict[int, int]) -> dict[str, Any]:
        """What the hooks noted, with the calls of the backward passes on the autograd thread."""
        facts = deepcopy(self._raw["torchroof"])
        calls = []
        for columns in facts.get("calls", ()):
            moved = self._moved_calls(str(columns["thread"]))
            for there in (False, True):
                chosen = [i for i, m in enumerate(moved) if m == there]
                if not chosen:
                    continue
                part = {name: [columns[name][i] for i in chosen] for name in ("layer", "before", "after")}
                place = {i: k for k, i in enumerate(chosen)}
                for name in ("recompute", "cut"):
                    part[name] = [place[i] for i in columns.get(name, ()) if i in place]
                if there:
                    ends = {n + 1: new + 1 for n, new in numbers.items()} | numbers
                    part |= {name: [_at_least(ends, n) for n in part[name]] for name in ("before", "after")}
                calls.append({"thread": int(AUTOGRAD_THREAD) if there else columns["thread"], **part})
        return {**facts, "calls": calls}

    def _moved_calls(self, thread: str) -> list[bool]:
        scopes = [e for e in self._events if e.name.startswith("torchroof: ") and e.thread == thread]
        scopes.sort(key=lambda e: (e.start_ns, -e.end_ns))
        return [self.moves(thread, e.start_ns) for e in scopes]


def _renumbered(made: Sequence[tuple[int, int]]) -> dict[int, int]:
    """New numbers for those given out in backward passes: from nought, without gaps."""
    numbers: dict[int, int] = {}
    following = 0
    for first, after in made:
        for number in range(first, after):
            numbers[number] = following
            following += 1
    return numbers


def _at_least(numbers: dict[int, int], number: int) -> int:
    """The new number of a moment: where no number was given out, that of the next one given out before it."""
    return numbers.get(number, max((new for old, new in numbers.items() if old <= number), default=0))

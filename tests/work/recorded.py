"""Real torch calls as the profiler records them: a forest of op events with their operands. Needs torch."""

from __future__ import annotations

import ast
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from torchroof.tensors import OpCall, Operand, TensorSpec, dtype_named


@dataclass
class Event:
    call: OpCall
    children: list[Event] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.call.name

    def below(self) -> Iterator[Event]:
        for child in self.children:
            yield child
            yield from child.below()


def operand(dims: list[Any], kind: str, strides: list[Any], text: str) -> Operand:
    if text:
        try:
            value = ast.literal_eval(text.replace("inf", "1e999"))
        except (ValueError, SyntaxError):
            return text
        return tuple(value) if isinstance(value, list) else value
    if dims and isinstance(dims[0], list):
        return tuple(TensorSpec(tuple(d), None) for d in dims)
    dtype = dtype_named(kind)
    return None if dtype is None else TensorSpec(tuple(dims), dtype, tuple(strides))


def call_of(event: dict[str, Any]) -> OpCall:
    args = event["args"]
    keys = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    columns = zip(*(args.get(key, []) for key in keys), strict=True)
    return OpCall(event["name"], tuple(operand(*column) for column in columns))


def recorded(run: Callable[[], object]) -> list[Event]:
    """The outermost op events of a call, each with all that ran inside it, on every thread."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        run()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text(), parse_float=str)["traceEvents"]
    spans = [(e["tid"], ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e) for e in events if e.get("cat") == "cpu_op"]
    roots: list[Event] = []
    open_: list[tuple[object, int, Event]] = []
    for thread, _, end, event in sorted(spans, key=lambda s: (str(s[0]), s[1], -s[2])):
        while open_ and (open_[-1][0] != thread or open_[-1][1] < end):
            open_.pop()
        found = Event(call_of(event))
        (open_[-1][2].children if open_ else roots).append(found)
        open_.append((thread, end, found))
    return roots


def ns(text: Any) -> int:
    whole, _, rest = str(text).partition(".")
    return int(whole) * 1000 + int((rest + "000")[:3])


def everything(roots: Iterable[Event]) -> Iterator[Event]:
    for root in roots:
        yield root
        yield from root.below()


def only(roots: list[Event], name: str) -> OpCall:
    """The one outermost event of that name."""
    calls = [root.call for root in roots if root.name == name]
    assert len(calls) == 1, [root.name for root in roots]
    return calls[0]


def spec(tensor: torch.Tensor) -> TensorSpec:
    return TensorSpec(tuple(tensor.shape), dtype_named(str(tensor.dtype)), tensor.stride())

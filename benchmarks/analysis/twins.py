"""Traces with the events and shapes of the two that the yardsticks repeat, for where those are absent.

A trace is so many pairs of a forward op and its backward node. How many ops, calls, kernels, arrows and Python frames
there are to a pair, and what they hold, is as counted in the real one; the times are from a seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

Event = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """What one pair holds. Ops, kernels and other calls of the runtime are per side."""

    start_ns: int
    metadata: dict[str, Any]
    pairs: int
    ops: tuple[int, int]
    kernels: tuple[int, int]
    copies: tuple[int, int]
    others: tuple[int, int]
    frames: int
    """Python functions around the forward op, the innermost of which is a module."""
    shapes: bool
    arrows_to_calls: bool
    """Whether arrows end at every call of the runtime, and begin at launches only; else the other way round."""
    call: str
    other: str


KINDS = {
    "joins": Kind(
        1_712_195_495_505_543_232,
        {"schemaVersion": 1, "displayTimeUnit": "ns"},
        905, (13, 13), (2, 3), (1, 1), (5, 5), 0, False, True, "cudaLaunchKernel", "cudaEventQuery",
    ),
    "everything": Kind(
        1_305_516_305_192_623,
        {"schemaVersion": 1, "record_shapes": 1, "with_stack": 1, "baseTimeNanoseconds": 1_775_078_550_000_000_000},
        355, (9, 8), (3, 4), (0, 0), (5, 4), 19, True, False, "hipExtModuleLaunchKernel", "hipMalloc",
    ),
}  # fmt: skip
_KERNELS = tuple(
    f"void at::native::vectorized_elementwise_kernel<{n}, "
    + "at::native::BinaryFunctor<float, float, bool>, " * 8
    + ">"
    for n in range(70)
)
FORWARD, BACKWARD = 1102, 1262


def twin(name: str) -> dict[str, Any]:
    """The synthetic trace of a yardstick, about as long as the real one."""
    maker = _Maker(KINDS[name])
    for pair in range(maker.kind.pairs):
        maker.pair(pair)
    return {**maker.kind.metadata, "traceEvents": maker.events}


class _Maker:
    def __init__(self, kind: Kind) -> None:
        self.kind, self.random = kind, Random(0)
        self.events: list[Event] = []
        self.now = kind.start_ns
        self.free = kind.start_ns
        self.correlation = self.ids = 0

    def pair(self, number: int) -> None:
        kind, begin = self.kind, self.now
        frames = range(kind.frames)
        self.now += 1000 * len(frames)
        forward_ns = self._side(0, FORWARD, "aten::linear", number)
        for depth in frames:
            module = depth == len(frames) - 1
            name = f"nn.Module: Linear_{number}" if module else f"model/file_{depth}.py({depth}): forward"
            ids = {"Python id": number * len(frames) + depth, "Python parent id": number * len(frames) + depth - 1}
            ids |= {"Python module id": number} if module else {}
            self._span("python_function", name, begin + 900 * depth, self.now + 900 * (len(frames) - depth), args=ids)
        self.now += 1000 * len(frames) + 1000
        backward_ns = self._side(1, BACKWARD, "autograd::engine::evaluate_function: AddmmBackward0", number)
        for phase, ns, thread in (("s", forward_ns, FORWARD), ("f", backward_ns, BACKWARD)):
            self._arrow(phase, "fwdbwd", number + 1, ns, thread)

    def _side(self, side: int, thread: int, name: str, number: int) -> int:
        """The ops of one side, each in the one before it, around the calls of the runtime; the first one's start."""
        kind, first = self.kind, self.now
        starts = [first + 700 * depth for depth in range(kind.ops[side])]
        self.now = starts[-1] + 500
        for _ in range(kind.others[side]):
            self._call(kind.other, thread, starts=not kind.arrows_to_calls, ends=kind.arrows_to_calls)
        for _ in range(kind.copies[side]):
            self._call("cudaMemcpyAsync", thread, "gpu_memcpy", ends=kind.arrows_to_calls)
        for _ in range(kind.kernels[side]):
            self._call(kind.call, thread, "kernel", ends=kind.arrows_to_calls)
        for depth, start in enumerate(starts):
            args: dict[str, Any] = {"Sequence number": number + 1} if depth < 2 else {}
            args |= {"Fwd thread id": 1} if side and depth < 2 else {}
            inner = name.split(": ")[-1] if depth == 1 else ("aten::addmm", "aten::mm")[side] if depth == 2 else None
            self._op(
                name if depth == 0 else inner or f"aten::op_{depth}", start, self.now + 600 * (50 - depth), thread, args
            )
        self.now += 600 * 50 + self.random.randint(1000, 9000)
        return first

    def _op(self, name: str, start: int, end: int, thread: int, args: dict[str, Any]) -> None:
        self.ids += 1
        args = {"External id": self.ids, "Ev Idx": self.ids, **args}
        if self.kind.shapes:
            args |= {
                "Input Dims": [[64, 512], [512, self.random.choice((128, 256, 512))], []],
                "Input Strides": [[512, 1], [1, 512], []],
                "Input type": ["float", "float", "Scalar"],
                "Concrete Inputs": ["", "", "1"],
            }
        self._span("cpu_op", name, start, end, thread, args)

    def _call(
        self, name: str, thread: int, device: str | None = None, *, starts: bool = True, ends: bool = True
    ) -> None:
        self.correlation += 1
        key = {"External id": self.ids, "correlation": self.correlation}
        start, self.now = self.now, self.now + self.random.randint(2000, 9000)
        self._span("cuda_runtime", name, start, self.now, thread, {"cbid": 211, **key})
        if starts and (device or not self.kind.arrows_to_calls):
            self._arrow("s", "ac2g", self.correlation, start, thread)
        if ends:
            self._arrow("f", "ac2g", self.correlation, start, thread)
        self.now += 300
        if device is None:
            return
        begin = max(self.free, start + 5000)
        self.free = begin + self.random.randint(1000, 200_000)
        args: dict[str, Any] = {"device": 0, "context": 1, "stream": 7, **key}
        args |= {"bytes": 4096} if device == "gpu_memcpy" else {"grid": [80, 1, 1], "block": [256, 1, 1], "queued": 0}
        what = "Memcpy HtoD (Pinned -> Device)" if device == "gpu_memcpy" else self.random.choice(_KERNELS)
        self._span(device, what, begin, self.free, 7, args, pid=0)
        if not self.kind.arrows_to_calls:
            self._arrow("f", "ac2g", self.correlation, begin, 7, pid=0)

    def _arrow(self, phase: str, cat: str, number: int, ns: int, thread: int, pid: int = FORWARD) -> None:
        rest = {"pid": pid, "tid": thread, "ts": _us(ns), "cat": cat, "name": cat}
        self.events.append({"ph": phase, "id": number, **rest} | ({"bp": "e"} if phase == "f" else {}))

    def _span(
        self, cat: str, name: str, start: int, end: int, thread: int = FORWARD, args: Any = None, pid: int = FORWARD
    ) -> None:
        rest = {"pid": pid, "tid": thread, "ts": _us(start), "dur": _us(end - start), "args": args}
        self.events.append({"ph": "X", "cat": cat, "name": name, **rest})


def _us(ns: int) -> Decimal:
    return Decimal(ns).scaleb(-3)

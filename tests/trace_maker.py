"""Makes small Kineto traces with a known answer: what goes in as truth must come out.

Times are in ns and written as the profiler does, in µs with three decimals.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

A100 = {
    "id": 0,
    "name": "NVIDIA A100-SXM4-40GB",
    "totalGlobalMem": 42_298_834_944,
    "computeMajor": 8,
    "computeMinor": 0,
    "numSms": 108,
    "warpSize": 32,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 167936,
}


_SHAPE = {"registers": "registers per thread", "shared": "shared memory"}


@dataclass
class TraceMaker:
    """Collects events; `save` writes the file."""

    pid: int = 1000
    events: list[dict[str, Any]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=lambda: {"schemaVersion": 1, "deviceProperties": [A100]})
    _correlation: int = 0
    _flow: int = 0

    def host(self, cat: str, name: str, start: int, end: int, thread: int = 1, **args: Any) -> None:
        self._span(cat, name, start, end, self.pid, thread, args)

    def op(
        self,
        name: str,
        start: int,
        end: int,
        thread: int = 1,
        *,
        shapes: list[list[int]] | None = None,
        dtype: str = "float",
        concrete: list[str] | None = None,
        types: list[str] | None = None,
        **args: Any,
    ) -> None:
        """An op; ``shapes`` are its tensors, dense unless ``strides`` is given among ``args``."""
        if shapes is not None:
            args |= {
                "Input Dims": shapes,
                "Input type": types or [dtype] * len(shapes),
                "Input Strides": args.pop("strides", None) or [dense(s) for s in shapes],
                "Concrete Inputs": concrete or [""] * len(shapes),
            }
        self.host("cpu_op", name, start, end, thread, **args)

    def scope(self, path: str, start: int, end: int, thread: int = 1) -> None:
        self.host("cpu_op", f"torchroof: {path}", start, end, thread)

    def step(self, number: int, start: int, end: int) -> None:
        self.host("user_annotation", f"ProfilerStep#{number}", start, end)

    def node(self, name: str, start: int, end: int, sequence: int, thread: int = 2, number: int = 1) -> None:
        """An autograd node as two nested events, as the profiler writes it."""
        extra = {"Sequence number": sequence, "Fwd thread id": number}
        self.op(f"autograd::engine::evaluate_function: {name}", start, end, thread, **extra)
        self.op(name, start + 1, end - 1, thread, **extra)

    def launch(
        self,
        at: int,
        kernel: str = "kernel_x",
        start: int | None = None,
        end: int | None = None,
        *,
        thread: int = 1,
        stream: int = 7,
        device: int = 0,
        call: str = "cudaLaunchKernel",
        **shape: Any,
    ) -> int:
        """A runtime call of 2 ns, and the kernel that it starts (none without a start); its correlation."""
        self._correlation += 1
        self.host("cuda_runtime", call, at, at + 2, thread, correlation=self._correlation)
        if start is not None:
            self.kernel(kernel, start, end or start, self._correlation, stream=stream, device=device, **shape)
        return self._correlation

    def kernel(
        self,
        name: str,
        start: int,
        end: int,
        correlation: int,
        *,
        stream: int = 7,
        device: int = 0,
        **shape: Any,
    ) -> None:
        """``shape`` is the launch's: ``grid``, ``block``, ``registers``, ``shared``."""
        args = {"device": device, "stream": stream, "correlation": correlation}
        self._span("kernel", name, start, end, device, stream, args | {_SHAPE.get(k, k): v for k, v in shape.items()})

    def copy(self, at: int, start: int, end: int, size: int = 1024, thread: int = 1, stream: int = 7) -> None:
        self._correlation += 1
        self.host("cuda_runtime", "cudaMemcpyAsync", at, at + 2, thread, correlation=self._correlation)
        args = {"device": 0, "stream": stream, "correlation": self._correlation, "bytes": size}
        self._span("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", start, end, 0, stream, args)

    def flow(self, from_ns: int, to_ns: int, from_thread: int = 1, to_thread: int = 2) -> None:
        self._flow += 1
        common = {"cat": "fwdbwd", "name": "fwdbwd", "id": self._flow, "pid": self.pid}
        self.events.append({**common, "ph": "s", "tid": from_thread, "ts": from_ns / 1000})
        self.events.append({**common, "ph": "f", "bp": "e", "tid": to_thread, "ts": to_ns / 1000})

    def _span(self, cat: str, name: str, start: int, end: int, pid: int, tid: int, args: dict[str, Any]) -> None:
        event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid}
        self.events.append({**event, "ts": start / 1000, "dur": (end - start) / 1000, "args": args})

    def save(self, folder: Path, name: str = "trace.json") -> Path:
        path = folder / name
        path.write_text(json.dumps({**self.metadata, "traceEvents": self.events}))
        return path


def dense(shape: list[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return strides[::-1]

"""Synthetic GPU jobs with a known answer: several ranks, steps, streams, graph replays, a backward thread, waits.

A job is simulated from a seed: a host thread launches, streams run in order, collectives begin on each rank when
that rank comes to them and end on all together. What was simulated is written down as truth while it happens,
without a join and without interval arithmetic; `painted` divides time by colouring one cell per nanosecond.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
from trace_maker import TraceMaker

PAUSE_NS = 50_000
BASE_NS = 1_711_964_646_000_000_000
LAYERS = ("net.0", "net.1", "head")
FORWARD, BACKWARD = 1, 2
"""Threads."""


@dataclass
class Work:
    """One device span as it ran. ``key`` is the row (path, phase, op) or the reason why it is in none."""

    start: int
    end: int
    stream: int
    rank: int
    """0 computes, 1 copies, 2 communicates."""
    key: tuple[str | None, str, str | None] | str
    thread: int
    """Of the launch; 0 where there was none."""


@dataclass
class Truth:
    """What one rank did."""

    work: list[Work] = field(default_factory=list)
    loading: list[tuple[int, int]] = field(default_factory=list)
    syncing: list[tuple[int, int]] = field(default_factory=list)
    """Both on the forward thread."""
    windows: list[tuple[int, int]] = field(default_factory=list)
    waiting: int = 0
    moving: int = 0

    @property
    def kernels(self) -> list[Work]:
        return [w for w in self.work if w.rank != 1]

    def by(self, attribute: str) -> Counter:
        """Kernel time by row or reason."""
        found: Counter = Counter()
        for w in self.kernels:
            found[w.key] += (w.end - w.start) if attribute == "ns" else 1
        return found


@dataclass
class Rank:
    """One process while it is simulated."""

    number: int
    world: int
    random: Random
    trace: TraceMaker = field(default_factory=TraceMaker)
    truth: Truth = field(default_factory=Truth)
    now: int = 1000
    free: dict[int, int] = field(default_factory=dict)
    """When each stream has done all it was given."""
    sequence: int = 0
    begin: int = 0
    """Of the step that is open."""

    def run(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def kernel(self, key, *, thread: int = FORWARD, name: str = "k", stream: int | None = None, at: int | None = None):
        """Launches a kernel now (or at a moment); it starts when its stream is free."""
        at = self.now if at is None else at
        stream = stream if stream is not None else self.random.choice((7, 7, 7, 20))
        start = max(at + self.run(3, 300), self.free.get(stream, 0))
        end = start + self.run(0, 900)
        self.free[stream] = end
        self.trace.launch(at, name, start, end, thread=thread, stream=stream)
        self.truth.work.append(Work(start, end, stream, 0, key, thread))

    def layer(self, path: str) -> tuple[int, str]:
        """One call of a layer with two ops; the number that its backward node will have."""
        begin = self.now
        self.now += self.run(5, 50)
        for op in ("aten::mm", "aten::relu"):
            start = self.now
            self.now += self.run(3, 30)
            self.kernel((path, "forward", op), name=op[6:])
            self.now += self.run(5, 60)
            extra = {"Sequence number": self.sequence} if op == "aten::mm" else {}
            shapes = [[8, 4], [4, 2]] if op == "aten::mm" else [[8, 2]]
            self.trace.op(op, start, self.now, shapes=shapes, **extra)
            if op == "aten::mm":
                made = (start, path)
        self.trace.scope(path, begin, self.now)
        self.sequence += 1
        self.now += self.run(1, 200)
        return made

    def backward(self, calls: list[tuple[int, str]]) -> None:
        """On its own thread while the forward thread waits in no call of the runtime."""
        first = self.sequence - len(calls)
        for k, (forward_ns, path) in reversed(list(enumerate(calls))):
            start = self.now
            self.now += self.run(5, 30)
            self.kernel((path, "backward", "aten::mm"), thread=BACKWARD, name="mm_backward", at=self.now)
            inner = self.now
            self.now += self.run(5, 40)
            self.trace.op("aten::mm", inner - 1, self.now, BACKWARD, shapes=[[4, 8], [8, 2]])
            self.now += 3
            self.trace.node("MmBackward0", start, self.now, first + k)
            if self.random.random() < 0.7:
                self.trace.flow(forward_ns, start)
            self.now += self.run(1, 100)

    def graph(self) -> None:
        """One launch, several kernels, two of which may overlap."""
        launch = self.now
        correlation = self.trace.launch(launch, call="cudaGraphLaunch")
        at = max(launch + self.run(3, 200), self.free.get(7, 0))
        for _ in range(self.run(2, 6)):
            end = at + self.run(1, 300)
            self.trace.kernel("in_graph", at, end, correlation)
            self.truth.work.append(Work(at, end, 7, 0, "graph replay", FORWARD))
            at = max(at + 1, end - self.run(-20, 20))
            self.free[7] = max(self.free.get(7, 0), end)
        self.now += self.run(10, 60)

    def copy(self) -> None:
        start = max(self.now + self.run(3, 100), self.free.get(9, 0))
        end = start + self.run(1, 400)
        self.free[9] = end
        self.trace.copy(self.now, start, end, stream=9)
        self.truth.work.append(Work(start, end, 9, 1, "copy", FORWARD))
        self.now += self.run(3, 60)

    def orphans(self, low: int) -> None:
        """Kernels whose launch was before the window, and one that no op or layer is around."""
        for _ in range(self.run(0, 2)):
            start, end = low + self.run(0, 500), low + self.run(500, 900)
            self.trace.kernel("orphan", start, end, 10**6 + self.run(0, 10**6), stream=33)
            self.truth.work.append(Work(start, end, 33, 0, "no launch record", 0))
        if self.random.random() < 0.5:
            self.kernel("launched outside any op and layer", name="bare")
            self.now += self.run(3, 50)

    def end_step(self, number: int) -> None:
        self.trace.step(number, self.begin, self.now)
        self.begin = self.now

    def wait(self) -> None:
        """The device is synchronised, or the loader is asked for the next batch."""
        end = max(self.now + 5, *self.free.values()) + self.run(0, 300)
        if self.random.random() < 0.5:
            self.trace.host("cuda_runtime", "cudaDeviceSynchronize", self.now, end)
            self.truth.syncing.append((self.now, end))
        else:
            name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
            self.trace.host("user_annotation", name, self.now, end)
            self.truth.loading.append((self.now, end))
        self.now = end + self.run(1, 200)


def make_job(seed: int, ranks: int = 1, steps: int = 2, windows: int = 1) -> list[Rank]:
    """The ranks of a job, simulated to their end: so many windows of so many steps, with a long pause between them."""
    job = [Rank(i, ranks, Random(seed * 1000 + i)) for i in range(ranks)]
    for rank in job:
        rank.trace.metadata["baseTimeNanoseconds"] = BASE_NS
        rank.trace.metadata["distributedInfo"] = {"backend": "nccl", "rank": rank.number, "world_size": ranks}
    for window in range(windows):
        begun = [(rank, rank.now, len(rank.truth.work)) for rank in job]
        for rank, low, _ in begun:
            rank.begin = low
            rank.orphans(low)
        for step in range(window * (steps + 5), window * (steps + 5) + steps):
            for rank in job:
                _step(rank, step, job)
            if ranks > 1:
                _collective(job, step)
        for rank, low, before in begun:
            # Kernels without a launch belong to no step, and copies to no window of their own.
            ends = [w.end for w in rank.truth.work[before:] if w.thread and w.rank != 1]
            rank.truth.windows.append((low, max(rank.now, *ends)))
            rank.now = max(rank.now, *(w.end for w in rank.truth.work)) + PAUSE_NS
    return job


def _step(rank: Rank, number: int, job: list[Rank]) -> None:
    rank.now += rank.run(1, 50)
    calls = [rank.layer(rank.random.choice(LAYERS)) for _ in range(rank.run(1, 4))]
    for action in rank.random.sample((rank.graph, rank.copy, rank.wait), k=2):
        action()
    rank.backward(calls)
    if rank.random.random() < 0.5:
        rank.wait()
    if len(job) == 1:
        rank.end_step(number)


def _collective(job: list[Rank], step: int) -> None:
    """Every rank launches one; it runs from where its stream is free until all have come and moved their data."""
    starts = []
    for rank in job:
        op = rank.now
        rank.now += rank.run(3, 20)
        launch = rank.now
        rank.now += rank.run(5, 20)
        rank.trace.op("record_param_comms", op, rank.now)
        starts.append((rank, launch, max(launch + rank.run(3, 500), rank.free.get(40, 0))))
    last = max(start for _, _, start in starts)
    length = job[0].run(50, 600)
    for rank, launch, start in starts:
        key = (None, "outside", "record_param_comms")
        rank.trace.launch(launch, f"ncclDevKernel_AllReduce_Sum_f32({rank.number})", start, last + length, stream=40)
        rank.truth.work.append(Work(start, last + length, 40, 2, key, FORWARD))
        rank.truth.waiting += last - start
        rank.truth.moving += length
        rank.free[40] = last + length
        rank.now += 3
        rank.end_step(step)


def save(job: list[Rank], folder: Path) -> list[Path]:
    return [rank.trace.save(folder, f"rank{rank.number}.json") for rank in job]


def painted(truth: Truth) -> tuple[Counter, Counter]:
    """The windows one nanosecond at a time: busy time by row, reason or ``copy``; idle time by cause."""
    busy: Counter = Counter()
    idle: Counter = Counter()
    for low, high in truth.windows:
        _paint(truth, low, high, busy, idle)
    return busy, idle


def _paint(truth: Truth, low: int, high: int, busy: Counter, idle: Counter) -> None:
    owner = np.full(high - low, -1)
    # Painted over in order, the last one on top: whoever computes, then starts first, then has the lower stream.
    for i in sorted(range(len(truth.work)), key=lambda i: _priority(truth.work[i], i), reverse=True):
        work = truth.work[i]
        owner[max(0, work.start - low) : max(0, work.end - low)] = i
    for i, count in zip(*np.unique(owner[owner >= 0], return_counts=True), strict=True):
        busy[truth.work[i].key] += int(count)
    causes = np.array(["host"] * (high - low), dtype="U4")
    for cause, spans in (("sync", truth.syncing), ("data", truth.loading)):
        for start, end in spans:
            causes[max(0, start - low) : max(0, end - low)] = cause
    at = 0
    while at < high - low:
        if owner[at] >= 0:
            at += 1
            continue
        end = at
        while end < high - low and owner[end] < 0:
            end += 1
        thread = truth.work[owner[end]].thread if end < high - low else 0
        waited = thread in (FORWARD, 0) if _busiest(truth) == FORWARD else thread == FORWARD
        for cause in causes[at:end] if waited else ["host"] * (end - at):
            idle[str(cause)] += 1
        at = end


def _priority(work: Work, place: int) -> tuple[int, int, int, int]:
    return work.rank, work.start, work.stream, place


def _busiest(truth: Truth) -> int:
    """The thread with most launches: it answers for gaps that nothing with a launch ends."""
    launches = Counter(w.thread for w in truth.work if w.thread)
    return max(launches, key=lambda thread: (launches[thread], -thread))

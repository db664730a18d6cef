"""A fuzzed run: random trees, trained for a while under the profiler in one of the ways people write it."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.profiler import record_function
from torch.utils._python_dispatch import TorchDispatchMode
from trees import BATCH, Builder, Owners, Traits
from truth import ACTS, MARK, MATRICES

import torchroof


@dataclass(frozen=True)
class Plan:
    """How a seed trains."""

    seed: int
    traits: Traits
    trees: int
    """Each runs its forward passes on a thread of its own where there are several."""
    micro_steps: int
    steps: int
    retain: bool
    autocast: bool
    foreach: bool
    backward_thread: bool
    """Whether backward is called on another Python thread."""
    input_grad: bool

    @staticmethod
    def of(seed: int, backward_thread: bool) -> Plan:
        choose = random.Random(seed)
        twice = choose.random() < 0.25
        return Plan(
            seed=seed,
            traits=Traits(reentrant=not twice and choose.random() < 0.5, twice=twice),
            trees=choose.choice((1, 1, 2, 3)),
            micro_steps=choose.randint(1, 3),
            steps=choose.randint(2, 3),
            retain=not twice and choose.random() < 0.25,
            autocast=choose.random() < 0.3,
            foreach=choose.random() < 0.5,
            backward_thread=backward_thread,
            input_grad=twice or choose.random() < 0.5,
        )


class Run:
    """The models of a plan, and its training loop. The same plan makes the same run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        torch.manual_seed(plan.seed)
        builder = Builder(random.Random(plan.seed), list(range(3, 300)), plan.traits)
        builder.random.shuffle(builder.free)
        self.models: dict[str, nn.Module] = {}
        self.inputs: dict[str, Tensor] = {}
        for n in range(plan.trees):
            width = builder.free.pop()
            name = f"net{n}" if plan.trees > 1 else ""
            self.models[name] = builder.chain(width, 3, False)[0]
            self.inputs[name] = torch.randn(BATCH, width, requires_grad=plan.input_grad)
        parameters = [p for model in self.models.values() for p in model.parameters() if p.requires_grad]
        parameters = parameters or [nn.Parameter(torch.zeros(1))]
        self.optimizer = torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, foreach=plan.foreach)
        self.made: list[tuple[int, int]] = []
        """For each backward pass, the sequence numbers that were given out in it on the calling thread."""
        self.backwards = 0

    @property
    def owners(self) -> Owners:
        owners = Owners()
        for name, model in self.models.items():
            owners.read(name, model)
        return owners

    @property
    def model(self) -> Any:
        return self.models if len(self.models) > 1 else self.models[""]

    def train(self) -> None:
        for _ in range(self.plan.steps):
            for _ in range(self.plan.micro_steps):
                with record_function(f"{MARK}forward"):
                    losses = self._forward()
                with record_function(f"{MARK}backward"):
                    self._on_its_thread(lambda losses=losses: self._backward(losses))
            with record_function(f"{MARK}optimizer"):
                self.optimizer.step()
                self.optimizer.zero_grad()

    def _forward(self) -> list[Tensor]:
        losses: dict[str, Tensor] = {}

        def one(name: str) -> None:
            with torch.autocast("cpu", torch.bfloat16) if self.plan.autocast else nullcontext():
                out = self.models[name](self.inputs[name])
            losses[name] = (out * out).mean().float()

        if len(self.models) == 1:
            one("")
        else:
            threads = [threading.Thread(target=one, args=(name,)) for name in self.models]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return [losses[name] for name in self.models]

    def _on_its_thread(self, backward: Callable[[], None]) -> None:
        if self.plan.backward_thread:
            thread = threading.Thread(target=backward)
            thread.start()
            thread.join()
        else:
            backward()

    def _backward(self, losses: list[Tensor]) -> None:
        loss = torch.stack([x for x in losses if x.requires_grad] or [torch.zeros((), requires_grad=True)]).sum()
        if self.plan.traits.twice:
            inputs = list(self.inputs.values())
            with self._engine():
                gradients = torch.autograd.grad(loss, inputs, create_graph=True, allow_unused=True)
            loss = loss + sum(g.square().mean() for g in gradients if g is not None)
        for retain in (True, False) if self.plan.retain else (False,):
            with self._engine():
                loss.backward(retain_graph=retain)

    @contextmanager
    def _engine(self) -> Iterator[None]:
        before = torch.autograd._get_sequence_nr()
        yield
        self.made.append((before, torch.autograd._get_sequence_nr()))


class _Dispatched(TorchDispatchMode):
    """Counts what really ran, below autograd, where an op that was cut never arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tuple[Any, ...]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = f"aten::{func.overloadpacket.__name__}"
        if name in MATRICES:
            left, right = MATRICES[name]
            self.counts[name, tuple(args[left].shape), tuple(args[right].shape)] += 1
        elif name in ACTS:
            self.counts[name, tuple(args[0].shape)] += 1
        return func(*args, **(kwargs or {}))


def dispatched(plan: Plan) -> Counter[tuple[Any, ...]]:
    """The products and activations of an unprofiled twin of the run, by op and shapes. It has one thread."""
    twin = Run(plan)
    with _Dispatched() as mode, _no_threads():
        twin.train()
    return mode.counts


@contextmanager
def _no_threads() -> Iterator[None]:
    """Threads run where they are started."""

    class Here(threading.Thread):
        def start(self) -> None:
            self.run()

        def join(self, timeout: float | None = None) -> None:
            pass

    real, threading.Thread = threading.Thread, Here  # type: ignore[misc]
    try:
        yield
    finally:
        threading.Thread = real  # type: ignore[misc]


def profiled(run: Run) -> torchroof.profile:
    with torchroof.profile(run.model, measure=False) as prof:
        run.train()
    return prof

"""In every way to train: loss, gradients, parameters and all random states are the same bits with us and without."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.data
from torch import Tensor, nn
from torch.nn.modules import module as hooks
from ways import WAYS

import torchroof

STEPS = 3


def seed() -> None:
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)


def draws() -> list[Any]:
    """The state of all generators of random numbers."""
    numpys = np.random.get_state()
    return [torch.get_rng_state(), *numpys[:1], torch.from_numpy(np.array(numpys[1], dtype=np.int64)), *numpys[2:],
            random.getstate()]  # fmt: skip


def state_of(model: Any) -> list[Any]:
    """Parameters, gradients and buffers, as they are now."""
    models = model.values() if isinstance(model, dict) else [model] if model is not None else []
    tensors: list[Tensor | None] = []
    for one in models:
        for parameter in one.parameters():
            tensors += [parameter.detach(), parameter.grad]
        tensors += one.buffers()
    return [None if t is None else t.to_dense().clone() if t.is_sparse else t.clone() for t in tensors]


def same(ours: list[Any], theirs: list[Any]) -> bool:
    def equal(a: Any, b: Any) -> bool:
        if isinstance(a, Tensor):
            return isinstance(b, Tensor) and a.dtype == b.dtype and torch.equal(a, b)
        return bool(a == b)

    return len(ours) == len(theirs) and all(map(equal, ours, theirs))


def leftovers() -> dict[str, Any]:
    """Everything global that a profile touches while it records."""
    from torch.optim import optimizer

    tables = {name: dict(table) for name, table in vars(hooks).items() if isinstance(table, dict) and "hook" in name}
    steps = dict(optimizer._global_optimizer_pre_hooks), dict(optimizer._global_optimizer_post_hooks)
    return tables | {"steps": steps, "profiling": torch.autograd._profiler_enabled(), "grad": torch.is_grad_enabled()}


def run(name: str, profiled: bool) -> list[Any]:
    seed()
    model, step = WAYS[name]()
    seen: list[Any] = []
    before = leftovers()
    with torchroof.profile(model, measure=False) if profiled else nullcontext() as prof:
        for _ in range(STEPS):
            seen += step()
            if prof is not None:
                prof.step()
        seen += step()
    assert leftovers() == before
    if prof is not None:
        assert prof.notes == ()
        assert not [n.text for n in prof.report.data.notes if "could not be recorded" in n.text or "lost" in n.text]
    return [*seen, *state_of(model), *draws()]


@pytest.mark.parametrize("name", WAYS)
def test_the_same_bits(name: str) -> None:
    assert same(run(name, profiled=True), run(name, profiled=False))


def test_one_bit_is_noticed() -> None:
    ours, theirs = run("attention", profiled=False), run("attention", profiled=False)
    assert same(ours, theirs)
    ours[0] = torch.nextafter(ours[0], torch.tensor(9.0))
    assert not same(ours, theirs)
    for draw in (lambda: torch.rand(1), lambda: np.random.rand(), lambda: random.random()):
        seed()
        before = draws()
        draw()
        assert not same(before, draws())


class Bang(Exception):
    pass


def bangs(where: str, error: type[BaseException], profiled: bool) -> list[Any]:
    """Trains, has an error thrown in the second step, in a layer or in a backward pass, and trains on without us."""
    seed()
    model, step = WAYS["accumulation over micro steps"]()
    assert isinstance(model, nn.Module)
    seen: list[Any] = []

    def throw(*_: Any) -> None:
        raise error

    def loop(prof: torchroof.profile | None) -> None:
        for n in range(3):
            if n == 1:
                register = model.last.register_forward_hook if where == "forward" else model.first.weight.register_hook
                handle.append(register(throw))
            seen.extend(step())
            if prof is not None:
                prof.step()

    handle: list[Any] = []
    before = leftovers()
    with suppress(error), torchroof.profile(model, measure=False) if profiled else nullcontext() as prof:
        loop(prof)
    assert leftovers() == before
    handle[0].remove()
    for _ in range(2):
        seen += step()
    return [*seen, *state_of(model), *draws()]


@pytest.mark.parametrize("error", [Bang, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_the_same_bits_after_an_error(where: str, error: type[BaseException]) -> None:
    assert same(bangs(where, error, profiled=True), bangs(where, error, profiled=False))


@pytest.mark.parametrize("end", ["closed", "dropped", "thrown into"])
def test_a_loop_in_a_generator_that_is_left_half_way(end: str) -> None:
    def training(profiled: bool) -> list[Any]:
        seed()
        model, step = WAYS["evaluation between steps"]()

        def loop() -> Iterator[list[Tensor]]:
            with torchroof.profile(model, measure=False) if profiled else nullcontext() as prof:
                while True:
                    yield step()
                    if prof is not None:
                        prof.step()

        before = leftovers()
        running = loop()
        seen = [*next(running), *next(running)]
        assert not profiled or leftovers() != before
        if end == "closed":
            running.close()
        elif end == "thrown into":
            with suppress(Bang):
                running.throw(Bang)
        else:
            del running
        assert leftovers() == before
        return [*seen, *step(), *state_of(model), *draws()]

    assert same(training(True), training(False))


def test_a_profile_that_is_never_entered() -> None:
    def training(profiled: bool) -> list[Any]:
        seed()
        model, step = WAYS["attention"]()
        before = leftovers()
        prof = torchroof.profile(model) if profiled else None
        seen: list[Any] = []
        for _ in range(STEPS):
            seen += step()
            if prof is not None:
                prof.step()
                assert list(prof.reports) == [] and prof.notes == ()
        assert leftovers() == before
        return [*seen, *state_of(model), *draws()]

    assert same(training(True), training(False))

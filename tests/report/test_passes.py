"""Backward passes, steps of the optimizer, and steps without recording: counted against loops that say how many."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import torchroof

COUNTED = 2


def run(step, model, **schedule):
    chosen = torchroof.schedule(**({"wait": 0, "warmup": 2, "active": COUNTED} | schedule))
    with torchroof.profile(model, measure=False, schedule=chosen) as prof:
        for _ in range(2 + COUNTED):
            step()
            prof.step()
    return prof.report.data.totals


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))


@pytest.mark.parametrize("micro", [1, 4])
def test_micro_steps(micro):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        for _ in range(micro):
            model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    totals = run(step, model)
    assert (totals.backward_passes, totals.optimizer_steps) == (micro * COUNTED, COUNTED)


def test_the_same_graph_twice_is_two_passes():
    model = nn.Linear(4, 4)

    def step():
        model.zero_grad(set_to_none=False)
        loss = model(torch.ones(2, 4)).sum()
        loss.backward(retain_graph=True)
        loss.backward()

    totals = run(step, model)
    assert (totals.backward_passes, totals.optimizer_steps) == (2 * COUNTED, 0)


@pytest.mark.parametrize("reentrant", [True, False])
def test_recomputation_is_no_pass_of_its_own(reentrant):
    model, head = net(), nn.Linear(4, 4)
    x = torch.ones(2, 4, requires_grad=True)

    def step():
        model.zero_grad(set_to_none=False)
        head(checkpoint(model, x, use_reentrant=reentrant)).sum().backward()

    assert run(step, model).backward_passes == COUNTED


def test_branches_that_meet_are_one_pass():
    first, second = net(), net()

    def step():
        x = torch.ones(2, 4)
        (first(x).sum() * second(x).sum() + first(second(x)).sum()).backward()

    assert run(step, {"a": first, "b": second}).backward_passes == COUNTED


def test_without_training_there_are_none():
    model = net()
    totals = run(lambda: model(torch.ones(2, 4)), model)
    assert (totals.backward_passes, totals.optimizer_steps) == (0, 0)


@pytest.mark.parametrize(("wait", "after"), [(0, 0), (3, 0), (0, 2), (2, 2)])
def test_steps_without_recording_are_counted_before_the_window_and_after_it(wait, after):
    model = net()
    with torchroof.profile(model, measure=False, schedule=torchroof.schedule(wait, 1, 1)) as prof:
        for _ in range(wait + 2 + after):
            model(torch.ones(2, 4))
            prof.step()
    overhead = prof.report.data.totals.overhead
    before = max(0, wait - 1)  # the very first step pays for what is made at first use
    assert overhead["unrecorded_steps"] == before + after
    assert (overhead["unrecorded_step_ns"] is None) == (before + after == 0)
    text = str(prof.report)
    assert ("not recorded" in text) == (before + after > 0) and "recording" in text

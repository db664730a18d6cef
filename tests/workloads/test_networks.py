"""The demo's networks: their names, their sizes, that they learn, and that their reports leave nothing unknown."""

from __future__ import annotations

import tomllib

import pytest
import torch
from laws import check
from small_networks import profiled, small

from torchroof.resources import configs_folder
from torchroof.workloads import NAMES
from torchroof.workloads.networks import build, sizes


def test_a_section_of_sizes_for_each_name() -> None:
    with (configs_folder() / "workloads.toml").open("rb") as file:
        assert tuple(tomllib.load(file)) == NAMES


def test_sizes_that_are_given_go_before_the_files() -> None:
    standard = sizes("mlp")
    assert sizes("mlp", batch_size=None, steps=None) == standard
    changed = sizes("mlp", batch_size=standard.batch_size + 1, steps=None)
    assert (changed.batch_size, changed.steps) == (standard.batch_size + 1, standard.steps)


def test_the_transformer_shares_its_embedding_with_its_output() -> None:
    model = small("transformer").model
    assert model.head.weight is model.embedding.weight


def test_the_transformer_does_not_see_what_it_is_to_foretell() -> None:
    model = small("transformer").model
    tokens = torch.randint(64, (1, 16))
    other = tokens.clone()
    other[0, 10:] = (other[0, 10:] + 1) % 64
    with torch.no_grad():
        before, after = model(tokens), model(other)
    assert torch.allclose(before[:10], after[:10]) and not torch.allclose(before[10], after[10])


def test_resnet_at_its_standard_width_is_resnet_18() -> None:
    """11,689,512 parameters with 1,000 classes; the last layer has 513 for each."""
    model = build("resnet", sizes("resnet")).model
    assert sum(p.numel() for p in model.parameters()) == 11_689_512 - 900 * 513


@pytest.mark.parametrize("name", NAMES)
def test_the_same_every_time_and_it_learns(name: str) -> None:
    first, second = small(name), small(name)
    start = float(first.step())
    assert start == float(second.step())
    for _ in range(8):
        last = float(first.step())
    assert last < start


def test_each_step_has_gradients_of_its_own() -> None:
    """At a learning rate of 0 every step finds the same gradients; kept ones would add up."""
    workload = build("mlp", sizes("mlp", batch_size=2, features=8, hidden=8, learning_rate=0.0))
    found = []
    for _ in range(2):
        workload.step()
        found.append([p.grad.clone() for p in workload.model.parameters() if p.grad is not None])
    assert len(found[0]) == 8 and all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_the_laws_hold_and_nothing_is_unknown(name: str) -> None:
    workload = small(name)
    data = profiled(workload.model, workload.step)
    check(data)
    assert {row.op for row in data.rows if row.flops is None or row.bytes_read is None} == set()
    assert data.unattributed == ()
    paths = {name for name, _ in workload.model.named_modules()}
    assert {row.path for row in data.rows if row.type is not None} <= paths
    # Between the phases torch only writes the one that the gradient of the loss starts from.
    beside = [row for row in data.rows if row.phase not in ("forward", "backward", "optimizer")]
    assert {row.op for row in beside} <= {"aten::fill_", "aten::add", "aten::add_"}
    assert {row.phase for row in beside if row.op != "aten::fill_"} <= {"grad_accumulate"}

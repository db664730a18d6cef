"""Our hooks and torch.compile: no graph breaks, no warning, no extra layer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import torchroof


def test_hooks_break_no_graph_and_warn_of_nothing(left: Callable[..., Any]) -> None:
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    compiled = torch.compile(model, backend=backend)
    x = torch.ones(2, 4)
    with torchroof.profile(compiled, measure=False) as prof:
        with_ours = list(warnings.filters)
        assert torch.equal(compiled(x), model(x))  # a warning would be an error here
    assert warnings.filters[0] != with_ours[0]
    torch._dynamo.reset()
    assert len(graphs) == 1
    found = left(prof)
    assert "OptimizedModule" not in {layer.type for layer in found.facts.layers}
    assert found.calls == found.scopes
    assert set(found.calls) == {"", "0", "1", "2"}  # from the eager call


def test_a_compiled_module_called_first_lends_its_paths(left: Callable[..., Any]) -> None:
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    compiled = torch.compile(model, backend="eager")
    with torchroof.profile(measure=False) as prof:
        compiled(torch.ones(2, 4))
        model(torch.ones(2, 4))
    torch._dynamo.reset()
    assert left(prof).calls == {"": 1, "0": 1, "1": 1}

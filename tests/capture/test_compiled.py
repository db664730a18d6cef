"""Our hooks and torch.compile: no graph breaks, no warning, no extra layer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from trace_maker import TraceMaker

import torchroof
from torchroof.report.build import analyse
from torchroof.trace.reader import read


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


def test_dynamo_may_be_reset_inside_the_block() -> None:
    """Which forgets who listens to it: what is compiled afterwards must be free of our hooks all the same."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    x = torch.ones(2, 4)
    compiled = torch.compile(lambda y: model(y) + 1, backend="eager", fullgraph=True)
    handler = torch._dynamo.callback.callback_handler
    with torchroof.profile(model, measure=False) as prof:
        model(x)
        for _ in range(2):
            torch._dynamo.reset()
            assert torch.equal(compiled(x), model(x) + 1)  # a graph break would raise
    assert not prof.notes
    torch._dynamo.utils.counters.clear()
    compiled(x)
    assert not torch._dynamo.utils.counters["stats"]  # it was not guarded on our hooks
    torch._dynamo.reset()
    assert not handler.start_callbacks and not handler.end_callbacks and "clear" not in vars(handler)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("dynamic", [None, {"input": {0: torch.export.Dim("batch")}}], ids=["static", "dynamic"])
def test_a_model_may_be_exported_inside_the_block(strict: bool, dynamic: Any, left: Callable[..., Any]) -> None:
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval(), torch.ones(2, 4)

    def exported() -> tuple[str, str]:
        program = torch.export.export(model, (x,), dynamic_shapes=dynamic, strict=strict)
        return str(program.graph), str(program.range_constraints)

    alone = exported()
    with torchroof.profile(model, schedule=torchroof.schedule(warmup=1, active=3), measure=False) as prof:
        for step in range(4):
            model(x)
            if step == 2:
                assert exported() == alone
            prof.step()
    assert not prof.notes
    calls = left(prof).calls
    assert calls["0"] == calls["1"] >= 4  # after the export, too
    torch._dynamo.reset()


def test_a_compiled_module_called_first_lends_its_paths(left: Callable[..., Any]) -> None:
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    compiled = torch.compile(model, backend="eager")
    with torchroof.profile(measure=False) as prof:
        compiled(torch.ones(2, 4))
        model(torch.ones(2, 4))
    torch._dynamo.reset()
    assert left(prof).calls == {"": 1, "0": 1, "1": 1}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(x)))


def _whole(net: nn.Sequential) -> Any:
    return torch.compile(net, backend="aot_eager")


def _part(net: nn.Sequential) -> Any:
    net[1] = torch.compile(net[1], backend="aot_eager")
    return net


def _in_place(net: nn.Sequential) -> Any:
    net[1].compile(backend="aot_eager")
    return net


def _break(net: nn.Sequential) -> Any:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = net[0](x)
        torch._dynamo.graph_break()
        return net[2](net[1](y))

    return torch.compile(forward, backend="aot_eager")


def _compiled(build: Callable[[nn.Sequential], Any], profiled: bool, known: bool, before: int) -> tuple[Any, ...]:
    """Dynamo's counts and the losses over warm-up, window and exit."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    net = nn.Sequential(Block(), Block(), nn.Linear(8, 2))
    call = build(net)
    losses = []

    def step() -> None:
        net.zero_grad()
        loss = call(torch.randn(4, 8)).square().mean()
        loss.backward()
        losses.append(loss.item())

    for _ in range(before):
        step()
    if profiled:
        with torchroof.profile(net if known else None, measure=False) as prof:
            for _ in range(4):
                step()
                prof.step()
        assert prof.report.data.steps == 3 and not prof.notes
    else:
        for _ in range(4):
            step()
    for _ in range(2):
        step()
    counters = torch._dynamo.utils.counters
    counts = {name: dict(counters[name]) for name in ("stats", "frames", "graph_break")}
    torch._dynamo.reset()
    return counts, losses


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # dynamo's own doing
@pytest.mark.parametrize("known", [True, False], ids=["model given", "no model"])
@pytest.mark.parametrize("before", [0, 1], ids=["cold", "warm"])
@pytest.mark.parametrize("build", [_whole, _part, _in_place, _break])
def test_nothing_is_compiled_or_broken_because_of_us(build: Any, before: int, known: bool) -> None:
    assert _compiled(build, True, known, before) == _compiled(build, False, known, before)


def test_a_step_that_compiles_does_not_count(left: Callable[..., Any]) -> None:
    torch._dynamo.reset()
    first, second = (torch.compile(module, backend="eager") for module in (nn.Linear(4, 4), nn.Softmax(1)))
    with torchroof.profile(measure=False) as prof:
        for number in range(4):
            first(torch.ones(2, 4))
            if number > 1:
                second(torch.ones(2, 4))
            prof.step()
    torch._dynamo.reset()
    data = prof.report.data
    assert [s.index for s in data.per_step if s.counted] == [1, 3]
    assert any(n.text == "torch.compile compiled in step 2; not counted" for n in data.notes)


def test_compiled_code_is_an_op_of_its_own(tmp_path: Path) -> None:
    t = TraceMaker()
    t.metadata = {}
    t.host("cpu_op", "CompiledFunction", 0, 1000)
    t.host("user_annotation", "## Call CompiledFxGraph fu5lt23mijuttvjmwgmg3awy7nx6 ##", 100, 900)
    t.op("aten::mm", 200, 500, shapes=[[4, 4], [4, 4]])
    rows = {row.op: row for row in analyse(read(t.save(tmp_path))).rows}
    graph = rows["CompiledFxGraph fu5lt23m"]
    assert graph.kernel_ns == 500 and graph.flops is None and graph.bound is None
    assert rows["aten::mm"].kernel_ns == 300 and rows["aten::mm"].flops == 128
    assert rows["CompiledFunction"].kernel_ns == 200

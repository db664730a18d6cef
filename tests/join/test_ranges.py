"""The user's own ranges as layers: every kernel keeps its time, and backward finds its way through the numbers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import laws
import pytest
from trace_maker import TraceMaker

import torchroof
from torchroof.errors import OptionError


def made() -> TraceMaker:
    """Two blocks with an attention each, forward and backward, inside a step."""
    trace = TraceMaker()
    trace.step(3, 0, 100_000)
    for block in (0, 1):
        at = 1000 + 20_000 * block
        trace.host("user_annotation", f"block{block}", at, at + 10_000)
        trace.host("user_annotation", "attention", at + 100, at + 5000)
        trace.op("aten::mm", at + 200, at + 1000, shapes=[[4, 8], [8, 2]], **{"Sequence number": 10 + block})
        trace.launch(at + 300, "mm", at + 2000, at + 2500)
        trace.op("aten::relu", at + 6000, at + 7000, shapes=[[4, 2]])
        trace.launch(at + 6100, "relu", at + 6500, at + 6600)
        trace.node("MmBackward0", at + 30_000, at + 31_000, 10 + block)
        trace.op("aten::mm", at + 30_100, at + 30_900, 2, shapes=[[4, 2], [2, 8]])
        trace.launch(at + 30_200, "mm", at + 30_400, at + 31_400, thread=2)
    return trace


def test_layers_are_the_ranges_by_their_nesting(tmp_path: Path) -> None:
    data = torchroof.analyze(made().save(tmp_path), layers_from="annotations").data
    laws.check(data)
    time = {(r.path, r.phase): r.kernel_ns for r in data.rows}
    assert time == {
        (f"block{i}{layer}", phase): ns
        for i in (0, 1)
        for layer, phase, ns in ((".attention", "forward", 500), ("", "forward", 100), (".attention", "backward", 1000))
    }


def test_marks_of_torch_are_no_layers(tmp_path: Path) -> None:
    trace = TraceMaker()
    for name in ("ProfilerStep#1", "Optimizer.step#SGD.step", "enumerate(DataLoader)#x", "## Call x ##", "nccl:sum"):
        trace.host("user_annotation", name, 0, 1000)
    trace.op("aten::mm", 10, 20)
    path = trace.save(tmp_path)
    with pytest.raises(OptionError, match=r"trace\.json has no ranges of record_function"):
        torchroof.analyze(path, layers_from="annotations")
    with pytest.raises(OptionError, match="choose one of auto, annotations"):
        torchroof.analyze(path, layers_from="stacks")


def test_ranges_of_2021_stand_among_the_ops(tmp_path: Path) -> None:
    trace = TraceMaker()
    trace.host("Operator", "my block", 0, 1000)
    trace.host("Operator", "aten::mm", 10, 900)
    trace.launch(20, "mm", 30, 530)
    data = torchroof.analyze(trace.save(tmp_path), layers_from="annotations").data
    assert [(r.path, r.op, r.kernel_ns) for r in data.rows] == [("my block", "aten::mm", 500)]


def test_ranges_replace_the_scopes_of_a_capture(tmp_path: Path) -> None:
    trace = made()
    trace.scope("model", 500, 90_000)
    trace.metadata["torchroof"] = {"version": 1, "layers": [{"path": "model", "type": "Net"}], "calls": []}
    path = trace.save(tmp_path)
    assert {r.path for r in torchroof.analyze(path).data.rows} == {"model"}
    data = torchroof.analyze(path, layers_from="annotations").data
    assert {layer.path for layer in data.layers} == {"block0", "block1", "block0.attention", "block1.attention"}


@pytest.mark.shared
@pytest.mark.parametrize("name", ["tl-b300-moe-202604", "sidnb13-transformer-202507"])
def test_real_ranges_lose_nothing(shared_traces: Path, name: str) -> None:
    path = shared_traces / f"{name}.json.gz"
    data = torchroof.analyze(path, layers_from="annotations").data
    laws.check(data)
    assert data.totals.kernel_ns == torchroof.analyze(path).data.totals.kernel_ns
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    names = {e["name"] for e in events if e.get("cat") in ("user_annotation", "Operator")}
    assert data.layers
    assert {layer.path.rpartition(".")[2] for layer in data.layers if "." not in layer.path} <= names

"""FLOPs of profiled steps against an independent witness, torch's own counter, and against paper."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from architectures import ARCHITECTURES
from small_networks import profiled, small
from torch.utils.flop_counter import FlopCounterMode, flop_registry, sdpa_flop_count

from torchroof.report.model import ReportData
from torchroof.work.registry import MATRIX_FAMILIES
from torchroof.work.standard import STANDARD
from torchroof.workloads import NAMES
from torchroof.workloads.networks import build, sizes

DOC = Path(__file__).parents[2] / "docs" / "flops-against-torch.md"
ROW = re.compile(r"\| (\S+) \| `(\w+)` \| (\w+) \| ([\d,]+) \| ([\d,]+) \| (\w+) \|")

Counts = dict[tuple[str, str], int]
"""FLOPs by op (`aten::…`) and phase."""


def listed(model: str) -> dict[tuple[str, str], tuple[int, int]]:
    """The differences that the page lists of a model: torch's count and ours."""
    rows = [row for row in ROW.findall(DOC.read_text(encoding="utf-8")) if row[0] == model]
    found = {
        (f"aten::{op}", phase): (int(torchs.replace(",", "")), int(ours.replace(",", "")))
        for _, op, phase, torchs, ours, _ in rows
    }
    assert len(found) == len(rows)
    return found


def torchs(step: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> Counts:
    """What torch's counter finds in a step; what it finds inside `Tensor.backward` is the backward phase."""
    backward = FlopCounterMode(display=False)
    plain = torch.Tensor.backward

    def counted(*args: Any, **kwargs: Any) -> None:
        with backward:
            plain(*args, **kwargs)

    with monkeypatch.context() as patch, FlopCounterMode(display=False) as whole:
        patch.setattr(torch.Tensor, "backward", counted)
        step()
    everything, inside = _by_op(whole), _by_op(backward)
    counts = {(op, "forward"): flops - inside.get(op, 0) for op, flops in everything.items()}
    counts |= {(op, "backward"): flops for op, flops in inside.items()}
    return {key: flops for key, flops in counts.items() if flops}


def _by_op(counter: FlopCounterMode) -> dict[str, int]:
    return {str(op).replace(".", "::"): flops for op, flops in counter.get_flop_counts().get("Global", {}).items()}


def ours(data: ReportData) -> Counts:
    """What the report says of the ops whose FLOPs are products: those that torch's counter is about."""
    torch_counts = {str(op).replace(".", "::") for op in flop_registry}
    counts: Counter[tuple[str, str]] = Counter()
    for row in data.rows:
        family = STANDARD.family(row.op or "")
        if row.flops and (family in MATRIX_FAMILIES or row.op in torch_counts):
            counts[row.op or "", row.phase] += row.flops
    return dict(counts)


def differences(torch_counts: Counts, our_counts: Counts) -> dict[tuple[str, str], tuple[int, int]]:
    keys = torch_counts.keys() | our_counts.keys()
    pairs = {key: (torch_counts.get(key, 0), our_counts.get(key, 0)) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


@pytest.mark.parametrize("name", NAMES)
def test_op_by_op_as_torch_counts_save_what_the_page_lists(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = small(name)
    torch_counts = torchs(workload.step, monkeypatch)
    our_counts = ours(profiled(workload.model, workload.step))
    assert len(torch_counts) >= 2
    assert differences(torch_counts, our_counts) == listed(name)


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.filterwarnings("ignore")  # what transformers and its parts warn of is no concern here
def test_architectures_op_by_op_as_torch_counts_save_what_the_page_lists(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model, step = ARCHITECTURES[name]()
    torch.manual_seed(1)
    torch_counts = torchs(step, monkeypatch)
    torch.manual_seed(1)
    our_counts = ours(profiled(model, step))
    assert {phase for _, phase in torch_counts} == {"forward", "backward"}
    assert differences(torch_counts, our_counts) == listed(name)


def test_a_depthwise_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 filters of 1 x 3 x 3 on 2 x 64 x 14 x 14: 2 * 2 * 14 * 14 * 576 = 451,584 forward and twice that backward."""
    model = torch.nn.Conv2d(64, 64, 3, padding=1, groups=64)
    images = torch.randn(2, 64, 14, 14, requires_grad=True)

    def step() -> None:
        model(images).sum().backward()

    our_counts = ours(profiled(model, step))
    assert our_counts == {
        ("aten::convolution", "forward"): 451_584,
        ("aten::convolution_backward", "backward"): 903_168,
    }
    assert differences(torchs(step, monkeypatch), our_counts) == listed("depthwise")


def test_the_page_lists_no_other_models() -> None:
    assert {row[0] for row in ROW.findall(DOC.read_text(encoding="utf-8"))} <= {*NAMES, *ARCHITECTURES, "depthwise"}


def test_torch_counts_causal_attention_in_full() -> None:
    """Where it counts attention, which it does on GPUs: 16 queries see 16 keys each, 256 pairs instead of 136, and
    what it finds for one of the transformer's layers is our ``flops_full``."""
    operands = (2, 4, 16, 8)
    workload = small("transformer")
    rows = profiled(workload.model, workload.step).rows
    row = next(r for r in rows if r.op == "aten::scaled_dot_product_attention")
    assert row.flops is not None and row.flops_full == sdpa_flop_count(operands, operands, operands) == 65_536
    assert row.flops * 256 == row.flops_full * 136


def test_the_lesson_by_hand() -> None:
    """Batch 8. The convolution: 16 filters of 3 x 3 x 3 at 224 x 224 places, 2 * 8 * 50,176 * 432 = 346,816,512 FLOPs;
    backward as many for the weight's gradient and none for the images', which nobody wants. The linear layer has
    16 * 112 * 112 = 200,704 inputs and 10 outputs, 2 * 8 * 200,704 * 10 = 32,112,640; backward one such product for
    the weight and one for the inputs. Biases count 0 in both. No other layer does as much, whatever it does."""
    workload = build("lesson", sizes("lesson", batch_size=8))
    data = profiled(workload.model, workload.step)
    products: Counter[tuple[str | None, str]] = Counter()
    everything: Counter[str] = Counter()
    for row in data.rows:
        if STANDARD.family(row.op or "") in MATRIX_FAMILIES:
            products[row.path, row.phase] += row.flops or 0
        if row.type is not None:
            everything[row.path or ""] += row.flops or 0
    assert dict(products) == {
        ("conv", "forward"): 346_816_512,
        ("conv", "backward"): 346_816_512,
        ("fc", "forward"): 32_112_640,
        ("fc", "backward"): 2 * 32_112_640,
    }
    assert [path for path, _ in everything.most_common(2)] == ["conv", "fc"]


def test_a_shared_layer_that_is_called_twice_counts_twice() -> None:
    """16 rows of 32 by 32 x 32: 2 · 16 · 32 · 32 = 32,768 FLOPs a product. Two forward; backward two for the weight and
    one for the input of the second call: that of the first needs no gradient. torch's counter gives it 65,536 of
    these 98,304."""

    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shared = torch.nn.Linear(32, 32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.shared(self.shared(x))

    model, rows = Twice(), torch.randn(16, 32)
    data = profiled(model, lambda: model(rows).sum().backward())
    counts: Counter[tuple[str | None, str]] = Counter()
    for row in data.rows:
        if row.op in ("aten::addmm", "aten::mm"):
            counts[row.path, row.phase] += row.flops or 0
    assert dict(counts) == {("shared", "forward"): 65_536, ("shared", "backward"): 98_304}
    assert [layer.calls for layer in data.layers if layer.path == "shared"] == [2]

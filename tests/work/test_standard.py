"""The registry as a whole: what it holds, that no operand breaks it, and that a real run is priced in full."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import everything, recorded
from schema_calls import Recorder
from torch.utils.flop_counter import FlopCounterMode

from torchroof.tensors import DTYPES, OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.models import attention, convolution, embedding, matmul, norm, optimizer, pooling
from torchroof.work.registry import MATRIX_FAMILIES
from torchroof.work.standard import STANDARD

TABLES = (matmul, convolution, attention, norm, pooling, embedding, optimizer)
MODELS = tuple(model for table in TABLES for model in table.MODELS)


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3, padding=1, stride=2),
            torch.nn.BatchNorm2d(4),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2, 2),
            torch.nn.ConvTranspose2d(4, 6, 2, stride=2, groups=2),
            torch.nn.GroupNorm(2, 6),
            torch.nn.AvgPool2d(2),
            torch.nn.AdaptiveAvgPool2d((2, 3)),
        )
        self.words = torch.nn.Embedding(11, 8)
        self.bag = torch.nn.EmbeddingBag(11, 8, mode="sum")
        self.norm = torch.nn.LayerNorm(8)
        self.end = torch.nn.Linear(8, 5)

    def forward(self, image, words):
        seen = self.features(image).reshape(2, -1, 2).mean(-1)
        x = self.norm(self.words(words)) + self.bag(words)[:, None]
        x = x.unsqueeze(1)
        x = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True).squeeze(1)
        x = torch.baddbmm(x, x @ x.transpose(1, 2), x)
        return self.end(x).sum() + seen.sum()


def train():
    torch.manual_seed(0)
    net = Network()
    optimizers = [
        torch.optim.Adam(net.parameters(), foreach=True, amsgrad=True, weight_decay=0.1),
        torch.optim.SGD(net.parameters(), foreach=True, momentum=0.9, nesterov=True),
        torch.optim.AdamW(net.parameters(), fused=True),
        torch.optim.SGD(net.parameters(), fused=True, momentum=0.9),
        torch.optim.Adagrad(net.parameters(), fused=True),
        torch.optim.RMSprop(net.parameters(), foreach=True),
    ]

    def step():
        net(torch.randn(2, 3, 24, 24, requires_grad=True), torch.randint(0, 11, (2, 5))).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True)
        for each in optimizers:
            each.step()

    return step


@pytest.fixture(scope="module")
def calls() -> list[OpCall]:
    step = train()
    step()
    return [event.call for event in everything(recorded(step))]


def test_a_real_run_is_priced_in_full(calls):
    seen = set()
    for call in calls:
        priced = STANDARD.price(call)
        if call.name not in STANDARD.models:
            continue
        seen.add((priced.family, call.name))
        assert priced.work.flops is not None, (call, priced.reason)
        if not any(isinstance(v, tuple) and v and isinstance(v[0], TensorSpec) for v in call.operands):
            # (element types in lists are not recorded)
            assert priced.reason is None, (call, priced.reason)
    assert {model.family for model in MODELS} <= {family for family, _ in seen}
    assert len({op for family, op in seen if family == "optimizer"}) >= 12


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.floats(),
    st.just("mean"),
    st.lists(st.integers(-2, 5), max_size=4).map(tuple),
    st.lists(st.booleans(), max_size=4).map(tuple),
    st.lists(st.floats(), min_size=1, max_size=2).map(tuple),
)
SPECS = st.builds(
    TensorSpec,
    st.lists(st.integers(0, 4), max_size=5).map(tuple),
    st.none() | st.sampled_from(list(DTYPES.values())),
)
OPERANDS = st.one_of(SPECS, SPECS, VALUES, st.lists(SPECS, max_size=3).map(tuple))


def sound(work: Work) -> bool:
    figures = (work.flops, work.flops_full, work.bytes_read, work.bytes_written, work.bytes_upper)
    return all(figure is None or (type(figure) is int and figure >= 0) for figure in figures)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
@settings(max_examples=50)
@given(operands=st.lists(OPERANDS, max_size=18).map(tuple), known=st.booleans())
def test_any_operands_give_work_or_unknown(table, operands, known):
    for model in table.MODELS:
        try:
            work = model.formula(OpCall(model.op, operands, known))
        except Unknown:
            continue
        assert sound(work), (model.op, work)


@settings(max_examples=200)
@given(data=st.data())
def test_a_recorded_call_with_a_fault_gives_work_or_unknown(calls, data):
    ours = {model.op: model for model in MODELS}
    call = data.draw(st.sampled_from([call for call in calls if call.name in ours]))
    operands = list(call.operands)
    at = data.draw(st.integers(0, len(operands) - 1))
    if data.draw(st.booleans()):
        operands[at] = data.draw(OPERANDS)
    else:
        del operands[at:]
    try:
        work = ours[call.name].formula(OpCall(call.name, tuple(operands), data.draw(st.booleans())))
    except Unknown:
        return
    assert sound(work), (operands, work)


def in_float64(value):
    if not isinstance(value, TensorSpec) or value.dtype != DTYPES["float32"]:
        return value
    return TensorSpec(value.shape, DTYPES["float64"], value.strides)


def test_twice_the_item_size_doubles_bytes_and_keeps_flops(calls):
    checked = set()
    for call in calls:
        family = STANDARD.family(call.name)
        if family not in {"matmul", "convolution", "attention", "norm"}:
            continue
        wide = STANDARD.price(OpCall(call.name, tuple(map(in_float64, call.operands)))).work
        narrow = STANDARD.price(call).work
        assert (wide.flops, wide.bytes_moved) == (narrow.flops, 2 * narrow.bytes_moved), call
        checked.add(call.name)
    assert len(checked) >= 12


def test_packed_attention_says_why_it_has_no_flops():
    x, ends = TensorSpec((10, 4, 8), DTYPES["float16"]), TensorSpec((3,), DTYPES["int32"])
    operands = (x, x, x, ends, ends, 6, 6, 0.0, True, False, *[None] * 7)
    priced = STANDARD.price(OpCall("aten::_flash_attention_forward", operands))
    assert priced.reason == "the FLOPs of aten::_flash_attention_forward cannot be told from its operands"
    assert priced.work.bytes_moved is not None


def test_every_model_is_an_op_of_torch_and_says_what_it_counts():
    for model in MODELS:
        foreign = model.op.startswith("flash_attn::")
        assert foreign or hasattr(torch.ops.aten, model.op.removeprefix("aten::")), model.op
        assert model.words.endswith(".")
    assert {model.family for model in MODELS} == {
        "pointwise",
        "matmul",
        "convolution",
        "attention",
        "norm",
        "pooling",
        "embedding",
        "optimizer",
    }
    assert {model.op for model in MODELS} <= set(STANDARD.models)


def test_every_foreach_and_fused_op_has_a_model():
    lists = {n.split(".")[0] for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::_foreach_")}
    generated = {"aten::_foreach_copy", "aten::_foreach_zero", "aten::_foreach_clone_"}
    assert lists - generated <= set(STANDARD.models)


def test_it_needs_no_torch():
    code = "import sys, torchroof.work.standard; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def matrix_flops(calls):
    priced = [STANDARD.price(call) for call in calls]
    return sum(p.work.flops for p in priced if p.family in MATRIX_FAMILIES)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (torch.nn.Linear(7, 5), (3, 7)),
        (torch.nn.Conv1d(4, 6, 3, padding=2, dilation=2), (2, 4, 9)),
        (torch.nn.Conv2d(4, 6, 3, stride=2), (2, 4, 9, 9)),
        (torch.nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)),
        (torch.nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), (2, 4, 5, 5)),
        (torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 3)), (2, 3, 8, 8)),
    ],
    ids=str,
)
def test_the_flop_counter_of_torch_agrees(module, shape):
    # Ungrouped only: that counter multiplies the weight gradient by the groups.
    x = torch.randn(shape, requires_grad=True)
    with FlopCounterMode(display=False) as counter, Recorder() as recorder:
        module(x).sum().backward()
    assert matrix_flops(recorder.calls) == counter.get_total_flops() > 0

"""Laws of every formula, on the calls that the layers of `torch.nn` really make, forward and backward.

Twice the batch adds as much again, element types scale bytes and nothing else, what is expanded is not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:reduction|Initializing zero|LSTM with projections|.*nested:UserWarning")

import every_layer as every  # noqa: E402
from recorded import recorded  # noqa: E402

from torchroof.tensors import DTYPES, DType, OpCall, Operand, Role, TensorSpec  # noqa: E402
from torchroof.work.algebra import Work  # noqa: E402
from torchroof.work.standard import STANDARD  # noqa: E402

BATCHED = (every._convolutions, every._pooling, every._norms, every._activations, every._shapes)
"""Whose inputs have the samples first, and whose results are not joined."""
OTHERS = (every._losses, every._distances, every._products, every._recurrent, every._attention)
LAYERS = {layer.name: layer for each in BATCHED for layer in each() if not layer.name.startswith("affine_grid")}
ALL = LAYERS | {layer.name: layer for each in OTHERS for layer in each()}


def has_a_batch(name: str) -> bool:
    """Not the layer that runs without one, nor those that join running statistics for each sample: no trace tells the
    element type of what `cat` is given there."""
    alone = name == "Conv1d(4, 6, kernel_size=(3,), stride=(1,))"
    return not alone and not (name.startswith("InstanceNorm") and "track_running_stats=True" in name)


def claimed(events) -> Iterator[OpCall]:
    """The calls that are charged."""
    for event in events:
        if STANDARD.role(event.name) is Role.MODELLED:
            yield event.call
        else:
            yield from claimed(event.children)


def forward_work(name: str, times: int) -> Work:
    """The work of a layer's forward pass on so many copies of its inputs."""
    torch.manual_seed(0)
    layer = LAYERS[name]
    module = layer.make().train(layer.training)
    inputs = [torch.cat([x] * times) if isinstance(x, torch.Tensor) else x for x in layer.inputs()]
    calls = claimed(recorded(lambda: module(*inputs)))
    return sum((STANDARD.price(call).work for call in calls), Work.zero())


@pytest.mark.parametrize("name", [name for name in LAYERS if has_a_batch(name)], ids=str)
def test_each_sample_adds_as_much_as_the_one_before(name: str) -> None:
    one, two, three = (forward_work(name, times) for times in (1, 2, 3))
    assert one.flops is not None and one.bytes_moved is not None
    assert three.flops - two.flops == two.flops - one.flops
    assert three.bytes_moved - two.bytes_moved == two.bytes_moved - one.bytes_moved
    if not name.startswith(("BatchNorm", "Parametrized")):  # which count steps, and work on weights
        assert two.flops == 2 * one.flops


OPTIMIZERS = ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "NAdam", "RAdam", "Adamax", "ASGD", "Adadelta", "Rprop"]
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")


def optimizer_steps() -> Iterator[Callable[[], object]]:
    """A second step of each optimizer, plain, foreach and fused."""
    ways = [(name, {"foreach": each}) for name in OPTIMIZERS for each in (False, True)]
    for name, way in (*ways, *((name, {"fused": True}) for name in FUSED)):
        parameters = [torch.rand(3, 4, requires_grad=True), torch.rand(5, requires_grad=True)]
        for parameter in parameters:
            parameter.grad = torch.rand_like(parameter)
        more = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
        optimizer = getattr(torch.optim, name)(parameters, lr=0.1, **more, **way)
        optimizer.step()
        yield optimizer.step


@cache
def calls() -> tuple[OpCall, ...]:
    """Every distinct call that is charged while the layers run, forward and backward."""
    found: dict[OpCall, None] = {}
    for layer in ALL.values():
        torch.manual_seed(0)
        module = layer.make().train(layer.training)
        inputs = layer.inputs()

        def run(module=module, inputs=inputs) -> None:
            out = every.total(module(*inputs))
            if out is not None and out.requires_grad:
                out.backward()

        found.update(dict.fromkeys(claimed(recorded(run))))
    for step in optimizer_steps():
        found.update(dict.fromkeys(claimed(recorded(step))))
    return tuple(call for call in found if STANDARD.price(call).reason is None)


def retyped(value: Operand, dtype: DType) -> Operand:
    if isinstance(value, TensorSpec):
        floating = value.dtype is not None and value.dtype.kind == "float" and bool(value.shape)
        return replace(value, dtype=dtype) if floating else value
    if isinstance(value, tuple) and value and isinstance(value[0], TensorSpec):
        return tuple(retyped(v, dtype) for v in value)  # type: ignore[return-value, misc]
    return value


def in_type(call: OpCall, name: str) -> Work:
    dtype = DTYPES[name]
    return STANDARD.price(OpCall(call.name, tuple(retyped(v, dtype) for v in call.operands))).work


WITH_STATISTICS = {"norm"}
"""Families that save float32 beside 16-bit operands, and float64 beside those."""


def test_the_layers_make_many_different_calls() -> None:
    assert len({call.name for call in calls()}) >= 200


def test_element_types_scale_bytes_and_nothing_else() -> None:
    """From 2 to 4 bytes adds half of what 4 to 8 adds; FLOPs stay. Between 4 and 8 statistics scale too."""
    for call in calls():
        half, single, double = (in_type(call, name) for name in ("bfloat16", "float32", "float64"))
        assert half.flops == single.flops == double.flops, call
        assert half.bytes_moved <= single.bytes_moved <= double.bytes_moved <= 2 * single.bytes_moved, call
        if STANDARD.family(call.name) not in WITH_STATISTICS and not typed(call):
            grown = double.bytes_moved - single.bytes_moved
            assert grown == 2 * (single.bytes_moved - half.bytes_moved), call


def typed(call: OpCall) -> bool:
    """Whether the call names the type of its result."""
    return call.name in ("aten::_to_copy", "aten::sum", "aten::mean", "aten::prod") or "softmax" in call.name


def test_what_is_expanded_is_not_stored_and_changes_no_flops() -> None:
    """Stride 0 along an axis: that operand stores so much less, and no more than that is saved."""
    tried = less = 0
    for call in calls():
        whole = STANDARD.price(call).work
        for place, value in enumerate(call.operands):
            if not isinstance(value, TensorSpec) or not value.shape or value.strides is None or value.shape[0] < 2:
                continue
            flat = replace(value, strides=(0, *value.strides[1:]))
            saved = (value.stored_bytes or 0) - (flat.stored_bytes or 0)
            operands = (*call.operands[:place], flat, *call.operands[place + 1 :])
            work = STANDARD.price(replace(call, operands=operands)).work
            in_place = call.name.endswith("_") and place == 0
            assert work.flops == whole.flops, (call, place)
            assert 0 <= whole.bytes_moved - work.bytes_moved <= saved * (2 if in_place else 1), (call, place)
            if STANDARD.family(call.name) in ("pointwise", "matmul", "convolution") and not in_place:
                assert whole.bytes_read - work.bytes_read in (0, saved), (call, place)
            tried += 1
            less += 0 < saved == whole.bytes_read - work.bytes_read
    assert tried > 300 and less > 0.6 * tried  # the rest is written only, or read in part

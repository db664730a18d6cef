from __future__ import annotations

import pytest
import torch
from schema_calls import Recorder, call_of, dense_spec, models

from torchroof.tensors import OpCall, TensorSpec
from torchroof.work.models import pointwise
from torchroof.work.models.optimizer import MODELS

WORK = {op: model.formula for op, model in models(MODELS).items()}
SINGLE = models(pointwise.MODELS)
aten = torch.ops.aten
A, B = (3, 4), (5,)  # 17 elements, 68 bytes of float32
N, BYTES = 17, 68


def tensors():
    return [torch.rand(A) + 1, torch.rand(B) + 1]


def price(overload, *args, **kwargs):
    call = call_of(overload, *args, **kwargs)
    return WORK[call.name.removeprefix("aten::")](call)


def moved(work):
    return work.flops, work.bytes_read, work.bytes_written


def test_lists_by_hand():
    p, q, r = tensors(), tensors(), tensors()
    assert moved(price(aten._foreach_add_.List, p, q, alpha=2)) == (N, 2 * BYTES, BYTES)
    assert moved(price(aten._foreach_add_.Scalar, p, 1)) == (N, BYTES, BYTES)
    assert moved(price(aten._foreach_mul_.ScalarList, p, [1.0, 2.0])) == (N, BYTES, BYTES)
    assert moved(price(aten._foreach_mul_.Tensor, p, torch.tensor(2.0))) == (N, BYTES + 4, BYTES)
    assert moved(price(aten._foreach_lerp_.Scalar, p, q, 0.1)) == (3 * N, 2 * BYTES, BYTES)
    assert moved(price(aten._foreach_lerp_.List, p, q, r)) == (3 * N, 3 * BYTES, BYTES)
    assert moved(price(aten._foreach_addcdiv_.ScalarList, p, q, r, [1.0, 2.0])) == (2 * N, 3 * BYTES, BYTES)
    assert moved(price(aten._foreach_addcmul.Scalar, p, q, r, 1)) == (2 * N, 3 * BYTES, BYTES)
    assert moved(price(aten._foreach_sqrt.default, p)) == (N, BYTES, BYTES)
    assert moved(price(aten._foreach_copy_.default, p, q)) == (0, BYTES, BYTES)
    assert moved(price(aten._foreach_zero_.default, p)) == (0, 0, BYTES)
    assert moved(price(aten._foreach_norm.Scalar, p, 2)) == (2 * N, BYTES, 8)
    assert moved(price(aten._foreach_norm.Scalar, p, float("inf"))) == (0, BYTES, 8)
    assert moved(price(aten._foreach_pow.ScalarAndTensor, 2, p)) == (N, BYTES, BYTES)
    assert moved(price(aten._foreach_max.default, p)) == (0, BYTES, 8)


def test_a_list_counts_as_its_tensors_one_by_one():
    for op, model in SINGLE.items():
        own = WORK.get(f"_foreach_{op}")
        if own is None:
            continue
        arguments = 3 if op.startswith(("lerp", "addc")) else 2 if op.strip("_") in BINARY else 1
        x = dense_spec(A)
        alone = model.formula(OpCall(model.op, (x,) * arguments))
        listed = own(OpCall(f"aten::_foreach_{op}", ((x, x),) * arguments))
        assert moved(listed) == tuple(2 * n for n in moved(alone)), op


BINARY = {"add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_min", "clamp_max"}


def test_a_list_without_element_type_has_flops_but_no_bytes():
    untyped = (TensorSpec(A, None), TensorSpec(B, None))
    work = WORK["_foreach_add_"](OpCall("aten::_foreach_add_", (untyped, untyped, 1)))
    assert (work.flops, work.bytes_read, work.bytes_written) == (N, None, None)


ADAM = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "maximize": False}


@pytest.mark.parametrize(
    ("op", "decay", "amsgrad", "each", "lists"),
    [
        (aten._fused_adam_.default, 0.0, False, 13, (4, 3)),
        (aten._fused_adam_.default, 0.1, False, 15, (4, 3)),
        (aten._fused_adamw_.default, 0.1, False, 14, (4, 3)),
        (aten._fused_adamw_.default, 0.0, True, 13, (5, 4)),
    ],
)
def test_fused_adam(op, decay, amsgrad, each, lists):
    steps = [torch.tensor(1.0), torch.tensor(1.0)]
    largest = tensors() if amsgrad else []
    state = (tensors(), tensors(), tensors(), tensors(), largest, steps)
    work = price(op, *state, weight_decay=decay, amsgrad=amsgrad, **ADAM)
    assert moved(work) == (each * N, lists[0] * BYTES + 8, lists[1] * BYTES)
    scale = {"grad_scale": torch.tensor(2.0), "found_inf": torch.tensor(0.0)}
    scaled = price(op, *state, weight_decay=decay, amsgrad=amsgrad, **ADAM, **scale)
    assert moved(scaled) == ((each + 1) * N, lists[0] * BYTES + 16, (lists[1] + 1) * BYTES)


def test_fused_sgd():
    def sgd(momentum=0.9, dampening=0.0, nesterov=False, first=False, decay=0.0):
        settings = {"weight_decay": decay, "momentum": momentum, "lr": 0.1, "dampening": dampening}
        buffers = tensors() if momentum else []
        flags = {"nesterov": nesterov, "maximize": False, "is_first_step": first}
        return moved(price(aten._fused_sgd_.default, tensors(), tensors(), buffers, **settings, **flags))

    assert sgd(momentum=0.0) == (2 * N, 2 * BYTES, BYTES)
    assert sgd() == (4 * N, 3 * BYTES, 2 * BYTES)
    assert sgd(dampening=0.5) == (5 * N, 3 * BYTES, 2 * BYTES)
    assert sgd(nesterov=True, decay=0.1) == (8 * N, 3 * BYTES, 2 * BYTES)
    assert sgd(first=True) == (2 * N, 2 * BYTES, 2 * BYTES)


def test_fused_adagrad_and_loss_scaling():
    steps = [torch.tensor(1.0), torch.tensor(1.0)]
    settings = {"lr": 0.1, "lr_decay": 0.0, "weight_decay": 0.0, "eps": 1e-8, "maximize": False}
    work = price(aten._fused_adagrad_.default, tensors(), tensors(), tensors(), steps, **settings)
    assert moved(work) == (7 * N, 3 * BYTES + 8, 2 * BYTES)
    one = torch.tensor(1.0)
    unscale = price(aten._amp_foreach_non_finite_check_and_unscale_.default, tensors(), one, one)
    assert moved(unscale) == (N, BYTES + 4, BYTES)


@pytest.mark.parametrize(
    ("make", "each"),
    [
        # fused: the 13 above
        (lambda p: torch.optim.Adam(p, fused=True), 13),
        # foreach: lerp 3, mul 1, addcmul 2, sqrt 1, div 1, add 1, addcdiv 2
        (lambda p: torch.optim.Adam(p, foreach=True), 11),
        # foreach: add (alpha counts none) 1
        (lambda p: torch.optim.SGD(p, foreach=True), 1),
    ],
    ids=["fused Adam", "foreach Adam", "foreach SGD"],
)
def test_a_real_step(make, each):
    parameters = [torch.nn.Parameter(t) for t in tensors()]
    for p in parameters:
        p.grad = torch.ones_like(p)
    optimizer = make(parameters)
    optimizer.step()
    with Recorder() as recorder:
        optimizer.step()
    lists = [c for c in recorder.calls if c.name.removeprefix("aten::") in WORK]
    flops = [WORK[c.name.removeprefix("aten::")](c).flops for c in lists if c.operands[0][0].shape == A]
    assert sum(flops) == each * N

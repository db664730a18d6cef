"""Reductions, softmax and losses: worked examples."""

from __future__ import annotations

import pytest

from torchroof.tensors import DTYPES, OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.models import reduction, softmax

FORMULAS = {model.op: model.formula for model in (*reduction.MODELS, *softmax.MODELS)}
HALF, LONG = DTYPES["float16"], DTYPES["int64"]


def work(name: str, *operands: object) -> Work:
    return FORMULAS[f"aten::{name}"](OpCall(f"aten::{name}", operands))  # type: ignore[arg-type]


X = TensorSpec((4, 8), DTYPES["float32"])  # 32 elements, 128 bytes
N = TensorSpec((4, 8), LONG)
TARGET = TensorSpec((4,), LONG)
ONE = TensorSpec((), DTYPES["float32"])


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        ("sum", (X, None), Work(32, 128, 4)),
        ("sum", (X, (1,), False, None), Work(32, 128, 16)),
        ("sum", (X, (-1,), True, 7), Work(32, 128, 32)),  # 4 rows of float64
        ("sum", (X, (), False, None), Work(32, 128, 4)),  # no axes: all
        ("sum", (N, (0,), False, None), Work(32, 256, 64)),
        ("sum", (TensorSpec((4, 8), DTYPES["bool"]), None), Work(32, 32, 8)),  # counts in int64
        ("sum", (TensorSpec((100, 8), HALF, (0, 1)), None), Work(800, 16, 2)),  # an expanded axis is read once
        ("sum", (X, (0,), False, None, TensorSpec((8,), HALF)), Work(32, 128, 16)),  # out decides the type
        ("mean", (X, None), Work(32, 128, 4)),
        ("mean", (X, (0,), False, None), Work(32, 128, 32)),
        ("var", (X, True), Work(128, 128, 4)),
        ("var", (X, (1,), 1, False), Work(128, 128, 16)),
        ("var_mean", (X, (1,), 1, False), Work(128, 128, 32)),
        ("norm", (X, 2), Work(64, 128, 4)),
        ("norm", (X, 2, (1,), False), Work(64, 128, 16)),
        ("linalg_vector_norm", (X, 2, None, False, None), Work(64, 128, 4)),
        ("max", (X,), Work(0, 128, 4)),
        ("max", (X, 1, False), Work(0, 128, 4 * (4 + 8))),  # values and int64 indices of 4 rows
        ("max", (X, X), Work(0, 256, 128)),
        ("argmax", (X, None, False), Work(0, 128, 8)),
        ("argmax", (X, 0, False), Work(0, 128, 64)),
        ("all", (X,), Work(0, 128, 1)),
        ("amax", (X, (0,), True), Work(0, 128, 32)),
        ("aminmax", (X, None, False), Work(0, 128, 8)),
        ("cumsum", (X, 0, None), Work(32, 128, 128)),
        ("topk", (X, 2, -1, True, True), Work(0, 128, 8 * 12)),
        ("sort", (X, -1, False), Work(0, 128, 32 * 12)),
        ("_softmax", (X, -1, False), Work(128, 128, 128)),
        ("_softmax", (TensorSpec((4, 8), HALF), -1, True), Work(128, 64, 128)),
        ("_softmax_backward_data", (X, X, -1, 5), Work(128, 256, 64)),  # to half
        ("nll_loss_forward", (X, TARGET, None, 1, -100), Work(4, 4 * 4 + 4 * 8, 4 + 4)),
        ("nll_loss_forward", (X, TARGET, None, 0, -100), Work(0, 48, 16 + 4)),
        ("nll_loss_backward", (ONE, X, TARGET, None, 1, -100, ONE), Work(4, 4 + 32 + 4, 128)),
        ("mse_loss", (X, X, 1), Work(96, 256, 4)),
        ("mse_loss", (X, X, 0), Work(64, 256, 128)),
        ("mse_loss_backward", (ONE, X, X, 1), Work(96, 260, 128)),
        ("binary_cross_entropy", (X, X, X, 1), Work(320, 384, 4)),  # 8, the weight, the sum
    ],
)
def test_worked_examples(name: str, operands: tuple[object, ...], expected: Work) -> None:
    assert work(name, *operands) == expected


def test_axes_that_were_not_recorded_leave_an_interval() -> None:
    """Of 4 x 8 along some axis: 32 additions, 128 bytes read, and of the result one element to 32 ÷ 4."""
    call = OpCall("aten::sum", (X, None, None, None), scalars_known=False)
    assert FORMULAS["aten::sum"](call) == Work(32, 128, 4, bytes_upper=128 + 32)
    for dims in ((), (0,), (1,)):
        told = work("sum", X, dims, False, None)
        assert 4 <= told.bytes_written <= 32


def test_axes_that_contradict_are_unknown() -> None:
    with pytest.raises(Unknown):
        work("sum", X, (2,), False, None)

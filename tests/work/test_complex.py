"""Complex numbers: 8 FLOPs a multiply-add of products, unknown everywhere else, zero only where nothing is computed."""

from __future__ import annotations

import pytest
from schema_calls import dense_spec

from torchroof.tensors import OpCall
from torchroof.work.algebra import Work
from torchroof.work.registry import OnComplex
from torchroof.work.standard import STANDARD

X = dense_spec((10,), "complex64")
ROWS = dense_spec((2,), "int64")
COMPUTING = [
    ("mul", (X, 2)),
    ("mul_", (X, X)),
    ("abs", (X,)),
    ("sgn", (X,)),
    ("sum", (X, None)),
    ("mean", (X, None)),
    ("prod", (X, None)),
    ("cumsum", (X, 0, None)),
    ("var", (X, True)),
    ("linalg_vector_norm", (X, 2, None, False, None)),
    ("norm", (X, 2)),
    ("logcumsumexp", (X, 0)),
    ("index_add_", (X, 0, ROWS, dense_spec((2,), "complex64"), 1)),
    ("mse_loss", (X, X, 1)),
    ("_foreach_mul", ((X,), (X,))),
    ("_foreach_add_", ((X,), 1.0)),
    ("_foreach_abs", ((X,),)),
    ("_foreach_norm", ((X,), float("inf"), None)),
    ("_foreach_addcmul_", ((X,), (X,), (X,), 1)),
]
MOVING = [
    ("copy_", (X, X, False)),
    ("clone", (X, None)),
    ("fill_", (X, 0)),
    ("index_select", (X, 0, ROWS)),
    ("eq", (X, X)),
    ("_foreach_copy_", ((X,), (X,), False)),
    ("_foreach_zero_", ((X,),)),
]


@pytest.mark.parametrize(("op", "operands"), COMPUTING)
def test_arithmetic_is_unknown_and_says_why(op, operands) -> None:
    priced = STANDARD.price(OpCall(f"aten::{op}", operands))
    assert priced.work.flops is None and priced.work.flops_full is None
    assert "complex" in (priced.reason or "")
    assert priced.work.bytes_moved  # what moves is known all the same


@pytest.mark.parametrize(("op", "operands"), MOVING)
def test_what_only_moves_has_no_flops(op, operands) -> None:
    priced = STANDARD.price(OpCall(f"aten::{op}", operands))
    assert priced.work.flops == 0 and priced.reason is None


def test_products_count_8_a_multiply_add_and_transforms_their_own() -> None:
    a, b = dense_spec((3, 4), "complex64"), dense_spec((4, 5), "complex64")
    assert STANDARD.price(OpCall("aten::mm", (a, b))).work.flops == 8 * 3 * 4 * 5
    assert STANDARD.price(OpCall("aten::_foreach_mm", ((a,), (b,)))).work.flops == 8 * 3 * 4 * 5
    assert STANDARD.price(OpCall("aten::ger", (X, X))).work.flops == 6 * 100
    assert STANDARD.price(OpCall("aten::_fft_c2c", (X.dense((8,)), (0,), 0, True))).work.flops == 5 * 8 * 3


def test_only_products_and_transforms_count_complex_numbers() -> None:
    """A family that is added counts real numbers until it says otherwise."""
    counted = {m.family for m in STANDARD.models.values() if m.on_complex is OnComplex.COUNTED}
    assert counted == {"matmul", "pointwise", "fourier", "optimizer"}
    beyond = {m.op for m in STANDARD.models.values() if m.on_complex is OnComplex.COUNTED and m.family != "matmul"}
    assert beyond == {f"aten::{op}" for op in ("outer", "ger", "addr", "addr_", "_foreach_mm", "_fft_c2c", "_fft_r2c",
                                               "_fft_c2r")}  # fmt: skip


def test_a_sum_of_unknown_flops_stays_unknown() -> None:
    assert (STANDARD.price(OpCall("aten::sum", (X, None))).work + Work(5, 0, 0)).flops is None

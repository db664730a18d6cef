"""Pointwise ops: worked examples, torch's schemas, and the bytes of real calls."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchroof.tensors import DTYPES, OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.models.pointwise import MODELS
from torchroof.work.models.pointwise_table import ROWS
from torchroof.work.standard import STANDARD

FORMULAS = {model.op: model.formula for model in MODELS}
OLD = {"_s_where"}
"""Ops of older releases of torch."""
UNCOUNTED = {("log_sigmoid_backward", 2)}
"""A buffer that is empty on GPUs."""


def work(name: str, *operands: object) -> Work:
    return FORMULAS[f"aten::{name}"](OpCall(f"aten::{name}", operands))  # type: ignore[arg-type]


def tensor(*shape: int, dtype: str = "float32", strides: tuple[int, ...] | None = None) -> TensorSpec:
    return TensorSpec(shape, DTYPES[dtype], strides)


def test_three_passes_over_a_million_floats_move_24_megabytes_and_fused_8() -> None:
    # each pass reads 4,000,000 bytes and writes 4,000,000: 3 · 8,000,000; in one kernel only the ends move
    operands = (tensor(1_000_000), tensor(1_000_000), 1_000_000)
    fused = STANDARD.price(OpCall("triton_poi_fused_exp_neg_relu_0", operands)).work
    assert fused.bytes_moved == 8_000_000
    x = tensor(1_000_000)
    total = work("exp", x) + work("relu", x) + work("neg_", x)
    assert total.bytes_moved == 24_000_000
    assert total.flops == 2_000_000  # exp 1, relu 0, neg 1 per element


def test_broadcasting_reads_what_is_stored_and_writes_the_product() -> None:
    # (8, 1) + (1, 16): reads 8·4 + 16·4 = 96 bytes, adds 128 times, writes 128·4 = 512
    assert work("add", tensor(8, 1), tensor(1, 16), 1) == Work(128, 96, 512)
    # an expanded axis stores one copy: 16 elements, though the shape says 128
    assert work("mul", tensor(8, 16), tensor(8, 16, strides=(0, 1))) == Work(128, 512 + 64, 512)


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        ("gelu", (tensor(100), None), Work(500, 400, 400)),
        ("gelu_backward", (tensor(100), tensor(100), None), Work(1100, 800, 400)),
        ("silu_", (tensor(100),), Work(500, 400, 400)),
        ("add_", (tensor(100), tensor(100), 1), Work(100, 800, 400)),
        ("add_", (tensor(100), 2.0, 1), Work(100, 400, 400)),
        ("lt", (tensor(100), 0), Work(0, 400, 100)),
        ("native_dropout", (tensor(100), 0.5, True), Work(200, 400, 400 + 100)),
        ("native_dropout_backward", (tensor(100), tensor(100, dtype="bool"), 2.0), Work(200, 500, 400)),
        ("_prelu_kernel_backward", (tensor(100), tensor(100), tensor(1)), Work(200, 804, 800)),
        ("elu_backward", (tensor(100), 1, 1, 1, True, tensor(100)), Work(300, 800, 400)),
        ("where", (tensor(100, dtype="bool"), tensor(100), 0.0), Work(0, 500, 400)),
        ("clamp", (tensor(100), None, 1.0), Work(0, 400, 400)),
        ("addcmul_", (tensor(100), tensor(100), tensor(100), 0.1), Work(200, 1200, 400)),
        ("glu", (tensor(4, 100), 1), Work(5 * 200, 1600, 800)),
        ("glu_backward", (tensor(4, 50), tensor(4, 100), 1), Work(9 * 200, 800 + 1600, 1600)),
        ("normal_", (tensor(100), 0.0, 1.0, None), Work(0, 0, 400)),
        ("add", (tensor(100), tensor(100), 1, tensor(100, dtype="float64")), Work(100, 800, 800)),
        ("div", (tensor(100, dtype="int64"), 2), Work(100, 800, 400)),
        ("div", (tensor(100, dtype="int64"), 2, "floor"), Work(100, 800, 800)),
        ("mul", (tensor(100, dtype="int64"), tensor(dtype="float64")), Work(100, 808, 400)),
        ("mul", (tensor(100, dtype="bfloat16"), tensor(dtype="float64")), Work(100, 208, 200)),
    ],
)
def test_worked_examples(name: str, operands: tuple[object, ...], expected: Work) -> None:
    assert work(name, *operands) == expected


def test_what_is_not_recorded_is_unknown() -> None:
    with pytest.raises(Unknown):
        work("add", tensor(4), None, 1)
    with pytest.raises(Unknown):
        work("gelu_backward", tensor(4), 1.0)
    with pytest.raises(Unknown):
        work("add", tensor(4), tensor(3), 1)
    old = OpCall("aten::add_", (tensor(4), None, None), scalars_known=False)
    assert FORMULAS["aten::add_"](old) == Work(4, 16, 16)
    assert work("add", TensorSpec((4,), None), tensor(4), 1) == Work(4, None, None)


@given(st.sampled_from([row for row in ROWS if row.result == "same" and not row.extra]), st.integers(1, 50))
def test_halving_the_item_size_halves_bytes_and_no_flops(row: object, n: int) -> None:
    letters = row.operands  # type: ignore[attr-defined]
    full, half = (
        work(row.op, *(None if c == "." else tensor(n, dtype=name) for c in letters))  # type: ignore[attr-defined]
        for name in ("float32", "float16")
    )
    assert (full.flops, full.bytes_moved) == (half.flops, 2 * half.bytes_moved)  # type: ignore[operator]


def test_operands_are_torchs_schemas() -> None:
    torch = pytest.importorskip("torch")
    for row in ROWS:
        if row.op in OLD:
            continue
        overloads = [s.arguments for s in torch._C._jit_get_schemas_for_operator(f"aten::{row.op}")]
        overloads = [a for a in overloads if a and not any(x.is_out for x in a) and _takes_tensors(a)]
        for place, letter in enumerate(row.operands):
            sorts = {str(a[place].type) for a in overloads if place < len(a)}
            if letter in "Tt":
                assert sorts == {"Tensor"}, (row.op, place)
            elif letter in "EeOo":
                assert "Tensor" in sorts or "Optional[Tensor]" in sorts, (row.op, place)
            elif (row.op, place) not in UNCOUNTED:
                assert not any("Tensor" in s for s in sorts), (row.op, place)
        widest = max((len(a) for a in overloads), default=len(row.operands))
        for place in range(len(row.operands), widest):
            assert not any("Tensor" in str(a[place].type) for a in overloads if place < len(a)), (row.op, place)
        if row.in_place:
            assert torch._C._jit_get_schemas_for_operator(f"aten::{row.op}_"), row.op


def _takes_tensors(arguments: list[object]) -> bool:
    return any(re.fullmatch("Tensor", str(a.type)) for a in arguments)  # type: ignore[attr-defined]

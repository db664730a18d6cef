"""The four lists of an op as its call."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from torchroof.tensors import DTYPES, OpCall, TensorSpec, Unknown
from torchroof.trace.operands import op_call, value_of
from torchroof.trace.table import NONE, HostKind, TraceTable

F32, F16, BF16, I64 = (DTYPES[n] for n in ("float32", "float16", "bfloat16", "int64"))


def call(dims: Any = None, types: Any = None, strides: Any = None, concrete: Any = None) -> OpCall:
    texts = tuple(b"" if part is None else json.dumps(part).encode() for part in (dims, types, strides, concrete))
    assert len(texts) == 4
    return op_call("aten::x", texts)


def test_addmm_as_newer_files_write_it() -> None:
    made = call(
        [[512], [8, 256], [256, 512], [], []],
        ["float", "float", "c10::BFloat16", "Scalar", "Scalar"],
        [[1], [256, 1], [1, 256], [], []],
        ["", "", "", "1", "0.5"],
    )
    assert made == OpCall(
        "aten::x",
        (
            TensorSpec((512,), F32, (1,)),
            TensorSpec((8, 256), F32, (256, 1)),
            TensorSpec((256, 512), BF16, (1, 256)),
            1,
            0.5,
        ),
    )


def test_a_scalar_tensor_needs_an_element_type() -> None:
    made = call([[], [], [], []], ["long int", "", "Scalar", "TensorList"], concrete=["", "", "3", ""])
    assert made.operands == (TensorSpec((), I64), None, 3, None)
    assert made.scalars_known


def test_without_concrete_inputs_scalars_are_unknown_and_not_none() -> None:
    made = call([[4, 4], []], ["c10::Half", "Int"])
    assert made.operands == (TensorSpec((4, 4), F16), None)
    assert not made.scalars_known
    with pytest.raises(Unknown):
        made.number(1, 0)


def test_lists_of_tensors_have_shapes_and_no_element_type() -> None:
    made = call([[[2, 3], [], [4]], []], ["TensorList", "Scalar"], [[[3, 1], [], [1]], []], ["", "1"])
    assert made.tensor_list(0) == (
        TensorSpec((2, 3), None, (3, 1)), TensorSpec((), None), TensorSpec((4,), None, (1,)),
    )  # fmt: skip


def test_an_unknown_type_with_sizes_is_a_tensor_of_unknown_type() -> None:
    made = call([[2, 3], [7], [7]], ["c10::Float3_new", "", "ScalarList"], concrete=["", "", "[1, 2]"])
    assert made.operands == (TensorSpec((2, 3), None), TensorSpec((7,), None), (1, 2))


def test_lists_of_unequal_length_and_of_odd_content() -> None:
    made = call([[2], ["x"], None], ["float"], concrete=["", "5", 7, [1, 2], {"a": 1}])
    assert made.operands == (TensorSpec((2,), F32), 5, 7, (1, 2), None)
    assert call("GEMM", ["float"]).operands == (TensorSpec((), F32),)


def test_an_op_without_operands() -> None:
    assert call([], [], [], []) == OpCall("aten::x", ())
    assert call([], []) == OpCall("aten::x", ())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("None", None),
        ("True", True),
        ("-3", -3),
        ("1.", 1.0),
        ("1.0000000000000001e-05", 1e-05),
        ("-3.4028234663852886e+38", -3.4028234663852886e38),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("9223372036854775807", 2**63 - 1),
        ("[]", ()),
        ("[2, 2]", (2, 2)),
        ("[True, False]", (True, False)),
        ("[0.5, 1]", (0.5, 1)),
        ("[2, ?]", "[2, ?]"),
        ("[[1], [2]]", "[[1], [2]]"),
        ("mean", "mean"),
        ("cuda:0", "cuda:0"),
    ],
)
def test_concrete_values(text: str, value: object) -> None:
    made = value_of(text)
    assert made == value and type(made) is type(value)


def test_not_a_number_is_a_number() -> None:
    assert math.isnan(value_of("nan"))  # type: ignore[arg-type]


def op(name: str, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 0, "dur": 0, "args": args}


def signatures(table: TraceTable) -> list[int]:
    assert (table.host.kind == HostKind.OP).all()
    return table.host.signature.tolist()


def test_equal_operands_of_one_op_are_one_signature(read_events: Any) -> None:
    mm = {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""]}
    old = {"Input dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}
    ops = [op("aten::mm", **mm), op("aten::matmul", **mm), op("aten::mm", **mm), op("aten::mm"), op("aten::mm", **old)]
    table = read_events(*(event | {"ts": i} for i, event in enumerate(ops)))
    assert signatures(table) == [0, 1, 0, NONE, 2]
    operands = (TensorSpec((2, 3), F32), TensorSpec((3, 4), F32))
    assert table.signatures == (
        OpCall("aten::mm", operands),
        OpCall("aten::matmul", operands),
        OpCall("aten::mm", operands, scalars_known=False),
    )

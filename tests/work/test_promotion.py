"""The type of a result, against torch itself."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torchroof.tensors import DTYPES, OpCall, TensorSpec, Unknown  # noqa: E402
from torchroof.work.promotion import dtype_operand, promoted, result_type, scalar_type  # noqa: E402

NAMES = [
    *("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"),
    *("complex64", "complex128", "complex32", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"),
]
PLAIN = NAMES[:12]


@pytest.mark.parametrize("a", NAMES)
def test_promoted_is_torchs_table(a: str) -> None:
    for b in NAMES:
        try:
            expected = str(torch.promote_types(getattr(torch, a), getattr(torch, b)))
        except RuntimeError:
            continue  # torch refuses: such a call is in no trace
        assert f"torch.{promoted(DTYPES[a], DTYPES[b])}" == expected, (a, b)


@given(
    st.sampled_from(PLAIN),
    st.sampled_from([(), (2,), (1, 2)]),
    st.one_of(st.booleans(), st.integers(0, 9), st.floats(0, 1), st.tuples(st.sampled_from(PLAIN), st.booleans())),
)
def test_result_type_is_torchs(name: str, shape: tuple[int, ...], other: object) -> None:
    tensor = torch.zeros(shape, dtype=getattr(torch, name))
    spec = TensorSpec(shape, DTYPES[name])
    if isinstance(other, tuple):
        size = (2,) if other[1] else ()
        expected = torch.result_type(tensor, torch.zeros(size, dtype=getattr(torch, other[0])))
        found = result_type([spec, TensorSpec(size, DTYPES[other[0]])])
    else:
        expected, found = torch.result_type(tensor, other), result_type([spec, other])  # type: ignore[list-item, arg-type]
    assume(str(expected).removeprefix("torch.") in DTYPES)  # later releases of torch have more
    assert f"torch.{found}" == str(expected)


def test_numbers_of_element_types() -> None:
    # c10::ScalarType as traces write it: an empty tensor of each type tells its number nowhere in Python,
    # so these are spelled out: 5 half, 6 float, 7 double, 15 bfloat16, 4 long, 11 bool
    found = [str(scalar_type(n)) for n in (5, 6, 7, 15, 4, 11)]
    assert found == ["float16", "float32", "float64", "bfloat16", "int64", "bool"]
    for wrong in (99, True, "no such type", None, 1.0):
        with pytest.raises(Unknown):
            scalar_type(wrong)


def test_a_dtype_that_was_not_recorded_is_unknown_not_the_default() -> None:
    half = DTYPES["float16"]
    assert dtype_operand(OpCall("aten::sum", (None, None)), 1, half) == half
    with pytest.raises(Unknown):
        dtype_operand(OpCall("aten::sum", (None, None), scalars_known=False), 1, half)

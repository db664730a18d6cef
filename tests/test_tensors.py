"""Element types, stored bytes and the accessors of a call."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchroof.errors import OperandError
from torchroof.tensors import DTYPES, OpCall, TensorSpec, Unknown, dtype_named, parse_shape

F32, BF16, INT4 = DTYPES["float32"], DTYPES["bfloat16"], DTYPES["int4"]


def test_spellings_of_traces_and_of_people():
    assert dtype_named("c10::BFloat16") is BF16
    assert dtype_named("float") is F32
    assert dtype_named("torch.float32") is F32
    assert dtype_named("long") is dtype_named("long int") is dtype_named("__int64") is DTYPES["int64"]
    assert dtype_named("Scalar") is None and dtype_named("") is None


def test_stored_bytes_count_each_distinct_element_once():
    assert TensorSpec((4, 5), F32).stored_bytes == 4 * 5 * 4
    assert TensorSpec((4, 5), F32, (0, 1)).stored_bytes == 5 * 4
    assert TensorSpec((4, 5), F32, (0, 0)).stored_bytes == 4
    assert TensorSpec((), BF16).stored_bytes == 2
    assert TensorSpec((0, 5), F32, (0, 1)).stored_bytes == 0
    assert TensorSpec((3,), INT4).stored_bytes == 2
    assert TensorSpec((3,), None).stored_bytes is None


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 3), st.integers(2, 9))
def test_expanding_an_axis_stores_nothing_more(shape, axis, times):
    axis %= len(shape)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    shape[axis], strides[axis] = 1, 0
    before = TensorSpec(tuple(shape), F32, tuple(strides)).stored_bytes
    shape[axis] = times
    assert TensorSpec(tuple(shape), F32, tuple(strides)).stored_bytes == before


AXES = st.lists(st.tuples(st.integers(0, 5), st.integers(-7, 7)), min_size=1, max_size=4)


def _stored(axes):
    """The distinct offsets, each one counted: a witness that knows no formula."""
    offsets = {sum(o) for o in itertools.product(*([i * stride for i in range(n)] for n, stride in axes))}
    return len(offsets)


@given(AXES)
def test_views_that_overlap_store_no_more_than_they_reach(axes):
    spec = TensorSpec(tuple(n for n, _ in axes), F32, tuple(stride for _, stride in axes))
    reach = 1 + sum((n - 1) * abs(stride) for n, stride in axes)
    assert _stored(axes) <= spec.stored_elements <= min(spec.numel, max(0, reach))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 3))
def test_frames_and_windows_are_counted_exactly(frames, hop, width, batch):
    """As of `unfold` and the short-time Fourier transform: frames of a width, a hop apart, in each of a batch."""
    apart = hop * frames + width + 5
    axes = [(batch, apart), (frames, hop), (width, 1)]
    spec = TensorSpec((batch, frames, width), F32, (apart, hop, 1))
    assert spec.stored_elements == _stored(axes)


def test_worked_overlaps():
    assert TensorSpec((2_000_000 - 63, 64), F32, (1, 1)).stored_bytes == 8_000_000  # R(2_000_000).unfold(0, 64, 1)
    assert TensorSpec((3, 3), F32, (2, 2)).stored_elements == 5  # offsets 0, 2, 4, 6, 8
    assert TensorSpec((4, 5), F32, (5, 1)).stored_elements == 20
    assert TensorSpec((4, 5), F32, (-5, -1)).stored_elements == 20


def test_what_a_sparse_layout_stores_is_not_told_by_its_shape():
    assert TensorSpec((4, 5), F32, strided=False).stored_bytes is None


def test_accessors_say_unknown_and_never_guess():
    call = OpCall("aten::x", (TensorSpec((2,), F32), 3, None, (1, 2), float("inf"), (TensorSpec((2,), F32),)))
    assert call.tensor(0).shape == (2,)
    assert call.integer(1) == 3 and call.integers(3) == (1, 2) and call.integers(1) == (3,)
    assert call.number(4) == float("inf")
    assert len(call.tensors()) == 2
    for wrong in (lambda: call.tensor(1), lambda: call.number(0), lambda: call.integer(4), lambda: call.integers(5),
                  lambda: call.tensor_list(3), lambda: call.number(9), lambda: call.tensor(9)):  # fmt: skip
        with pytest.raises(Unknown):
            wrong()


def test_a_default_stands_for_a_scalar_left_out_but_not_for_one_never_recorded():
    assert OpCall("aten::x", (None,)).number(0, 1.0) == 1.0
    with pytest.raises(Unknown):
        OpCall("aten::x", (None,), scalars_known=False).number(0, 1.0)


def test_shapes_as_people_type_them():
    assert parse_shape("512x256") == (512, 256) and parse_shape("7") == (7,) and parse_shape("scalar") == ()
    for wrong in ("", "axb", "3x", "-1x2", "1.5"):
        with pytest.raises(OperandError, match=r"shape|negative"):
            parse_shape(wrong)

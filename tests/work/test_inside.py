"""What ran inside real calls completes them: the bytes are those of the tensors that were really given and made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from recorded import everything, recorded  # noqa: E402

from torchroof.tensors import DTYPES, OpCall, TensorSpec  # noqa: E402
from torchroof.work.inside import completed, is_completed  # noqa: E402
from torchroof.work.standard import STANDARD  # noqa: E402

X = torch.arange(5 * 6 * 7, dtype=torch.float32).reshape(5, 6, 7)
ROWS, PAIRS = torch.tensor([0, 2]), torch.tensor([[0, 1], [1, 2]])
MASK = X % 3 == 0  # 70 of 210
F32, I64 = 4, 8


def work_of(run: Callable[[], object], op: str):
    """The work of the outermost call of an op, completed by what ran inside."""
    event = next(e for e in everything(recorded(run)) if e.name == op)
    call = completed(event.call, [below.call for below in event.below()])
    return STANDARD.price(call).work


@pytest.mark.parametrize(
    ("take", "indices"),
    [
        (lambda: X[ROWS], ROWS.nbytes),
        (lambda: X[:, ROWS], ROWS.nbytes),
        (lambda: X[:, :, ROWS], ROWS.nbytes),
        (lambda: X[PAIRS], PAIRS.nbytes),
        (lambda: X[PAIRS, :, ROWS], PAIRS.nbytes + ROWS.nbytes),
        (lambda: X.transpose(0, 1)[ROWS], ROWS.nbytes),
        (lambda: X[MASK], MASK.nbytes),
        (lambda: X[:, MASK[0, :, 0]], 6),
        (lambda: X.long()[ROWS], ROWS.nbytes),
    ],
)
def test_indexing_reads_what_it_takes(take: Callable[[], torch.Tensor], indices: int) -> None:
    taken = take().nbytes
    work = work_of(take, "aten::index")
    assert (work.flops, work.bytes_read, work.bytes_written) == (0, indices + taken, taken)


def test_a_row_that_is_taken_twice_is_read_once_at_least() -> None:
    twice = torch.zeros(9, dtype=torch.long)
    assert work_of(lambda: X[twice], "aten::index").bytes_read == twice.nbytes + X.nbytes  # no more than there is


@pytest.mark.parametrize(
    ("values", "adds", "expected"),
    [
        (torch.ones(2, 6, 7), False, (0, 2 * 42 * F32 + 2 * I64, 2 * 42 * F32)),
        (torch.ones(7), False, (0, 7 * F32 + 2 * I64, 2 * 42 * F32)),
        (torch.ones(()), False, (0, F32 + 2 * I64, 2 * 42 * F32)),
        (torch.ones(2, 6, 7), True, (84, 2 * 42 * F32 + 2 * I64 + 2 * 42 * F32, 2 * 42 * F32)),
    ],
)
def test_putting_writes_where_the_indices_say(values: torch.Tensor, adds: bool, expected: tuple[int, int, int]) -> None:
    work = work_of(lambda: X.clone().index_put_((ROWS,), values, accumulate=adds), "aten::index_put_")
    assert (work.flops, work.bytes_read, work.bytes_written) == expected


def test_one_value_under_a_mask_is_filled_in() -> None:
    def fill() -> None:
        X.clone()[MASK] = 0.0

    work = work_of(fill, "aten::index_put_")
    assert work.bytes_read == X.nbytes + MASK.nbytes and work.bytes_written == X.nbytes


def test_places_that_are_not_zero() -> None:
    work = work_of(MASK.nonzero, "aten::nonzero")
    assert (work.bytes_read, work.bytes_written) == (210, 70 * 3 * I64)


def test_what_a_joined_list_holds() -> None:
    """Both of 6 x 5 x 7, not dense, so that each is copied into its part of the result."""
    other = X.transpose(0, 1)
    work = work_of(lambda: torch.cat([other, other]), "aten::cat")
    assert (work.bytes_read, work.bytes_written) == (2 * X.nbytes, 2 * X.nbytes)


def test_the_gradient_of_a_joined_list_tells_its_type() -> None:
    part = TensorSpec((4, 8), None)
    node = OpCall("CatBackward0", (TensorSpec((8, 8), DTYPES["bfloat16"]),))
    for call in (OpCall("aten::cat", ((part, part), 0)), OpCall("aten::cat", (None, None), scalars_known=False)):
        work = STANDARD.price(completed(call, [], node)).work
        assert (work.bytes_read, work.bytes_written) == (128, 128)


def test_a_quantized_product_by_the_result_that_it_makes() -> None:
    """(3 x 8) by 6 x 8 numbers of a byte."""
    inner = [OpCall("aten::empty", ((3, 6), 6, 0, None, None, None))]
    call = completed(OpCall("quantized::linear_dynamic", (TensorSpec((3, 8), DTYPES["float32"]), None, True)), inner)
    work = STANDARD.price(call).work
    assert (work.flops, work.bytes_read, work.bytes_written) == (2 * 3 * 6 * 8, 3 * 8 * 4 + 6 * 8, 3 * 6 * 4)
    assert STANDARD.precision(call) == "int8"


def test_numbers_that_an_old_file_leaves_out() -> None:
    """A cast by the copy inside it, a sum by the view of its result, a norm's shape by its weight."""
    x, half = TensorSpec((4, 8), DTYPES["float32"]), TensorSpec((4, 8), DTYPES["float16"])
    cast = OpCall("aten::_to_copy", (x, None, None, None, None, None, None), scalars_known=False)
    assert STANDARD.price(completed(cast, [OpCall("aten::copy_", (half, x, None))])).work.bytes_written == 64
    summed = OpCall("aten::sum", (x, None, None, None), scalars_known=False)
    view = OpCall("aten::as_strided", (TensorSpec((8,), DTYPES["float32"]), None, None, None), scalars_known=False)
    assert STANDARD.price(completed(summed, [view])).work.bytes_moved == 128 + 32
    weight = TensorSpec((8,), DTYPES["float32"])
    norm = OpCall("aten::native_layer_norm", (x, None, weight, weight, None), scalars_known=False)
    assert STANDARD.price(norm).work.flops == 7 * 32


def test_a_collective_by_the_librarys_record_of_it() -> None:
    call = OpCall("c10d::allreduce_", (None, None, None, None), scalars_known=False)
    inner = [OpCall("record_param_comms", (None,)), OpCall("nccl:all_reduce", (TensorSpec((10,), DTYPES["float16"]),))]
    work = STANDARD.price(completed(call, inner)).work
    assert (work.flops, work.bytes_read, work.bytes_written) == (None, 20, 20)
    own = STANDARD.price(completed(OpCall("record_param_comms", (None,)), inner[1:])).work
    assert own.bytes_moved == 40


def test_what_says_nothing_changes_nothing() -> None:
    x = TensorSpec((4, 8), DTYPES["float32"])
    unrelated = [OpCall("aten::as_strided", (TensorSpec((3, 9), DTYPES["float32"]), (2, 9), (0, 1), None))]
    for name in STANDARD.models:
        if is_completed(name) and not name.startswith("c10d"):
            call = OpCall(name, (x, None, x, False))
            assert completed(call, unrelated) == call
    assert not is_completed("aten::mm") and completed(OpCall("aten::mm", (x, x)), unrelated).operands == (x, x)

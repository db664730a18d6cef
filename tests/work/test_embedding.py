from __future__ import annotations

import torch
from schema_calls import bytes_of, call_of, dense_spec, models

from torchroof.tensors import OpCall, TensorSpec
from torchroof.work.models.embedding import MODELS

WORK = {op: model.formula for op, model in models(MODELS).items()}
aten = torch.ops.aten


def price(overload, *args):
    call = call_of(overload, *args)
    return WORK[call.name.removeprefix("aten::")](call)


def test_only_the_rows_picked_are_read():
    # 6 indices into 1000 rows of 8: 6 rows and 6 int64 in, 6 rows out.
    work = price(aten.embedding.default, torch.randn(1000, 8), torch.zeros(2, 3, dtype=torch.int64))
    assert (work.flops, work.bytes_read, work.bytes_written) == (0, 6 * 32 + 48, 6 * 32)


def test_no_more_rows_are_read_than_there_are():
    # 100 indices into 5 rows: all 5 at least once, 100 when streamed.
    work = price(aten.embedding.default, torch.randn(5, 8), torch.zeros(100, dtype=torch.int64))
    assert work.bytes_read == 5 * 32 + 800
    assert work.bytes_upper == 100 * 32 + 800 + 100 * 32


def test_the_gradient_is_the_whole_table():
    gradient, indices = torch.randn(6, 8), torch.zeros(6, dtype=torch.int64)
    work = price(aten.embedding_dense_backward.default, gradient, indices, 1000, -1, False)
    assert (work.flops, work.bytes_read, work.bytes_written) == (48, 48 * 4 + 48, 32_000)
    assert work.bytes_upper == 48 * 4 + 48 + 32_000 + 2 * 48 * 4


def test_slices_along_any_axis():
    x = torch.randn(4, 5, 6)
    for dim in (0, 1, 2, -1):
        index = torch.tensor([0, 1, 0])
        work = price(aten.index_select.default, x, dim, index)
        assert work.bytes_written == bytes_of(aten.index_select(x, dim, index))
        assert work.bytes_read == 4 * 120 // x.shape[dim] * 3 + 24
    expanded = OpCall(
        "aten::index_select",
        (TensorSpec((4, 5), dense_spec(()).dtype, (0, 1)), 1, dense_spec((3,), "int64")),
    )
    assert WORK["index_select"](expanded).bytes_read == 4 * 3 + 24


def test_bags():
    table, indices, offsets = torch.randn(10, 8), torch.tensor([1, 2, 3, 4, 5]), torch.tensor([0, 2])
    summed = price(aten._embedding_bag.default, table, indices, offsets)
    assert (summed.flops, summed.bytes_read) == (40, 5 * 32 + 40 + 16)
    # output 2×8, the bag of each index 5, the size of each bag 2, the maximum index of each bag 2
    assert summed.bytes_written == 64 + 40 + 16 + 16
    mean = price(aten._embedding_bag.default, table, indices, offsets, False, 1)
    assert mean.flops == 40 + 16
    largest = price(aten._embedding_bag.default, table, indices, offsets, False, 2)
    assert largest.flops == 0
    assert largest.bytes_written == bytes_of(aten._embedding_bag(table, indices, offsets, False, 2))
    weighted = price(aten._embedding_bag.default, table, indices, offsets, False, 0, False, torch.randn(5))
    assert (weighted.flops, weighted.bytes_read) == (80, summed.bytes_read + 20)
    last = price(aten._embedding_bag.default, table, indices, offsets, False, 0, False, None, True)
    assert last.bytes_written == 32 + 40 + 8 + 8


def test_bag_gradients():
    gradient, five, two = torch.randn(2, 8), torch.arange(5), torch.arange(2)
    for mode, flops, read in ((0, 40, 64 + 40 + 40), (1, 80, 64 + 40 + 40 + 16), (2, 16, 64 + 16)):
        work = price(aten._embedding_bag_dense_backward.default, gradient, five, five, two, two, 10, False, mode, None)
        assert (work.flops, work.bytes_read, work.bytes_written) == (flops, read, 320)

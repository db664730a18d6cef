"""Searching, counting and drawing, collectives, and kernels that a compiler made."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from schema_calls import bytes_of, call_of  # noqa: E402

from torchroof.tensors import DTYPES, OpCall, Role, TensorSpec  # noqa: E402
from torchroof.work.algebra import Work  # noqa: E402
from torchroof.work.standard import STANDARD  # noqa: E402

aten = torch.ops.aten
X, WEIGHTS, ORDERED = torch.rand(3, 8), torch.rand(3, 8), torch.arange(8.0)
INDEX = torch.tensor([1, 3, 3])


@pytest.mark.parametrize(
    ("overload", "args", "read"),
    [
        (aten.histc.default, (X, 10), 96),
        (aten.multinomial.default, (WEIGHTS, 2), 96),
        (aten.searchsorted.Tensor, (ORDERED, X), 32 + 96),
        (aten.isin.Tensor_Tensor, (X, ORDERED), 96 + 32),
        (aten.kthvalue.default, (X, 2), 96),
        (aten.median.default, (X,), 96),
        (aten.median.dim, (X, 1), 96),
        (aten.mode.default, (X, 0, True), 96),
        (aten.take.default, (X, INDEX), 24 + 12),
        (aten.trace.default, (X,), 12),
        (aten.renorm.default, (X, 2, 0, 1.0), 96),
        (aten.tril_indices.default, (5, 7, 1), 0),
        (aten.tril_indices.default, (7, 3, -2), 0),
        (aten.triu_indices.default, (5, 7, -1), 0),
        (aten.triu_indices.default, (4, 4, 3), 0),
    ],
    ids=lambda value: str(value) if hasattr(value, "_schema") else "",
)
def test_what_torch_returns_is_what_is_written(overload, args, read) -> None:
    work = STANDARD.price(call_of(overload, *args)).work
    assert (work.bytes_read, work.bytes_written) == (read, bytes_of(overload(*args)))


def spec(*shape: int, dtype: str = "float16") -> TensorSpec:
    return TensorSpec(shape, DTYPES[dtype])


@pytest.mark.parametrize(
    ("name", "operands", "read", "written"),
    [
        ("c10d::alltoall_base_", (spec(8), spec(8), None), 16, 16),
        ("c10d::_allgather_base_", (spec(32), spec(8), None), 16, 64),
        ("c10d::_reduce_scatter_base_", (spec(8), spec(32), None), 64, 16),
        ("c10d::allreduce_", ((spec(8), spec(2)), None), 20, 20),
        ("c10d::send", ((spec(8),), None), 16, 0),
        ("c10d::recv_", ((spec(8),), None), 0, 16),
        ("_c10d_functional::all_reduce", (spec(8), "sum", "0"), 16, 16),
        ("_c10d_functional::all_gather_into_tensor", (spec(8), 4, "0"), 16, 64),
        ("_c10d_functional::reduce_scatter_tensor", (spec(8), "sum", 4, "0"), 16, 4),
        ("_c10d_functional::all_to_all_single", (spec(4, 3), (1, 5), (2, 2), "0"), 24, 36),
        ("_c10d_functional::all_to_all_single", (spec(4, 3), (), (), "0"), 24, 24),
    ],
)
def test_collectives_have_bytes(name: str, operands: tuple[object, ...], read: int, written: int) -> None:
    priced = STANDARD.price(OpCall(name, operands))
    assert (priced.work, priced.family) == (Work(None, read, written), "communication")


def test_waiting_for_a_collective_is_no_work() -> None:
    assert STANDARD.role("_c10d_functional::wait_tensor") is Role.FREE


def fused(name: str, *operands: object) -> Work:
    return STANDARD.price(OpCall(name, operands)).work


def test_a_fused_kernel_moves_its_operands() -> None:
    """Two of 100 float32 read, one written; at most each is read and written. Its FLOPs only the graph knows."""
    x = spec(10, 10, dtype="float32")
    assert fused("triton_poi_fused_add_cos_sin_0", x, x, x, 100) == Work(None, 800, 400, bytes_upper=2400)
    assert STANDARD.role("triton_red_fused_mean_7") is Role.MODELLED
    assert STANDARD.family("triton_red_fused_mean_7") == "fused"


def test_a_fused_gather_reads_no_more_than_it_makes() -> None:
    """16 x 64 numbers out of a table of 50,257 rows: 1,024 places, of a table that has three million."""
    table, tokens, out = spec(50_257, 64), spec(16, dtype="int64"), spec(16, 64)
    work = fused("triton_poi_fused_embedding_0", tokens, table, out, 1024)
    assert (work.bytes_read, work.bytes_written) == (128 + 2048, 2048)
    reduced = fused("triton_per_fused_embedding_native_layer_norm_0", tokens, table, out, 16, 64)
    assert (reduced.bytes_read, reduced.bytes_written) == (128 + 2048, 2048)


def test_a_fused_kernel_without_operands_is_unknown() -> None:
    priced = STANDARD.price(OpCall("triton_poi_fused_add_0", ()))
    assert priced.work == Work.unknown() and "operands" in (priced.reason or "")

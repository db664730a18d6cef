"""Operands whose layout is not told by shape and strides: their products are unknown, not dense."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from schema_calls import dense_spec  # noqa: E402

import torchroof  # noqa: E402
from torchroof.tensors import OpCall, TensorSpec  # noqa: E402
from torchroof.trace.operands import op_call  # noqa: E402
from torchroof.work.standard import STANDARD  # noqa: E402

CSR = TensorSpec((200, 200), dense_spec((1,)).dtype, strided=False)


def test_strides_left_out_beside_strides_are_no_dense_tensor() -> None:
    lists = (b"[[200, 200], [200, 16]]", b'["float", "float"]', b"[[], [16, 1]]", b'["", ""]')
    left, right = op_call("aten::mm", lists).tensors()
    assert not left.strided and right.strided
    older = op_call("aten::mm", (*lists[:2], b"", lists[3]))  # files of older torch have no strides at all
    assert all(tensor.strided for tensor in older.tensors())
    scalar = op_call("aten::add", (b"[[], [3]]", b'["float", "float"]', b"[[], [1]]", b'["", ""]'))
    assert all(tensor.strided for tensor in scalar.tensors())


@pytest.mark.parametrize("op", sorted(name for name, model in STANDARD.models.items() if model.family != "recurrent"))
def test_no_op_takes_a_sparse_operand_as_dense(op: str) -> None:
    priced = STANDARD.price(OpCall(op, (CSR, CSR, CSR, CSR)))
    packs = op.startswith(("aten::mkldnn_", "mkldnn::", "mkl::"))
    assert priced.work.bytes_moved is None and (packs or priced.work.flops is None)
    assert "layout" in (priced.reason or "") or packs


def test_packed_weights_tell_the_flops_but_not_the_bytes() -> None:
    x, weight = dense_spec((8, 200)), CSR
    priced = STANDARD.price(OpCall("aten::mkldnn_linear", (x, weight, None)))
    assert priced.work.flops == 2 * 8 * 200 * 200
    assert priced.work.bytes_moved is None and "layout" in (priced.reason or "")


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("layout", ["csr", "coo", "sparse.mm"])
def test_real_sparse_products_are_unknown(layout: str) -> None:
    dense = (torch.randn(60, 60) > 1).float()
    a = dense.to_sparse_csr() if layout == "csr" else dense.to_sparse()
    b = torch.randn(60, 16)
    with torchroof.profile(device=None) as prof:
        torch.sparse.mm(a, b) if layout == "sparse.mm" else a @ b
    rows = [r for r in prof.report.data.rows if r.op in ("aten::mm", "aten::addmm", "aten::_sparse_mm")]
    assert rows and all(r.flops is None and r.bytes_read is None for r in rows)
    assert any("layout" in (r.unknown or "") or "no work model" in (r.unknown or "") for r in rows)

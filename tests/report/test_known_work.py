"""Work that is known of some calls only: sums hold what their known time covers, and nothing counts twice."""

from __future__ import annotations

from pathlib import Path

import laws
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_maker import A100, TraceMaker

from torchroof.report.build import analyse
from torchroof.report.model import ReportData
from torchroof.trace.reader import read

MM = [[6, 6], [6, 6]]
BYTES = 3 * 6 * 6 * 4


def report(maker: TraceMaker, folder: Path) -> ReportData:
    data = analyse(read(maker.save(folder)))
    laws.check(data)
    return data


def product(t: TraceMaker, at: int, ns: int = 500, **args: object) -> None:
    t.op("aten::mm", at, at + 20, shapes=MM, **args)  # type: ignore[arg-type]
    t.launch(at + 2, "gemm", at + 5000, at + 5000 + ns)


def test_bytes_of_a_call_count_together_or_not_at_all(tmp_path: Path) -> None:
    t = TraceMaker()
    t.step(1, 0, 20000)
    product(t, 100)
    product(t, 1000, types=["float", ""])  # the second factor's type is not told
    (row,) = report(t, tmp_path).rows
    assert (row.bytes_read, row.bytes_written, row.bytes_upper) == (BYTES * 2 // 3, BYTES // 3, BYTES)
    assert row.bytes_known_ns == 500 and row.kernel_ns == 1000
    assert row.achieved_bytes_per_s == pytest.approx(BYTES / 500e-9)
    assert row.flops == 2 * (2 * 6**3) and row.flops_known_ns == 1000  # shapes suffice for these
    assert row.intensity == pytest.approx(2 * 6**3 / BYTES)  # of the calls of which both are known


def two_devices(first_ns: int, second_ns: int) -> TraceMaker:
    t = TraceMaker()
    t.metadata["deviceProperties"] = [A100, A100 | {"id": 1}]
    t.step(1, 0, 20000)
    t.op("aten::mm", 100, 200, shapes=MM)
    correlation = t.launch(110, "gemm", 1000, 1000 + first_ns)
    t.kernel("gemm", 1000, 1000 + second_ns, correlation, device=1)
    return t


@given(st.integers(0, 900), st.integers(0, 900))
def test_a_call_on_two_devices_is_divided_by_kernel_time(tmp_path_factory, first_ns: int, second_ns: int) -> None:
    data = report(two_devices(first_ns, second_ns), tmp_path_factory.mktemp("two"))
    assert [r.device for r in data.rows] == [0, 1]
    assert sum(r.calls for r in data.rows) == 1 and sum(r.kernels for r in data.rows) == 2
    assert sum(r.flops or 0 for r in data.rows) == data.totals.flops == data.totals.matrix_flops == 2 * 6**3
    assert sum((r.bytes_read or 0) + (r.bytes_written or 0) for r in data.rows) == BYTES
    assert sum(r.bytes_upper or 0 for r in data.rows) == BYTES
    whole = max(1, first_ns + second_ns)
    for row, ns in zip(data.rows, (first_ns, second_ns), strict=True):
        assert abs((row.flops or 0) - 2 * 6**3 * ns / whole) <= 1 or not any((first_ns, second_ns))


def test_products_inside_that_do_more_than_the_op_around_them_make_it_unknown(tmp_path: Path) -> None:
    t = TraceMaker()
    t.step(1, 0, 20000)
    t.op("aten::mv", 100, 200, shapes=[[5, 6], [6]])  # as under vmap: the operands of one sample
    t.op("aten::mm", 110, 150, shapes=[[5, 6], [6, 100]])
    t.launch(120, "gemm", 1000, 1500)
    t.op("aten::mm", 300, 400, shapes=MM)
    t.launch(310, "gemm", 2000, 2500)
    rows = {r.op: r for r in report(t, tmp_path).rows}
    assert rows["aten::mv"].flops is None and rows["aten::mv"].bytes_read is None
    assert "vmap" in (rows["aten::mv"].unknown or "")
    assert rows["aten::mm"].flops == 2 * 6**3


def test_a_product_that_is_done_by_another_of_the_same_size_is_known(tmp_path: Path) -> None:
    t = TraceMaker()
    t.step(1, 0, 20000)
    t.op("aten::mv", 100, 200, shapes=[[5, 6], [6]])
    t.op("aten::mm", 110, 150, shapes=[[5, 6], [6, 1]])
    t.op("aten::bmm", 115, 140, shapes=[[1, 5, 6], [1, 6, 1]])  # inside the one that is counted
    t.launch(120, "gemm", 1000, 1500)
    (row,) = report(t, tmp_path).rows
    assert row.op == "aten::mv" and row.flops == 2 * 5 * 6


def test_vmap_is_not_priced_as_one_sample() -> None:
    torch = pytest.importorskip("torch")
    import torchroof

    matrix, batch = torch.randn(5, 6), torch.randn(100, 6)
    with torchroof.profile(device=None) as prof:
        torch.func.vmap(lambda a: matrix @ a)(batch)
    laws.check(prof.report.data)
    rows = [r for r in prof.report.data.rows if r.op in ("aten::mv", "aten::mm", "aten::addmm")]
    assert rows and all(r.flops in (None, 2 * 5 * 6 * 100) for r in rows)


def test_matrix_flops_leave_out_what_is_pointwise(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    import torchroof

    lstm, x = torch.nn.LSTM(12, 6), torch.randn(10, 4, 12)
    with torchroof.profile(device=None) as prof, torch.no_grad():
        lstm(x)
        torch.outer(torch.randn(7), torch.randn(9))
    data = prof.report.data
    products = 2 * (10 * 4) * (4 * 6 * (12 + 6))  # rows, gates, hidden, input and hidden
    assert data.totals.matrix_flops == products
    assert (data.totals.flops or 0) > products

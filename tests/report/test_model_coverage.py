"""How much of the kernel time of real files has FLOPs and bytes, and what the rest is."""

from __future__ import annotations

from collections import Counter

import pytest
from test_shared_traces import FILES, TRACES, report_of

from torchroof.report.model import ReportData, Row
from torchroof.work.standard import STANDARD

pytestmark = [pytest.mark.shared, pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not here")]

LEAST = 0.95
UNRECORDED = {
    "hta-sampled-rank0-202304": (
        0.85,
        "its writer left out the lists of tensors that cat, stack and foreach ops are given, and all numbers",
    ),
}
"""Files of which less is known, how much is, and why."""


def aten_rows(data: ReportData) -> list[Row]:
    return [row for row in data.rows if (row.op or "").startswith("aten::")]


def bears_shapes(data: ReportData) -> bool:
    """Whether the operands of any op with a work model were recorded."""
    rows = [row for row in aten_rows(data) if STANDARD.family(row.op or "")]
    return any("no operand shapes" not in (row.unknown or "") for row in rows)


SHAPED = [name for name in FILES if TRACES.is_dir() and bears_shapes(report_of(name))]


def test_most_files_bear_shapes() -> None:
    assert len(SHAPED) >= 20


@pytest.mark.parametrize("name", SHAPED)
def test_kernel_time_under_aten_ops_has_flops_and_bytes(name: str) -> None:
    data = report_of(name)
    # Two files of 2021 and 2022 have shapes of a few ops only: what has none is not judged.
    rows = [row for row in aten_rows(data) if "no operand shapes" not in (row.unknown or "")]
    whole = sum(row.kernel_ns for row in rows)
    least, _ = UNRECORDED.get(name, (LEAST, ""))
    assert sum(row.flops_known_ns for row in rows) >= least * whole
    assert sum(row.bytes_known_ns for row in rows) >= least * whole


def kind_of(row: Row) -> str:
    """What a row without an aten op is."""
    op = row.op or "(no op)"
    if op.startswith(("c10d::", "_c10d_functional::", "record_param_comms", "nccl:")):
        return "communication"
    if op.startswith("triton_"):
        return "fused by a compiler"
    return "third party" if "::" in op or not op.startswith("aten") else op


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ao-ep-moe-ref-202604", {"communication": 0.166}),
        ("ao-sam-amg-graph-202410", {"fused by a compiler": 0.167, "graph replay": 0.209}),
        ("param-dlrm-rank0-202309", {"communication": 0.849, "third party": 0.031}),
        ("tl-vllm-decode-graph-202603", {"graph replay": 0.973}),
        ("hta-sampled-rank0-202304", {"communication": 0.653, "third party": 0.192}),
    ],
)
def test_the_rest_apart_with_its_share(name: str, expected: dict[str, float]) -> None:
    data = report_of(name)
    rest: Counter[str] = Counter({u.reason: u.kernel_ns for u in data.unattributed})
    for row in data.rows:
        if not (row.op or "").startswith("aten::"):
            rest[kind_of(row)] += row.kernel_ns
    shares = {kind: round(ns / data.totals.kernel_ns, 3) for kind, ns in rest.items()}
    assert {kind: shares.get(kind) for kind in expected} == expected


def test_bytes_of_fused_kernels_and_collectives_are_known() -> None:
    for name, prefix in (("ao-sam-amg-graph-202410", "triton_"), ("param-dlrm-rank0-202309", "c10d::")):
        rows = [row for row in report_of(name).rows if (row.op or "").startswith(prefix)]
        assert rows and all(row.bytes_known_ns == row.kernel_ns for row in rows)


def test_collectives_have_no_roof() -> None:
    rows = [r for r in report_of("param-dlrm-rank0-202309").rows if (r.op or "").startswith("c10d::")]
    assert {(row.bound, row.floor_ns, row.efficiency) for row in rows} == {("communication", None, None)}

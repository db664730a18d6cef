"""The ceilings chosen over kernels of real traces, as a table: op, kernel, and the datasheet's figure for it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from trace_maker import TraceMaker

from torchroof.device.roof import Ceiling, Roof
from torchroof.report.build import analyse
from torchroof.report.model import ReportData, Row
from torchroof.trace.reader import read

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"


@cache
def report_of(name: str) -> ReportData:
    return analyse(read(TRACES / f"{name}.json.gz"))


def row_with(data: ReportData, op: str, kernel: str) -> Row:
    owners = {(k.path, k.phase) for k in data.kernels if k.op == op and kernel in k.name}
    rows = [r for r in data.rows if r.op == op and (r.path, r.phase) in owners and r.flops is not None]
    assert rows, (op, kernel)
    return max(rows, key=lambda r: r.kernel_ns)


def ceilings_over(data: ReportData, row: Row) -> tuple[Ceiling, Ceiling]:
    """The compute ceiling of a row's precision and pipe, and the memory's; the one that judged is one of them."""
    (device,) = [d for d in data.devices if d.index == row.device]
    roof = Roof(device.name or "", device.ceilings)
    assert row.precision is not None and row.pipe is not None
    compute, memory = roof.compute(row.precision, row.pipe), roof.bandwidth()
    assert compute is not None and memory is not None
    if row.ceiling is not None:
        assert device.ceilings[row.ceiling] in (compute, memory)
    return compute, memory


H100, A100_40_PCIE, A100_80_PCIE = "tl-h100-bert-small-202507", "particle-bs512-202412", "switch-moe-202405"
H100_TF32, A100_GRAPH, B200 = "sidnb13-transformer-202507", "ao-sam-amg-graph-202410", "ao-ep-moe-ref-202604"
MI300X, MI250, V100, B300 = (
    "tl-mi300-ddp-resnet18-202604",
    "hta-mi250-rocm62-202502",
    "param-dlrm-rank0-202309",
    "tl-b300-moe-202604",
)


@pytest.mark.shared
@pytest.mark.usefixtures("shared_traces")
@pytest.mark.parametrize(
    ("trace", "op", "kernel", "tera", "giga"),
    [
        # bfloat16 on tensor cores
        (H100, "aten::addmm", "tensorop_bf16_s16816gemm", 989.4, 3350),
        (H100, "aten::scaled_dot_product_attention", "flash_fwd_kernel", 989.4, 3350),
        (B200, "aten::_grouped_mm", "cutlass", 2250, 7700),
        (B300, "aten::bmm", "nvjet_sm103", 2250, 7750),
        # float16 on tensor cores
        (A100_40_PCIE, "aten::addmm", "fp16_s1688gemm", 312, 1555),
        # TF32 on: float32 operands on tensor cores, by the kernels' names
        (H100_TF32, "aten::mm", "tf32f32", 494.7, 3350),
        (H100_TF32, "aten::bmm", "tensorop_s1688gemm", 494.7, 3350),
        (A100_GRAPH, "aten::convolution", "tf32f32_tf32f32", 156, 1555),
        # TF32 off: SIMT products on the vector units
        (A100_GRAPH, "aten::addmm", "ampere_sgemm", 19.5, 1555),
        (A100_80_PCIE, "aten::addmm", "ampere_sgemm", 19.5, 1935),
        (V100, "aten::mm", "volta_sgemm", 15.7, 900),
        # matrix cores of another make; float32 runs on them, too
        (MI300X, "aten::convolution", "igemm_fwd", 1307.4, 5300),
        (MI300X, "aten::mm", "Cijk_", 1307.4, 5300),
        (MI250, "aten::addmm", "Cijk_", 45.3, 1638),
        # pointwise work and reductions in any narrow type: float32 on the vector units
        (H100, "aten::gelu", "elementwise", 66.9, 3350),
        (A100_40_PCIE, "aten::gelu", "elementwise", 19.5, 1555),
        (A100_40_PCIE, "aten::native_layer_norm", "layer_norm", 19.5, 1555),
        (A100_80_PCIE, "aten::_softmax", "softmax", 19.5, 1935),
        (MI300X, "aten::threshold_backward", "elementwise", 163.4, 5300),
        # copies do no arithmetic: only the memory can judge them
        (A100_40_PCIE, "aten::_to_copy", "elementwise", 19.5, 1555),
        (B200, "aten::_to_copy", "elementwise", 75, 7700),
    ],
)
def test_the_ceilings_over_a_kernel(trace: str, op: str, kernel: str, tera: float, giga: float) -> None:
    data = report_of(trace)
    row = row_with(data, op, kernel)
    compute, memory = ceilings_over(data, row)
    assert compute.value == pytest.approx(tera * 1e12, rel=2e-3), (row.precision, row.pipe)
    assert memory.value == pytest.approx(giga * 1e9, rel=2e-3)
    if row.flops == 0:
        assert row.side == "memory"


def test_an_int8_product(tmp_path: Path) -> None:
    """No public trace has one. 2·64³ operations on an A100 at 624 TOP/s."""
    t = TraceMaker()
    t.op("aten::_int_mm", 1_000, 9_000, shapes=[[64, 64], [64, 64]], dtype="signed char")
    t.launch(2_000, "void cutlass::Kernel2<cutlass_80_tensorop_i16832gemm_s8_256x128_64x3_tn_align16>", 20_000, 25_000)
    data = analyse(read(t.save(tmp_path)))
    (row,) = data.rows
    compute, _ = ceilings_over(data, row)
    assert (row.precision, row.pipe, compute.value) == ("int8", "matrix", 624e12)


@pytest.mark.shared
@pytest.mark.usefixtures("shared_traces")
def test_what_beats_main_memory_on_a_card_without_a_measured_cache_is_explained() -> None:
    """33.6 MB of relu on an H100, whose L2 holds 50 MiB: 125 % of main memory, and not of a faulty formula."""
    told = [n.text for n in report_of(H100_TF32).notes if n.kind == "suspicion"]
    (relu,) = [text for text in told if text.startswith("relu")]
    assert "125% of its roof" in relu and "33.6 MB, which fits the device's cache of 52.4 MB" in relu


@pytest.mark.shared
@pytest.mark.usefixtures("shared_traces")
@pytest.mark.parametrize("path", sorted(TRACES.glob("*.json.gz")), ids=lambda p: p.name.removesuffix(".json.gz"))
def test_what_is_over_its_roof_is_noted(path: Path) -> None:
    data = report_of(path.name.removesuffix(".json.gz"))
    over = sum(row.efficiency is not None and row.efficiency > 1 for row in data.rows)
    assert sum(n.count or 0 for n in data.notes if n.kind == "suspicion") == over

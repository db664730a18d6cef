"""By which precision and pipe a product is judged: operands, kernel names, flags of the op and of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trace_maker import TraceMaker

from torchroof.device.roof import Ceiling, Roof
from torchroof.report.build import analyse
from torchroof.report.judging import Flags, judge, tf32_flag
from torchroof.report.model import Row
from torchroof.tensors import DTYPES, OpCall, TensorSpec
from torchroof.trace.dialects import KernelMath
from torchroof.trace.reader import read


def ceiling(precision: str, pipe: str) -> Ceiling:
    return Ceiling(
        kind="compute", precision=precision, pipe=pipe, value=1e12, unit="FLOP/s", origin="given", source="made up"
    )


A_ROOF = Roof("made up", (ceiling("tf32", "matrix"), ceiling("float32", "vector")))
WITHOUT_TF32 = Roof("older", (ceiling("float32", "vector"),))
ON, OFF, SILENT = Flags(True, True), Flags(False, False), Flags()
TF32, VECTOR = KernelMath("tf32", "tf32"), KernelMath("sgemm", pipe="vector")


@pytest.mark.parametrize(
    ("shown", "allowed", "flags", "roof", "precision", "pipe", "why"),
    [
        (None, None, SILENT, A_ROOF, "float32", "matrix", "neither kernel nor flags"),
        (None, None, ON, A_ROOF, "tf32", "matrix", "the run's flag allows"),
        (None, None, OFF, A_ROOF, "float32", "matrix", "the run's flag forbids"),
        (None, True, OFF, A_ROOF, "tf32", "matrix", "the op's flag allows"),  # the nearer one decides
        (None, False, ON, A_ROOF, "float32", "matrix", "the op's flag forbids"),
        (TF32, False, OFF, A_ROOF, "tf32", "matrix", "the kernel's name has tf32"),  # what ran goes before what may
        (VECTOR, True, ON, A_ROOF, "float32", "vector", "the kernel's name has sgemm"),
        (None, True, ON, WITHOUT_TF32, "float32", "matrix", "its operands are float32"),  # no such units there
        (None, None, ON, None, "float32", "matrix", "its operands are float32"),
    ],
)
def test_float32_products(
    shown: KernelMath | None,
    allowed: bool | None,
    flags: Flags,
    roof: Roof | None,
    precision: str,
    pipe: str,
    why: str,
) -> None:
    judged = judge("float32", "matmul", shown, allowed, flags, roof)
    assert (judged.precision, judged.pipe) == (precision, pipe)
    assert why in judged.why


def test_other_operands_are_what_they_are() -> None:
    assert judge("bfloat16", "matmul", None, None, ON, A_ROOF).precision == "bfloat16"
    assert judge("bfloat16", "matmul", TF32, None, ON, A_ROOF).precision == "bfloat16"
    vector = judge("bfloat16", "matmul", VECTOR, None, ON, A_ROOF)
    assert (vector.precision, vector.pipe) == ("bfloat16", "vector")
    narrow = judge("float16", "matmul", KernelMath("h884gemm", narrow_sums=True), None, ON, A_ROOF)
    assert narrow.precision == "float16" and "adds up in float16" in narrow.why


def test_other_work_is_done_by_vector_units() -> None:
    for family in ("pointwise", "norm", None):
        judged = judge("float32", family, TF32, True, ON, A_ROOF)
        assert (judged.precision, judged.pipe) == ("float32", "vector")


def test_what_a_run_says() -> None:
    assert Flags.from_environment({"allow_tf32_matmul": True, "allow_tf32_cudnn": False}) == Flags(True, False)
    for spelled, expected in (("highest", False), ("high", True), ("medium", True)):
        assert Flags.from_environment({"float32_matmul_precision": spelled}) == Flags(expected, None)
    assert Flags.from_environment({}) == SILENT and Flags.of(None) == SILENT
    assert Flags(True, False).allow("attention") is True and Flags(True, False).allow("recurrent") is False


def test_the_flag_of_an_op() -> None:
    x = TensorSpec((1, 1, 3, 3), DTYPES["float32"])
    operands = (x, x, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, False, False, True)
    assert tf32_flag(OpCall("aten::_convolution", (*operands, True))) is True
    assert tf32_flag(OpCall("aten::_convolution", (*operands, False))) is False
    assert tf32_flag(OpCall("aten::_convolution", operands)) is None
    assert tf32_flag(OpCall("aten::mm", (x, x))) is None


SIZE = [64, 64]
PLAIN = "void some_library_gemm(...)"


def row(folder: Path, *kernels: str, environment: dict[str, Any] | None = None) -> Row:
    """The row of one 64 x 64 x 64 product on an A100."""
    t = TraceMaker()
    t.op("aten::mm", 1_000, 9_000, shapes=[SIZE, SIZE])
    for i, name in enumerate(kernels):
        t.launch(2_000 + 10 * i, name, 20_000 + 10_000 * i, 25_000 + 10_000 * i)
    if environment is not None:
        t.metadata["torchroof"] = json.dumps({"schema": "torchroof.capture/1", "environment": environment})
    (found,) = (r for r in analyse(read(t.save(folder))).rows if r.op == "aten::mm")
    return found


def test_a_row_says_by_which_ceiling_and_why(tmp_path: Path) -> None:
    plain = row(tmp_path, PLAIN)
    assert (plain.precision, plain.pipe) == ("float32", "matrix")
    tf32 = row(tmp_path, "cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4")
    assert (tf32.precision, tf32.pipe) == ("tf32", "matrix")
    assert tf32.judged == "float32 as tf32: the kernel's name has s1688gemm"
    vector = row(tmp_path, "ampere_sgemm_64x64_nn")
    assert (vector.precision, vector.pipe) == ("float32", "vector")
    assert vector.judged is not None and "on vector units" in vector.judged
    # 2·64³ FLOPs in each; 156 TFLOP/s of TF32 and 19.5 of float32, 8 times less.
    assert vector.flops == tf32.flops == 524_288


def test_several_kernels_of_an_op_share_its_work(tmp_path: Path) -> None:
    """A product and the reduction of its parts: the time of both, the work of one product, and one call."""
    both = row(tmp_path, "ampere_sgemm_64x64_nn", "void splitKreduce_kernel<...>(...)")
    assert (both.calls, both.kernels, both.kernel_ns, both.flops) == (1, 2, 10_000, 524_288)
    assert both.achieved_flops_per_s == pytest.approx(524_288 / 10e-6)

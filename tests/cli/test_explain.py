"""`torchroof explain`: the accounting by hand, in words and as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from torchroof.cli import main
from torchroof.errors import OperandError, UnknownOp
from torchroof.tensors import DTYPES
from torchroof.work.calls import SPELLINGS, call_of
from torchroof.work.standard import STANDARD

KEYS = [
    "op",
    "dtype",
    "device",
    "macs",
    "flops",
    "bytes",
    "bytes_read",
    "bytes_written",
    "intensity",
    "ridge_point",
    "memory_ns",
    "compute_ns",
    "floor_ns",
    "side",
    "gemm",
    "tiles",
    "copy_ns",
    "launch_ns",
    "total_ns",
]


def explain(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["explain", *words, "--format", "json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert list(told) == KEYS
    return told


def test_a_product_on_the_rtx_a6000(capsys: pytest.CaptureFixture[str]) -> None:
    told = explain(capsys, "mm", "512x256", "256x512", "--dtype", "float32", "--device", "RTX A6000")
    # 512·512 results of 256 multiply-adds; 3 matrices of float32: (131,072 + 131,072 + 262,144)·4 bytes.
    assert (told["macs"], told["flops"]) == (67_108_864, 134_217_728)
    assert (told["bytes_read"], told["bytes_written"], told["bytes"]) == (1_048_576, 1_048_576, 2_097_152)
    assert told["intensity"] == 64
    # 38.7 TFLOP/s of vector float32 (tf32's 77.4 is another precision) over 768 GB/s.
    assert told["ridge_point"] == pytest.approx(50.4, abs=0.05)
    assert told["memory_ns"] == pytest.approx(2730, abs=5)
    assert told["compute_ns"] == pytest.approx(3470, abs=5)
    assert told["floor_ns"] == told["compute_ns"]
    assert (told["side"], told["device"], told["dtype"]) == ("compute", "RTX A6000", "float32")


def test_a_small_product_on_the_t4(capsys: pytest.CaptureFixture[str]) -> None:
    told = explain(capsys, "mm", "64x64", "64x64", "--device", "T4")
    # 2·64³ FLOPs at 8.1 TFLOP/s; 3·64²·4 bytes at 320 GB/s.
    assert (told["flops"], told["bytes"]) == (524_288, 49_152)
    assert told["compute_ns"] == pytest.approx(64.7, abs=0.05)
    assert told["memory_ns"] == told["floor_ns"] == pytest.approx(153.6)
    assert told["side"] == "memory"


@pytest.mark.parametrize(("dtype", "moved", "intensity"), [("float32", 4_202_496, 0.499), ("int8", 1_050_624, 1.996)])
def test_a_matrix_by_a_vector(capsys: pytest.CaptureFixture[str], dtype: str, moved: int, intensity: float) -> None:
    told = explain(capsys, "gemv", "1024x1024", "1024", "--dtype", dtype)
    # 2·1024² FLOPs; 1024² + 1024 + 1024 elements.
    assert (told["macs"], told["flops"], told["bytes"]) == (1_048_576, 2_097_152, moved)
    assert told["intensity"] == pytest.approx(intensity, abs=0.0005)
    assert {told[k] for k in ("device", "ridge_point", "memory_ns", "compute_ns", "floor_ns", "side")} == {None}


@pytest.mark.parametrize(
    ("options", "flops", "outputs"),
    [
        # 8·16·224² outputs of 3·3·3 multiply-adds.
        (["--padding", "1"], 346_816_512, 8 * 16 * 224 * 224),
        # (224 + 2 - 3) // 2 + 1 = 112 a side.
        (["--padding", "1", "--stride", "2"], 2 * 8 * 16 * 112 * 112 * 27, 8 * 16 * 112 * 112),
        # A kernel dilated by 2 reaches over 5: 224 - 5 + 1 = 220.
        (["--dilation", "2"], 2 * 8 * 16 * 220 * 220 * 27, 8 * 16 * 220 * 220),
        # Height 224 + 2 - 2, width (224 - 3) // 2 + 1.
        (["--padding", "1x0", "--stride", "1x2"], 2 * 8 * 16 * 224 * 111 * 27, 8 * 16 * 224 * 111),
    ],
)
def test_a_convolution(capsys: pytest.CaptureFixture[str], options: list[str], flops: int, outputs: int) -> None:
    told = explain(capsys, "conv2d", "8x3x224x224", "16x3x3x3", *options)
    assert (told["flops"], told["macs"]) == (flops, flops // 2)
    # The input, the weight, the output; 4 bytes each.
    assert told["bytes_read"] == (8 * 3 * 224 * 224 + 16 * 27) * 4
    assert told["bytes_written"] == outputs * 4


def test_numbers_of_two_are_height_by_width(capsys: pytest.CaptureFixture[str]) -> None:
    # Height (10 + 2·2 - 3) // 3 + 1 = 4, width 20 - 3 + 1 = 18.
    told = explain(capsys, "conv2d", "1x1x10x20", "1x1x3x3", "--padding", "2x0", "--stride", "3x1")
    assert told["macs"] == 4 * 18 * 9


def test_padding_on_both_sides_makes_room_for_the_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    # 3 + 2·1 = 5 hold a kernel of 5 once.
    assert explain(capsys, "conv2d", "1x1x3x3", "1x1x5x5", "--padding", "1")["macs"] == 25


def test_a_convolution_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    told = explain(capsys, "conv2d", "1x32x10x10", "32x1x3x3", "--groups", "32", "--padding", "1")
    # One channel a group: 32·10·10 outputs of 9 multiply-adds.
    assert told["macs"] == 32 * 100 * 9


def test_a_linear_layer_with_and_without_bias(capsys: pytest.CaptureFixture[str]) -> None:
    plain = explain(capsys, "linear", "8x200704", "10x200704")
    biased = explain(capsys, "linear", "8x200704", "10x200704", "10")
    assert plain["flops"] == biased["flops"] == 2 * 8 * 10 * 200_704  # a fused bias counts 0
    assert biased["bytes"] - plain["bytes"] == 10 * 4
    deep = explain(capsys, "linear", "2x4x200704", "10x200704")
    assert deep | {"op": ""} == plain | {"op": ""}


def test_pointwise_work_has_no_multiply_adds_and_uses_the_vector_units(capsys: pytest.CaptureFixture[str]) -> None:
    told = explain(capsys, "add", "1024x1024", "1024", "--dtype", "bf16", "--device", "H100 SXM")
    assert (told["macs"], told["flops"]) == (None, 1024 * 1024)
    assert told["bytes"] == (2 * 1024 * 1024 + 1024) * 2
    assert told["compute_ns"] == pytest.approx(1024 * 1024 / 66.9e12 * 1e9)


def test_eight_bit_floats_are_rated_as_float8(capsys: pytest.CaptureFixture[str]) -> None:
    told = explain(capsys, "mm", "64x64", "64x64", "--dtype", "float8_e5m2", "--device", "H100 SXM")
    assert told["ridge_point"] == pytest.approx(1978.9e12 / 3350e9)


def test_a_precision_without_a_ceiling_has_no_floor(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("mm", "64x64", "64x64", "--dtype", "bfloat16", "--device", "T4")
    told = explain(capsys, *words)
    assert (told["floor_ns"], told["side"], told["compute_ns"]) == (None, None, None)
    assert told["memory_ns"] == pytest.approx(76.8)
    assert main(["explain", *words]) == 0
    assert "No floor: T4 has no bfloat16 matrix ceiling." in capsys.readouterr().out


def test_the_steps_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "mm", "512x256", "256x512", "--device", "RTX A6000"]) == 0
    out = capsys.readouterr().out
    for step in (
        "multiply-adds +67,108,864",
        "FLOPs +134,217,728",
        "bytes +2,097,152",
        "intensity +64 ",
        "ridge point +50.4",
        "moving data +2.73 µs",
        "computing +3.47 µs",
        "floor +3.47 µs",
        "Compute side",
    ):
        assert re.search(step, out), step
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mm", "3x4", "5x6"], "3x4 by 5x6: the first has 4 columns, the second 5 rows"),
        (["mm", "3x4"], "mm takes two shapes"),
        (["mm", "3", "3x3"], "the first matrix must have 2 axes, 3 has 1"),
        (["bmm", "2x3x4", "3x4x5"], "batches of 2 and 3"),
        (["addmm", "7", "3x4", "4x5"], "7 cannot be added to 3x5"),
        (["gemv", "3x4", "5"], "a matrix of 4 columns does not fit a vector of 5"),
        (["linear", "8x5", "10x4"], "an input 8x5 does not fit a weight 10x4"),
        (["linear", "8x4", "10x4", "8"], "a bias 8 does not fit 10 outputs"),
        (["conv2d", "8x4x8x8", "16x3x3x3"], "has 4 channels, the weight 16x3x3x3 takes 3"),
        (["conv2d", "8x3x2x8", "16x3x3x3"], "reaches over 3 in height, the padded input has only 2"),
        (["conv2d", "8x4x8x8", "9x2x3x3", "--groups", "2"], "9 outputs do not divide into 2 groups"),
        (["conv2d", "8x3x8x8", "16x3x3x3", "--stride", "0"], "--stride 0 is not"),
        (["conv2d", "8x3x8x8", "16x3x3x3", "--groups", "1x2"], "--groups 1x2 is not one number"),
        (["relu", "3", "--stride", "2"], "belong to conv2d"),
        (["add", "3x4", "5"], "3x4 and 5 do not broadcast"),
        (["relu", "3xq"], "'3xq' is not a shape"),
        (["frobnicate", "3"], "no op named 'frobnicate'"),
        (["sort"], "sort"),
        (["relu", "3", "--tile", "32"], "--tile is for products"),
        (["mm", "3x4", "4x5", "--tile", "0"], "a tile of 0"),
        (["mm", "3x4", "4x5", "--from-host", "0"], "--from-host 0 is no link"),
        (["mm", "3x4", "4x5", "--causal"], "--causal belongs to attention"),
        (["attention", "1x3x4x5", "1x2x4x5", "1x2x4x5"], "3 query heads do not divide into 2 key heads"),
        (["--list", "frobnicate"], "nothing that is modelled is called 'frobnicate'"),
        (["mm", "3x4", "4x5", "--list"], "--list takes no shapes"),
        ([], "name an op and its shapes"),
        (["relu", "3", "--dtype", "float31"], "'float31' is no element type"),
        (["relu", "3", "--device", "RTX A600"], "RTX A6000"),
    ],
)
def test_what_does_not_fit_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["explain", *words]) == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    assert message in caught.err
    assert caught.err.startswith("torchroof: ") and caught.err.count("\n") == 1


def test_a_convolution_as_the_product_that_it_amounts_to(capsys: pytest.CaptureFixture[str]) -> None:
    """8 samples of 224 x 224 places; 16 outputs; 3 inputs of a kernel of 9. Both ways the same multiply-adds."""
    words = ("conv2d", "8x3x224x224", "16x3x3x3", "--padding", "1")
    assert main(["explain", *words, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["gemm"] == {"m": 8 * 224 * 224, "n": 16, "k": 27, "groups": 1}
    assert told["macs"] == 8 * 224 * 224 * 16 * 27
    assert main(["explain", "conv2d", "1x32x10x10", "64x1x3x3", "--groups", "32", "--format", "json"]) == 0
    grouped = json.loads(capsys.readouterr().out)
    assert grouped["gemm"] == {"m": 64, "n": 2, "k": 9, "groups": 32}
    assert grouped["macs"] == 64 * 2 * 9 * 32
    assert main(["explain", *words]) == 0
    assert "401,408 x 16 x 27" in capsys.readouterr().out


def test_tiles(capsys: pytest.CaptureFixture[str]) -> None:
    """1024³ in float32: untiled 2 FLOPs for 2 numbers of 4 bytes, in tiles of 32 each is used 32 times, and at best
    2·N³ ÷ 12·N² = N ÷ 6."""
    words = ("mm", "1024x1024", "1024x1024", "--tile", "32")
    assert main(["explain", *words, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(t["tile"], t["intensity"]) for t in told["tiles"]] == [(1, 0.25), (32, 8)]
    assert [t["bytes"] for t in told["tiles"]] == [8 * 1024**3, 8 * 1024**3 // 32]
    assert told["intensity"] == pytest.approx(170.7, abs=0.05)
    assert main(["explain", *words]) == 0
    out = capsys.readouterr().out
    for step in ("untiled +0.25 ", "tiles of 32 +8 ", "ideal +170.7 "):
        assert re.search(step, out), step


@pytest.mark.parametrize(("dtype", "divisor"), [("float32", 6), ("bfloat16", 3)])
@pytest.mark.parametrize("size", [6, 1024, 4096])
def test_the_intensity_of_a_square_product(
    capsys: pytest.CaptureFixture[str], size: int, dtype: str, divisor: int
) -> None:
    square = f"{size}x{size}"
    assert explain(capsys, "mm", square, square, "--dtype", dtype)["intensity"] == pytest.approx(size / divisor)


def test_the_way_from_the_host(capsys: pytest.CaptureFixture[str]) -> None:
    """Three matrices of 4 MiB over 31.5 GB/s: 12,582,912 ÷ 31.5e9 = 399.5 µs; over 63 GB/s half of that."""
    words = ("mm", "1024x1024", "1024x1024", "--device", "RTX A6000", "--from-host")
    assert main(["explain", *words, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["copy_ns"] == pytest.approx(399_458, abs=1)
    assert told["total_ns"] == pytest.approx(told["copy_ns"] + told["launch_ns"] + told["floor_ns"])
    assert main(["explain", *words, "63", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["copy_ns"] == pytest.approx(told["copy_ns"] / 2)
    assert main(["explain", *words]) == 0
    out = capsys.readouterr().out
    assert "399 µs" in out and "of which copying is" in out


def test_causal_attention_counts_what_the_mask_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    heads = ["2x4x128x64"] * 3
    assert explain(capsys, "attention", *heads)["flops"] == 33_554_432
    assert explain(capsys, "attention", *heads, "--causal")["flops"] == 16_908_288
    assert main(["explain", "attention", *heads, "--causal"]) == 0
    assert re.search("FLOPs in full +33,554,432", capsys.readouterr().out)


def test_any_op_that_takes_tensors_can_be_explained(capsys: pytest.CaptureFixture[str]) -> None:
    told = explain(capsys, "silu", "4x8")
    assert (told["flops"], told["bytes"]) == (5 * 32, 256)
    assert explain(capsys, "aten::_weight_int8pack_mm", "4x64", "32x64", "32")["flops"] == 2 * 4 * 32 * 64
    assert main(["explain", "silu", "4x8"]) == 0
    assert "A sigmoid (4) and a product" in capsys.readouterr().out


def test_the_list_has_every_model_with_its_formula(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--list", "--format", "json"]) == 0
    groups = json.loads(capsys.readouterr().out)
    assert {op for group in groups for op in group["ops"]} == set(STANDARD.models)
    assert all(group["formula"] and group["source"] for group in groups)
    assert main(["explain", "--list"]) == 0
    out = capsys.readouterr().out
    assert "A multiply-add is 2 FLOPs" in out and "\nmatmul\n" in out and "aten::_scaled_mm" in out


def test_the_list_of_a_family_and_of_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--list", "fourier", "--format", "json"]) == 0
    families = {group["family"] for group in json.loads(capsys.readouterr().out)}
    assert families == {"fourier"}
    assert main(["explain", "--list", "int4pack", "--format", "json"]) == 0
    names = [op for group in json.loads(capsys.readouterr().out) for op in group["ops"]]
    assert names and all("int4pack" in name for name in names)


EXAMPLES = {
    "mm": [(2, 3), (3, 4)],
    "linear": [(2, 3), (4, 3)],
    "conv2d": [(1, 3, 8, 8), (4, 3, 3, 3)],
    "gemv": [(2, 3), (3,)],
    "bmm": [(5, 2, 3), (5, 3, 4)],
    "addmm": [(4,), (2, 3), (3, 4)],
    "attention": [(1, 4, 5, 8), (1, 2, 6, 8), (1, 2, 6, 8)],
    "embedding": [(9, 4), (2, 3)],
}


@pytest.mark.parametrize("op", SPELLINGS)
def test_every_name_stands_for_an_op_with_a_model(op: str) -> None:
    call = call_of(op, EXAMPLES.get(op, [(2, 3)]), DTYPES["float32"])
    priced = STANDARD.price(call)
    assert priced.reason is None
    assert priced.work.flops is not None and priced.work.bytes_moved


def test_calls_raise_the_errors_of_the_tree() -> None:
    with pytest.raises(UnknownOp):
        call_of("nothing", [], DTYPES["float32"])
    with pytest.raises(OperandError):
        call_of("mm", [(2, 3), (2, 3)], DTYPES["float32"])

"""`docs/counting.md` says what the formulas do. ``python tests/work/test_counting_doc.py`` writes its tables anew."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from schema_calls import dense_spec

from torchroof.tensors import OpCall, TensorSpec
from torchroof.work.standard import STANDARD

DOC = Path(__file__).parents[2] / "docs" / "counting.md"
MARK = "<!-- The tables below are made from the formulas' own words. -->\n"


def tables() -> str:
    """A table per family: ops that count alike share a row."""
    families: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for op, model in STANDARD.models.items():
        families[model.family][model.words].append(f"`{op.removeprefix('aten::')}`")
    parts = []
    for family, rows in families.items():
        parts.append(f"\n### {family}\n\n| op (`aten::…`) | counts |\n| --- | --- |\n")
        for words, ops in rows.items():
            text = words[0].upper() + words[1:].rstrip(".").replace("|", "\\|") + "."
            parts.append(f"| {', '.join(ops)} | {text} |\n")
    return "".join(parts)


def test_the_tables_are_the_formulas_words():
    head, mark, rest = DOC.read_text(encoding="utf-8").partition(MARK)
    assert head and mark
    assert rest == tables(), "python tests/work/test_counting_doc.py writes the tables anew"


def call(op, *operands):
    return OpCall(f"aten::{op}", operands)


IMAGES = dense_spec((8, 3, 224, 224))
ONE = ((1, 1), (1, 1), (1, 1), False, (0, 0))
HEADS = dense_spec((2, 4, 128, 64))
EXPANDED = TensorSpec((512, 256), dense_spec(()).dtype, (0, 1))
EXAMPLES = [
    (call("mm", dense_spec((512, 256)), dense_spec((256, 512))), 134_217_728, 2_097_152),
    (call("mm", EXPANDED, dense_spec((256, 512))), 134_217_728, 1_573_888),
    (call("mv", dense_spec((1024, 1024)), dense_spec((1024,))), 2_097_152, 4_202_496),
    (call("mv", dense_spec((1024, 1024), "int8"), dense_spec((1024,), "int8")), 2_097_152, 1_050_624),
    (
        call("addmm", dense_spec((10,)), dense_spec((8, 200_704)), dense_spec((200_704, 10)), 1, 1),
        32_112_640,
        14_451_048,
    ),
    (
        call("convolution", IMAGES, dense_spec((16, 3, 3, 3)), dense_spec((16,)), *ONE, 1),
        346_816_512,
        30_508_800,
    ),
    (
        call("convolution", dense_spec((2, 64, 14, 14)), dense_spec((64, 1, 3, 3)), None, *ONE, 64),
        451_584,
        203_008,
    ),
    (call("scaled_dot_product_attention", HEADS, HEADS, HEADS, None, 0.0, False), 33_554_432, 1_048_576),
    (call("scaled_dot_product_attention", HEADS, HEADS, HEADS, None, 0.0, True), 16_908_288, 1_048_576),
    (
        call("native_layer_norm", dense_spec((64, 768)), (768,), dense_spec((768,)), dense_spec((768,)), 1e-5),
        344_064,
        399_872,
    ),
    (
        call("max_pool2d_with_indices", dense_spec((8, 16, 224, 224)), (2, 2), (), (0, 0), (1, 1), False),
        0,
        44_957_696,
    ),
    (call("embedding", dense_spec((30_522, 768)), dense_spec((4, 128), "int64"), -1, False, False), 0, 3_149_824),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example[0].name)
def test_the_worked_numbers_are_those_of_the_formulas(example):
    priced, flops, moved = STANDARD.price(example[0]).work, example[1], example[2]
    assert (priced.flops, priced.bytes_moved) == (flops, moved)
    assert f"| {flops:,} | {moved:,} |" in DOC.read_text(encoding="utf-8")


if __name__ == "__main__":
    text = DOC.read_text(encoding="utf-8").partition(MARK)
    DOC.write_text(text[0] + MARK + tables(), encoding="utf-8")

"""A transformer of 48 layers: what a tired reader finds on the first screen, and the page of one layer."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from rich.console import Console

from torchroof.report.model import ReportData
from torchroof.reports import Report
from torchroof.views.terminal import html, plain_text
from torchroof.views.text import shorten

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "report"))
from reading import layer, report, row

PARTS = (("self_attn", "MultiheadAttention", 900_000), ("linear1", "Linear", 300_000), ("norm1", "LayerNorm", 40_000))


def transformer() -> ReportData:
    """48 layers, of which the attention of number 7 takes three times as long; ms of a few ns' difference."""
    rows = [
        row(f"encoder.layers.{i}.{name}", (ns + 17 * i) * (3 if (i, name) == (7, "self_attn") else 1), type=kind,
            phase=phase)
        for i in range(48) for name, kind, ns in PARTS for phase in ("forward", "backward")
    ]  # fmt: skip
    rows += [row(None, 9_000_000, type=None, phase="optimizer", op="aten::_fused_adam_"), row("head", 500_000)]
    layers = [layer(path, kind) for path, kind in {r.path: r.type for r in rows if r.path}.items()]
    return report(rows, [layer("", "Model"), layer("encoder", "TransformerEncoder"), *layers])


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_the_first_screen_says_what_to_do(width: int, height: int) -> None:
    screen = plain_text(Report(transformer()).page(), width).splitlines()[:height]
    text = "\n".join(screen)
    assert "encoder.layers.[0–6,8–47].self_attn ×47 (MultiheadAttention)" in text.replace("\n", " ")
    assert re.search(r"▶ \S*\[0\S*47\]\.self_attn ×47 +84\.6", text)  # 47 x 1.8 ms
    assert re.search(r"…?\S*layers\.7\.self_attn +5\.4", text), "the slow one stands alone"  # 3 x 1.8 ms
    assert re.search(r"\S*\[0–47\]\.linear1 ×48", text) and "(optimizer)" in text and "total" in text
    assert all(len(line) <= width for line in screen)


def test_unfolded_it_is_a_list_of_equals() -> None:
    assert "×" not in plain_text(Report(transformer()).page(fold=False), 120).split("Layers by")[1]


def test_a_terminal_that_knows_only_ascii() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    console = Console(file=file, width=120)
    console.print(Report(transformer()).page())
    console.print(Report(transformer()).explain("encoder.layers.3.self_attn").__rich__())
    file.flush()
    assert "encoder.layers.[0-47].linear1 x48" in raw.getvalue().decode("ascii")


def test_a_filter_is_told() -> None:
    assert "Layers by headroom, matching 'norm', per step" in plain_text(Report(transformer()).page(filter="norm"), 120)


@pytest.mark.parametrize(
    ("label", "width", "short"),
    [
        ("encoder.layers.[0–47].self_attn ×48", 40, "encoder.layers.[0–47].self_attn ×48"),
        ("encoder.layers.[0–47].self_attn ×48", 24, "…[0–47].self_attn ×48"),
        ("encoder.layers.[0–6,8–47].self_attn ×47", 24, "…[0…47].self_attn ×47"),
        ("encoder.layers.[0,…,46–47].self_attn ×20", 22, "…[0…47].self_attn ×20"),
        ("encoder.layers.[0–11] ×12", 16, "…[0–11] ×12"),
    ],
)
def test_short_patterns_keep_numbers_and_count(label: str, width: int, short: str) -> None:
    assert shorten(label, width) == short


@pytest.mark.parametrize(
    "path", ["encoder.layers.3.self_attn", "encoder.layers.3", "encoder.layers.[0-5].self_attn", "(optimizer)"]
)
def test_the_page_of_one_layer(path: str) -> None:
    explained = Report(transformer()).explain(path)
    for width in (40, 80, 120, 200):
        text = plain_text(explained.__rich__(), width)
        assert max(map(len, text.splitlines())) <= width
        assert "None" not in text and "nan" not in text
    assert str(explained)
    assert html(explained.__rich__()).startswith("<pre")


def test_the_accounting_is_told_in_order() -> None:
    text = plain_text(Report(transformer()).explain("encoder.layers.3.self_attn").__rich__(), 100)
    # 900,000 + 51 ns each way: floor half of it, a FLOP per ns, 2 x 450 µs of headroom.
    told = " ".join(text.split())
    for part in (
        "encoder.layers.3.self_attn MultiheadAttention calls 1 per step",
        "time 1.8 ms per step",
        "headroom 900 µs per step 50% of what the roof allows",
        "aten::mm float32 1 call per step FLOPs 900 k 2·m·n·k FLOPs; reads both matrices, writes m×n.",
        "bytes 100 B read and 20 B written at least, at most 150 B in all",
        "ceiling float32 matrix 1 TFLOP/s, given; paper",
        "floor 450 µs",
        "took 900 µs 1 GFLOP/s",
        "bound compute under its compute roof (50%): 7500 FLOPs per byte, and the ridge",
        "kernel 900 µs 1 × gemm_forward",
        "found by the layer's scope around its launch",
    ):
        assert part in told, part
    assert text.index("\nforward") < text.index("\nbackward")


def test_hostile_names_reach_no_terminal() -> None:
    evil = "a\x1b[31m\x9b2J[bold]x[/]\u202egnp\x07\n\u2028\x00"
    rows = [row(evil, 10, op=evil, type=evil, precision=evil, unknown=evil, attribution=evil), row(f"{evil}.b", 5)]
    text = plain_text(Report(report(rows)).explain(evil).__rich__(), 80)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028]", text)
    assert "[bold]x[/]" in text

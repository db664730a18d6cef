"""Folding, depth and filter lose nothing: the laws on made-up reports, and worked examples."""

from __future__ import annotations

import laws
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import layer, report, row

from torchroof.errors import OptionError
from torchroof.report.lenses import Lines, lines
from torchroof.report.model import ReportData, Unattributed
from torchroof.report.summary import headline

PARTS = st.sampled_from(["encoder", "layer", "0", "1", "2", "3", "fc1", "[0–3]", "Mlp_1", "Linear_2", ""])
PATHS = st.none() | st.just("") | st.lists(PARTS, min_size=1, max_size=4).map(".".join)
KNOWN = st.none() | st.integers(0, 99)


@st.composite
def reports(draw: st.DrawFn) -> ReportData:
    """Rows of any paths, with unknown work here and there; layers for some of them."""
    identities = st.tuples(PATHS, st.sampled_from(["forward", "backward", "optimizer"]), st.sampled_from("ab"))
    rows = []
    for path, phase, op in draw(st.lists(identities, max_size=12, unique=True)):
        ns, flops, floor = draw(st.integers(0, 50)), draw(KNOWN), draw(KNOWN)
        host = draw(st.integers(0, 9))
        headroom = None if floor is None else max(0, ns - floor) + host
        rows.append(
            row(path, ns, phase=phase, op=op, host_ns=host, flops=flops, flops_known_ns=0 if flops is None else ns,
                bytes_read=draw(KNOWN), floor_ns=floor, headroom_ns=headroom,
                type=draw(st.sampled_from(["Linear", "Mlp", None])))
        )  # fmt: skip
    layers = [layer(p, draw(st.sampled_from(["Linear", "Mlp"]))) for p in {r.path for r in rows} if p is not None]
    left = (Unattributed(reason="graph replay", kernels=1, kernel_ns=7, busy_ns=7, host_ns=1),)
    return report(rows, draw(st.permutations(layers))[: draw(st.integers(0, 12))], unattributed=left)


@settings(max_examples=150)
@given(reports(), st.integers(0, 4), st.sampled_from(["layer", "fc1$", "Linear", "^a$", "[0-9]"]))
def test_no_reading_loses_anything(data: ReportData, depth: int, pattern: str) -> None:
    whole = lines(data)
    for options in ({"fold": True}, {"depth": depth}, {"depth": depth, "fold": True, "filter": "1|fc", "top": 2}):
        assert_same_total(lines(data, **options), whole)
    assert_same_total(lines(data, filter=pattern, fold=True), whole)


def assert_same_total(read: Lines, whole: Lines) -> None:
    shown = [*read.lines, *([read.rest] if read.rest else [])]
    for name in (*laws.ADDITIVE, "flops_known_ns", "bytes_known_ns", "floor_known_ns"):
        assert sum(getattr(line, name) for line in shown) == getattr(whole.total, name) == getattr(read.total, name)
    for name in ("flops", "bytes", "floor_ns", "headroom_ns"):
        known = [getattr(line, name) for line in shown if getattr(line, name) is not None]
        assert (sum(known) if known else None) == getattr(whole.total, name) == getattr(read.total, name)


@settings(max_examples=100)
@given(reports(), st.integers(0, 3))
def test_a_parent_is_the_sum_of_its_children_and_its_own(data: ReportData, depth: int) -> None:
    deeper = lines(data, depth=depth + 1).lines
    for parent in lines(data, depth=depth).lines:
        if parent.path is None:
            continue
        inside = [c for c in deeper if c.path is not None and ancestor(c.path, depth) == parent.path]
        for name in laws.ADDITIVE:
            assert sum(getattr(line, name) for line in inside) == getattr(parent, name)


def ancestor(path: str, depth: int) -> str:
    return ".".join(path.split(".")[:depth])


@settings(max_examples=100)
@given(reports())
def test_every_layer_is_in_one_line(data: ReportData) -> None:
    folded = lines(data, fold=True).lines
    assert sum(line.members for line in folded) == len(lines(data).lines)
    assert len({line.label for line in folded}) == len(folded)


ROWS = (
    row("encoder.0.attn.q", 100),
    row("encoder.0.attn", 10, type="Attention", op="aten::bmm"),
    row("encoder.0.fc", 50),
    row("encoder", 1, type="Encoder"),
    row("head", 30),
    row(None, 20, type=None, phase="optimizer", op="aten::_fused_adam_"),
)
LAYERS = (
    layer("", "Model"),
    layer("encoder", "Encoder"),
    layer("encoder.0", "Block"),
    *map(layer, ("encoder.0.attn",)),
)


def shown(**options: object) -> dict[str, int]:
    read = lines(report(ROWS, LAYERS), **options)  # type: ignore[arg-type]
    return {line.label: line.kernel_ns for line in (*read.lines, *([read.rest] if read.rest else []))}


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        (0, {"(root)": 191, "(optimizer)": 20}),  # 100 + 10 + 50 + 1 + 30
        (1, {"encoder": 161, "head": 30, "(optimizer)": 20}),
        (2, {"encoder.0": 160, "head": 30, "(optimizer)": 20, "encoder": 1}),
        (3, {"encoder.0.attn": 110, "encoder.0.fc": 50, "head": 30, "(optimizer)": 20, "encoder": 1}),
        (9, {"encoder.0.attn.q": 100, "encoder.0.fc": 50, "head": 30, "(optimizer)": 20, "encoder.0.attn": 10,
             "encoder": 1}),
    ],
)  # fmt: skip
def test_depth(depth: int, expected: dict[str, int]) -> None:
    assert shown(depth=depth) == expected


def test_a_container_has_the_class_and_calls_of_its_own_module() -> None:
    block = next(x for x in lines(report(ROWS, LAYERS), depth=2).lines if x.label == "encoder.0")
    assert (block.type, block.calls, block.path) == ("Block", 1, "encoder.0")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("attn", {"encoder.0.attn.q": 100, "encoder.0.attn": 10, "(4 more)": 101}),  # by path
        ("^Attention$", {"encoder.0.attn": 10, "(5 more)": 201}),  # by class
        ("adam", {"(optimizer)": 20, "(5 more)": 191}),  # by op
        ("^head$", {"head": 30, "(5 more)": 181}),
        ("HEAD", {"(6 more)": 211}),  # with case
        ("(?i)HEAD", {"head": 30, "(5 more)": 181}),
    ],
)
def test_filter(pattern: str, expected: dict[str, int]) -> None:
    assert shown(filter=pattern) == expected


def test_filter_before_fold_and_top() -> None:
    rows = [row(f"layer.{i}.fc", 100 + (i == 3)) for i in range(10)]
    read = lines(report(rows), filter=r"layer\.[0-4]\.", fold=True, top=1)
    # Five match, 501 ns; the five others make one line in the rest, 500 ns.
    assert [(x.label, x.kernel_ns) for x in read.lines] == [("layer.[0–4].fc ×5", 501)]
    assert read.rest is not None and (read.rest.label, read.rest.kernel_ns) == ("(1 more)", 500)
    assert read.filter == r"layer\.[0-4]\."


def test_filter_of_kernels_and_ops() -> None:
    by_kernel = lines(report(ROWS), by="kernel", filter="^gemm_opt")
    assert [line.label for line in by_kernel.lines] == ["gemm_optimizer"]
    by_op = lines(report(ROWS), by="op", filter="^head$")
    assert [line.label for line in by_op.lines] == ["aten::mm"], "an op that the layer ran, whole"


@pytest.mark.parametrize(
    "options", [{"filter": "("}, {"filter": "a{99999999999}"}, {"depth": -1}, {"depth": 1, "by": "op"}]
)
def test_what_makes_no_sense_is_refused_in_one_line(options: dict[str, object]) -> None:
    with pytest.raises(OptionError) as refusal:
        lines(report(ROWS), **options)  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)


def test_the_worst_of_the_headline_is_told_of_equal_layers_together() -> None:
    rows = [row(f"layers.{i}.fc", 1000) for i in range(48)]
    # 48 x 500 ns of headroom are half of the step.
    worst = headline(report(rows)).worst
    assert worst is not None and worst.startswith("layers.[0–47].fc ×48 (Linear) could give back up to 24 µs")
    assert "(50%)" in worst

"""The layers as a tree: parents are the sums of what is in them, folded or not, and every row is in it once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import layer, report, row, uneven

from torchroof.report.board import FIGURES, board, details
from torchroof.report.lenses import lines
from torchroof.report.model import ReportData, Row
from torchroof.report.tree import Node, tree

ADDITIVE = (
    "kernels", "kernel_ns", "busy_ns", "host_ns", "flops", "bytes", "floor_ns", "headroom_least_ns", "headroom_most_ns",
)  # fmt: skip

PARTS = st.sampled_from(["a", "b", "0", "1", "2", "3", "layer", "x_1"])
PATHS = st.lists(PARTS, max_size=4).map(".".join)
ROWS = st.lists(
    st.tuples(st.none() | PATHS, st.integers(1, 10**6), st.sampled_from(["forward", "backward", "optimizer"])),
    min_size=1,
    max_size=30,
)


def made(found: list[tuple[str | None, int, str]]) -> ReportData:
    rows: dict[tuple[str | None, str], Row] = {}
    for path, ns, phase in found:
        rows[path, phase] = row(path, ns, phase=phase)
    paths = sorted({r.path for r in rows.values() if r.path is not None})
    return report(list(rows.values()), [layer(path) for path in paths])


def children(nodes: tuple[Node, ...], at: int) -> list[Node]:
    return [node for node in nodes if node.parent == at]


@given(ROWS, st.booleans())
def test_a_parent_is_the_sum_of_its_children_and_its_own(found: list[tuple[str | None, int, str]], fold: bool) -> None:
    nodes = tree(made(found), fold=fold)
    for at, node in enumerate(nodes):
        inner = children(nodes, at)
        if not inner:
            continue
        parts = [child.total for child in inner] + ([node.own] if node.own else [])
        for name in ADDITIVE:
            assert getattr(node.total, name) == sum(getattr(part, name) or 0 for part in parts), (node.label, name)


@given(ROWS, st.booleans())
def test_the_tops_of_the_tree_are_all_there_is(found: list[tuple[str | None, int, str]], fold: bool) -> None:
    data = made(found)
    total, tops = lines(data).total, [node for node in tree(data, fold=fold) if node.parent is None]
    for name in ADDITIVE:
        assert getattr(total, name) == sum(getattr(node.total, name) or 0 for node in tops), name


@given(ROWS, st.booleans())
def test_phases_divide_a_node_and_every_layer_is_in_one_leaf(
    found: list[tuple[str | None, int, str]], fold: bool
) -> None:
    data = made(found)
    nodes = tree(data, fold=fold)
    shown: list[str] = []
    for at, node in enumerate(nodes):
        assert node.parent is None or node.parent < at
        assert sum(line.kernel_ns for line in node.phases.values()) == node.total.kernel_ns
        if node.own or not children(nodes, at):
            shown += node.stands_for
    assert sorted(shown) == sorted({r.path for r in data.rows if r.path is not None})


def test_a_list_of_modules_gives_way_to_what_is_in_it_and_equal_ones_are_one() -> None:
    """Four blocks of an up of 4,000 ns and a down of 3,000: 28,000 ns in one node, 16,000 in the ups."""
    rows = [row(f"m.layers.{i}.{name}", ns) for i in range(4) for name, ns in (("up", 4000), ("down", 3000))]
    layers = [layer("m", "Model"), *(layer(f"m.layers.{i}", "Block") for i in range(4))]
    data = report(rows, [*layers, *(layer(str(r.path)) for r in rows)])
    nodes = tree(data)
    assert [(n.label, len(n.members), n.total.kernel_ns) for n in nodes] == [
        ("m", 0, 28_000), ("layers.[0–3]", 4, 28_000), ("up", 4, 16_000), ("down", 4, 12_000),
    ]  # fmt: skip
    assert nodes[2].path == "m.layers.[0–3].up" and nodes[2].members[3] == "m.layers.3.up"
    plain = tree(data, fold=False)
    # The list itself has no class and no ops, but holds four things: it stays.
    assert [n.label for n in plain[:4]] == ["m", "layers", "0", "up"]


def test_below_equal_blocks_a_slow_one_stays_with_its_equals() -> None:
    """The flat table tells an outlier apart; in a tree it is one of its container's four, so that the sums stay."""
    rows = [row(f"b.{i}.fc", 4000 if i else 4600) for i in range(4)]
    data = report(rows, [*(layer(f"b.{i}", "Block") for i in range(4)), *(layer(f"b.{i}.fc") for i in range(4))])
    assert [(n.label, n.total.kernel_ns) for n in tree(data)] == [("b.[0–3]", 16_600), ("fc", 16_600)]


def test_flags_are_those_of_the_table() -> None:
    rows = [row("a", 10**6), row("b", 1000), row(None, 2 * 10**6, phase="optimizer", type=None)]
    flagged = {node.label: node.why for node in tree(report(rows)) if node.flagged}
    shown = {line.label: line.why for line in lines(report(rows), fold=True).lines if line.flagged}
    assert flagged == shown and "(optimizer)" in flagged


def test_the_board_has_the_figures_in_the_order_that_it_names() -> None:
    data = report([row("a", 4000, host_ns=7)])
    shown = board(data)
    (entry,) = shown.tree
    values = dict(zip(FIGURES, (getattr(entry.total, name) for name in FIGURES), strict=True))
    line = lines(data).lines[0]
    assert values == {name: getattr(line, name) for name in FIGURES}
    assert shown.figures == FIGURES and shown.divisor == 1
    assert details(data).plain is None and set(details(data).parts) == {"a"}


def test_a_kernel_has_the_work_of_an_op_that_launched_no_other() -> None:
    from msgspec.structs import replace

    data = report([row("a", 4000), row("b", 3000)])
    other = replace(data.kernels[1], name="second")
    placed = details(replace(data, kernels=(data.kernels[0], data.kernels[1], other))).placed
    # b's op launched two kernels, so neither has its work.
    assert [(entry.label, entry.total.kernel_ns) for entry in placed] == [("gemm_forward", 4000)]


@pytest.mark.parametrize("rows", [[], [row(None, 5, phase="optimizer", type=None)]])
def test_no_layer_no_tree(rows: list[Row]) -> None:
    assert [node.path for node in tree(report(rows))] == [None] * len(rows)


@given(ROWS, st.booleans())
def test_flags_are_by_what_the_nodes_ran_themselves(found: list[tuple[str | None, int, str]], fold: bool) -> None:
    data = made(found)
    nodes = tree(data, fold=fold)
    ran = [node.ran for node in nodes if node.ran is not None]
    for name in ADDITIVE:
        assert sum(getattr(line, name) or 0 for line in ran) == getattr(lines(data).total, name), name
    assert [(n.flagged, n.why) for n in nodes if n.ran] == [(line.flagged, line.why) for line in ran]
    assert not any(node.flagged for node in nodes if node.ran is None)
    flags = [line.headroom_least_ns for line in ran if line.flagged]
    others = [line.headroom_least_ns for line in ran if not line.flagged]
    if 2 * sum(flags) < lines(data).total.headroom_least_ns:
        assert 100 * max(others) < 3 * data.totals.step_ns
    if not fold:
        assert {n.path for n in nodes if n.flagged} == {x.path for x in lines(data).lines if x.flagged}


def test_the_page_names_the_worst_of_its_own_lines() -> None:
    data = uneven()
    told = board(data).headline
    nodes = [node for node in tree(data) if node.flagged and node.ran]
    worst = max(nodes, key=lambda node: node.ran.headroom_least_ns if node.ran else 0)
    assert worst.ran is not None and told.worst_label == worst.ran.label == "blocks.[0–7].up ×8"
    assert told.worst is not None and told.worst.startswith(told.worst_label)
    assert "blocks.[0–7].up ×8" not in {line.label for line in lines(data, fold=True).lines}

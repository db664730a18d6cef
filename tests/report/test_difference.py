"""What changed between two reports: by hand, and the laws of a difference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from reading import layer, report, row

from torchroof.errors import OptionError
from torchroof.report.board import comparison
from torchroof.report.difference import Change, difference
from torchroof.report.model import ReportData
from torchroof.report.tree import tree
from torchroof.reports import Report

TIMES = st.dictionaries(st.sampled_from(["a", "b", "c.d", "c.e", ""]), st.integers(1, 10**6))


def made(times: dict[str, int], steps: int = 1) -> ReportData:
    data = report([row(path, ns) for path, ns in times.items()])
    return replace(data, steps=steps)


def by_label(changes: tuple[Change, ...]) -> dict[str, Change]:
    return {change.label: change for change in changes}


def test_by_hand() -> None:
    """Before: a 4,000 and b 1,000 ns in one step. After: a 6,000 and c 500 in two: per step a has 3,000, c 250."""
    found = difference(made({"a": 6000, "c": 500}, steps=2), made({"a": 4000, "b": 1000}))
    changes = by_label(found.lines)
    assert {label: (c.status, c.kernel_ns) for label, c in changes.items()} == {
        "a": ("both", -1000.0), "b": ("removed", -1000.0), "c": ("added", 250.0),
    }  # fmt: skip
    # Half of each time is floor: headroom changed by half as much.
    assert changes["a"].headroom_least_ns == -500.0
    assert (found.before_step_ns, found.after_step_ns) == (5000.0, 3250.0)
    assert found.causes["compute"] == -1750.0
    assert [c.label for c in found.lines] == ["a", "b", "c"]  # the largest changes first


@given(TIMES, TIMES, st.integers(1, 5), st.integers(1, 5))
def test_the_changes_sum_to_the_change_of_the_step(
    before: dict[str, int], after: dict[str, int], steps: int, later: int
) -> None:
    found = difference(made(after, later), made(before, steps))
    assert sum(c.kernel_ns for c in found.lines) == pytest.approx(found.after_step_ns - found.before_step_ns)
    assert sum(found.causes.values()) == pytest.approx(found.after_step_ns - found.before_step_ns)
    backwards = difference(made(before, steps), made(after, later))
    assert {c.label: -c.kernel_ns for c in found.lines} == {c.label: c.kernel_ns for c in backwards.lines}


@given(TIMES)
def test_nothing_changes_against_itself(times: dict[str, int]) -> None:
    data = made(times)
    assert all(c.status == "both" and c.kernel_ns == c.headroom_least_ns == 0 for c in difference(data, data).lines)
    shown = comparison(data, data)
    for node, pair in zip(tree(data), shown.tree, strict=True):
        assert pair.total is not None and pair.total.kernel_ns == node.total.kernel_ns
    assert shown.removed == () and shown.removed_ops == ()


def test_what_only_one_has_is_laid_beside_nothing() -> None:
    shown = comparison(made({"a": 5}), made({"b": 7}))
    assert [pair.total for pair in shown.tree] == [None]
    assert [entry.path for entry in shown.removed] == ["b"]


def test_containers_are_compared_by_all_within_them() -> None:
    """c was 10 + 20 and is 15 + 40."""
    now = report([row("c.d", 15), row("c.e", 40)], [layer("c", "Block"), layer("c.d"), layer("c.e")])
    shown = comparison(now, report([row("c.d", 10), row("c.e", 20)]))
    assert [pair.total.kernel_ns for pair in shown.tree if pair.total] == [30, 10, 20]


def test_through_the_report() -> None:
    before, after = Report(made({"a": 4000})), Report(made({"a": 3000}))
    (change,) = after.difference(before).lines
    assert change.kernel_ns == -1000.0
    assert by_label(after.difference(before, by="op").lines)["aten::mm"].kernel_ns == -1000.0
    with pytest.raises(OptionError):
        after.difference(before, by="moon")

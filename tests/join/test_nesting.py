"""Nesting: a random forest, flattened to spans, comes back."""

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from torchroof.join import nesting
from torchroof.join.columns import group
from torchroof.join.nesting import SLACK_NS, innermost, nest
from torchroof.trace.table import NONE

trees = st.recursive(st.just([]), lambda children: st.lists(children, max_size=4), max_leaves=25)


def _flatten(forest, at, depth, parent, rows):
    """Lay a forest out in time from `at`; each node is longer than its children together."""
    for children in forest:
        me = len(rows)
        rows.append([at, None, parent])
        end = _flatten(children, at + 1, depth + 1, me, rows)
        rows[me][1] = end + 1
        at = end + 2
    return at


def _columns(rows, thread=0):
    order = sorted(range(len(rows)), key=lambda i: (rows[i][0], -rows[i][1]))
    start = np.array([rows[i][0] for i in order], dtype=np.int64)
    end = np.array([rows[i][1] for i in order], dtype=np.int64)
    place = {old: new for new, old in enumerate(order)}
    parents = [NONE if rows[i][2] is None else place[rows[i][2]] for i in order]
    return start, end, np.full(len(rows), thread, dtype=np.int32), parents


@given(st.lists(trees, max_size=4))
def test_a_forest_comes_back(forest):
    rows = []
    _flatten(forest, 0, 0, None, rows)
    start, end, thread, parents = _columns(rows)
    assert nest(start, end, thread).tolist() == parents


@given(st.lists(trees, min_size=1, max_size=3), st.lists(st.integers(-2, 80), min_size=1, max_size=20))
def test_the_innermost_span_is_the_deepest_that_holds_the_moment(forest, moments):
    rows = []
    _flatten(forest, 0, 0, None, rows)
    start, end, thread, _ = _columns(rows)
    parent = nest(start, end, thread)
    at = np.array(moments, dtype=np.int64)
    found = innermost(start, end, thread, parent, at, np.zeros(len(at), dtype=np.int32))
    for moment, span in zip(moments, found.tolist(), strict=True):
        holding = [i for i in range(len(start)) if start[i] <= moment <= end[i]]
        expected = max(holding, key=lambda i: (start[i], -end[i]), default=NONE)
        assert span == expected


def test_threads_do_not_mix():
    start, end = np.array([0, 10, 0, 1]), np.array([100, 20, 50, 2])
    thread = np.array([0, 0, 1, 1], dtype=np.int32)
    parent = nest(start, end, thread)
    assert parent.tolist() == [NONE, 0, NONE, 2]
    at, on = np.array([15, 15, 60, 1]), np.array([0, 1, 1, 2], dtype=np.int32)
    assert innermost(start, end, thread, parent, at, on).tolist() == [1, 2, NONE, NONE]


def test_a_child_that_ends_a_rounding_later_is_still_a_child():
    start, end = np.array([0, 5]), np.array([10, 10 + SLACK_NS])
    assert nest(start, end, np.zeros(2, dtype=np.int32)).tolist() == [NONE, 0]


def test_a_span_that_outlasts_its_neighbour_is_not_its_child():
    start, end = np.array([0, 5]), np.array([10, 11 + SLACK_NS])
    assert nest(start, end, np.zeros(2, dtype=np.int32)).tolist() == [NONE, NONE]


def test_in_whole_microseconds_a_span_without_length_at_its_parents_end_is_inside():
    # The op lasts from 5 to 6 µs; what it calls at 6 µs rounds to no length at all.
    start, end = np.array([5000, 6000]), np.array([6000, 6000])
    assert nest(start, end, np.zeros(2, dtype=np.int32)).tolist() == [NONE, 0]
    # The next op starts where the first one ends, and is no child of it.
    start, end = np.array([5000, 6000]), np.array([6000, 7000])
    assert nest(start, end, np.zeros(2, dtype=np.int32)).tolist() == [NONE, NONE]


@given(st.lists(st.tuples(st.integers(-2, 3), st.integers(0, 3), st.integers(0, 2)), max_size=30))
def test_grouping_by_columns_is_grouping_by_rows(rows):
    columns = [np.array([r[i] for r in rows], dtype=np.int64) for i in range(3)]
    distinct, number = group(*columns)
    assert [tuple(d) for d in distinct.tolist()] == sorted(set(rows))
    assert [tuple(distinct[n].tolist()) for n in number] == rows


def _by_a_stack(rows):
    """The parents of (thread, start, end) in sorted order, one by one: what has ended is taken off a stack."""
    parents, stack, current = [], [], None
    for i, (thread, begin, finish) in enumerate(rows):
        if thread != current:
            stack, current = [], thread
        while stack and (rows[stack[-1]][2] < begin or (rows[stack[-1]][2] == begin and finish > begin)):
            stack.pop()
        parents.append(next((at for at in reversed(stack) if rows[at][2] >= finish - SLACK_NS), NONE))
        stack.append(i)
    return parents


SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 10), st.integers(0, 8)), max_size=30)


@given(SPANS, st.sampled_from([1, 400, SLACK_NS, 3000]), st.sampled_from([1, 2, 40]))
def test_spans_of_any_kind_nest_as_a_stack_has_them(spans, scale, rounds):
    """Overlapping ones, those without length, those that start or end together; and with few looks at once."""
    rows = sorted((t, a * scale, (a + n) * scale) for t, a, n in spans)
    rows.sort(key=lambda row: (row[0], row[1], -row[2]))
    thread, start, end = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)) if rows else [[]] * 3
    with patch.object(nesting, "_ROUNDS", rounds):
        found = nest(*(np.asarray(c, dtype=np.int64) for c in (start, end)), np.asarray(thread, dtype=np.int32))
    assert found.tolist() == _by_a_stack(rows)


def test_deep_nests_are_followed_to_their_ends():
    """A chain of 5,000, and then as many spans side by side, all in one."""
    n = 5000
    start = np.concatenate(([0], np.arange(1, n + 1), 10**6 + 10 * np.arange(n)))
    end = np.concatenate(([10**8], 10**5 - np.arange(1, n + 1), 10**6 + 10 * np.arange(n) + 5))
    parents = nest(start, end, np.zeros(2 * n + 1, dtype=np.int32)).tolist()
    assert parents == [NONE, *range(n), *([0] * n)]

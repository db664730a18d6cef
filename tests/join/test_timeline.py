"""The division of a device's time against a witness that looks at every nanosecond."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from torchroof.join.timeline import COLLECTIVE, COMPUTE, COPY, Coverage, divide
from torchroof.trace.table import NONE

intervals = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 15), st.integers(0, 3), st.sampled_from((0, 1, 2))), max_size=12
)


def _columns(found):
    start = np.array([s for s, _, _, _ in found], dtype=np.int64)
    end = np.array([s + n for s, n, _, _ in found], dtype=np.int64)
    stream = np.array([x for _, _, x, _ in found], dtype=np.int64)
    return start, end, stream, np.array([c for _, _, _, c in found], dtype=np.int8)


def _owner_at(t, found):
    """Who owns [t, t + 1): the class decides, then the earlier start, then the lower stream."""
    running = [(c, s, x, i) for i, (s, n, x, c) in enumerate(found) if s <= t < s + n]
    return min(running)[3] if running else None


@given(intervals, st.integers(0, 20), st.integers(0, 50))
def test_every_nanosecond_has_the_owner_that_the_rule_says(found, low, length):
    high = low + length
    line = divide(*_columns(found), (low, high))
    expected = np.zeros(len(found), dtype=np.int64)
    idle = 0
    for t in range(low, high):
        owner = _owner_at(t, found)
        if owner is None:
            idle += 1
        else:
            expected[owner] += 1
    # Intervals of equal class, start and stream may swap; their sums may not.
    key = [(c, s, x) for s, _, x, c in found]
    for group in set(key):
        members = [i for i, k in enumerate(key) if k == group]
        assert line.share_ns[members].sum() == expected[members].sum()
    assert int((line.gap_end_ns - line.gap_start_ns).sum()) == idle
    assert int(line.share_ns.sum()) + idle == high - low


@given(intervals, st.integers(0, 20), st.integers(1, 50))
def test_a_gap_is_ended_by_work_that_starts_where_it_ends(found, low, length):
    high = low + length
    start, end, stream, kind = _columns(found)
    line = divide(start, end, stream, kind, (low, high))
    for finish, ender in zip(line.gap_end_ns, line.gap_ender, strict=True):
        if ender == NONE:
            assert finish == high
        else:
            assert start[ender] == finish < high


def test_copies_and_collectives_own_only_what_nothing_computes():
    #            0----------------20   compute
    #        -5-----5        18--------30   copy (5 before, 10 after)
    #  -10--------------------------------------40   collective
    found = [(10, 20, 0, COMPUTE), (5, 10, 1, COPY), (28, 12, 1, COPY), (0, 50, 2, COLLECTIVE)]
    line = divide(*_columns(found), (0, 50))
    # compute 10..30 = 20; copies 5..10 and 30..40 = 5 and 10; the collective has 0..5 and 40..50 = 15.
    assert line.share_ns.tolist() == [20, 5, 10, 15]
    assert len(line.gap_start_ns) == 0


def test_the_first_started_kernel_owns_what_both_run():
    found = [(0, 10, 7, COMPUTE), (2, 18, 0, COMPUTE), (3, 12, 1, COMPUTE)]
    assert divide(*_columns(found), (0, 20)).share_ns.tolist() == [10, 10, 0]


@given(intervals, st.integers(0, 60), st.integers(0, 60))
def test_coverage_counts_each_moment_once(found, a, b):
    start, end, _, _ = _columns(found)
    low, high = min(a, b), max(a, b)
    covered = sum(any(s <= t < s + n for s, n, _, _ in found) for t in range(low, high))
    assert Coverage.of(start, end).within(np.array([low]), np.array([high])).tolist() == [covered]

"""Collectives divided into waiting and moving: worked by hand, and by laws."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from torchroof.ranks.one import Intervals
from torchroof.ranks.waiting import split

SUM = (None, "AllReduce")


def intervals(*pairs: tuple[int, int]) -> Intervals:
    starts, ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Intervals(starts, ends)


def test_the_last_rank_to_come_waits_for_nobody() -> None:
    """Rank 0 comes at 100, rank 1 at 160, rank 2 at 130; all are done at 200: 60 + 30 of waiting, 3 x 40 of moving."""
    found = split([0, 1, 2], [{SUM: intervals((100, 200))}, {SUM: intervals((160, 200))}, {SUM: intervals((130, 200))}],
                  3, {})  # fmt: skip
    assert found.waiting_ns == [60, 0, 30]
    assert found.moving_ns == [40, 40, 40]
    assert found.waited_for_ns == [0, 90, 0]
    assert (found.collectives[0].waiting_ns, found.collectives[0].moving_ns) == (90, 120)
    assert not found.unsplit and not found.apart


def test_a_root_that_leaves_early_is_not_taken_for_the_last() -> None:
    """A broadcast: rank 0 sends from 100 to 120, rank 1 receives from 90 to 150. It waits 10, not 30."""
    found = split([0, 1], [{SUM: intervals((100, 120))}, {SUM: intervals((90, 150))}], 2, {})
    assert found.waiting_ns == [0, 10]


def test_clocks_that_cannot_agree_are_told() -> None:
    """No instant in common, so the shorter of 50 and 20 is what moving takes."""
    found = split([0, 1], [{SUM: intervals((0, 50))}, {SUM: intervals((1000, 1020))}], 2, {})
    assert (found.waiting_ns, found.moving_ns, found.apart) == ([30, 0], [20, 20], 1)
    assert found.waited_for_ns == [0, 30]


def test_what_cannot_be_matched_is_left_whole_and_says_why() -> None:
    one, two = intervals((0, 10)), intervals((0, 10), (20, 30))
    for kinds, world, groups, reason in (
        ([{SUM: one}, {SUM: one}], 8, {}, "2 of 8 ranks are here"),
        ([{SUM: one}, {}], None, {}, "one rank alone has it"),
        ([{SUM: one}, {SUM: two}], 2, {}, "the ranks have between 1 and 2 of it"),
    ):
        found = split([0, 1], kinds, world, groups)
        assert found.collectives[0].unsplit == reason
        assert found.collectives[0].waiting_ns is None
        assert found.waiting_ns == found.moving_ns == [0, 0]
        assert found.unsplit == {i for i, kind in enumerate(kinds) if kind}


def test_a_group_needs_its_own_ranks_only() -> None:
    key = ("tensor parallel", "allreduce")
    found = split([4, 5], [{key: intervals((0, 10))}, {key: intervals((5, 10))}], 8, {"tensor parallel": 2})
    assert found.waiting_ns == [5, 0]
    assert found.collectives[0].ranks == (4, 5)


starts = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5)), min_size=1, max_size=5)


@given(st.lists(starts, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_waiting_and_moving_are_all_there_is(made: list[list[tuple[int, int]]], order: Random) -> None:
    count = min(map(len, made))
    kinds = [{SUM: intervals(*((start, start + ns) for start, ns in sorted(one[:count])))} for one in made]
    found = split(list(range(len(kinds))), kinds, None, {})
    for i in range(len(kinds)):
        assert found.waiting_ns[i] >= 0 and found.moving_ns[i] >= 0
        assert found.waiting_ns[i] + found.moving_ns[i] == found.collective_ns[i]
    assert sum(found.waited_for_ns) == sum(found.waiting_ns)
    shuffled = list(range(len(kinds)))
    order.shuffle(shuffled)
    again = split(shuffled, [kinds[i] for i in shuffled], None, {})
    assert again.waiting_ns == [found.waiting_ns[i] for i in shuffled]


@given(st.integers(-(10**6), 10**6))
def test_where_zero_lies_does_not_matter(shift: int) -> None:
    kinds = [intervals((100, 200), (500, 600)), intervals((160, 210), (400, 590))]
    moved = [Intervals(k.start_ns + shift, k.end_ns + shift) for k in kinds]
    assert (
        split([0, 1], [{SUM: k} for k in kinds], 2, {}).waiting_ns
        == split([0, 1], [{SUM: k} for k in moved], 2, {}).waiting_ns
    )

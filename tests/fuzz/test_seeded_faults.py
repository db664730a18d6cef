"""A proof that proves nothing would pass with a fault in the join: each of these is seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from test_attribution import SEEDS, check, recorded

from torchroof.join import accumulation, attribute, autograd, launches, lineage
from torchroof.join.autograd import Links, Source
from torchroof.join.lineage import NameKind
from torchroof.trace.table import NONE, TraceTable

Patch = pytest.MonkeyPatch


def numbers_without_threads(patch: Patch) -> None:
    """Backward to forward by sequence number alone, whichever thread gave it out."""

    def nothing(*_: Any) -> tuple[dict[Any, Any], Any]:
        return {}, autograd._Threads({}, None)

    real = autograd._forward_ops

    class AnyThread(dict[Any, Any]):
        def get(self, key: Any, default: Any = None) -> Any:
            return {number: i for (number, _), i in self.items()}.get(key[0], default)

    patch.setattr(autograd, "_follow_flows", nothing)
    patch.setattr(autograd, "_forward_ops", lambda *a: AnyThread(real(*a)))
    patch.setattr(autograd, "_only_thread", lambda *a: 0)


def the_first_op_of_a_number(patch: Patch) -> None:
    """In-place ops and composites carry the number of the node that the next op makes."""
    real = autograd._forward_ops

    def first(nest: Any, sequence: np.ndarray, forward_thread: np.ndarray) -> Any:
        found: dict[Any, int] = {}
        candidates = np.flatnonzero((sequence >= 0) & (forward_thread <= 0) & (nest.name_kind < NameKind.AUTOGRAD_NODE))
        for i in candidates.tolist():
            found.setdefault((int(sequence[i]), int(nest.thread[i])), i)
        assert found.keys() == real(nest, sequence, forward_thread).keys()
        return found

    without_flows(patch)
    patch.setattr(autograd, "_forward_ops", first)


def without_flows(patch: Patch) -> None:
    real = autograd._follow_flows
    patch.setattr(autograd, "_follow_flows", lambda *a: ({}, real(*a)[1]))


def flows_swapped(patch: Patch) -> None:
    """Each flow leads to where the next one should."""
    real = autograd._follow_flows

    def swapped(*a: Any) -> Any:
        targets, threads = real(*a)
        keys, values = list(targets), list(targets.values())
        return dict(zip(keys, values[1:] + values[:1], strict=True)), threads

    patch.setattr(autograd, "_follow_flows", swapped)


def intervals_of_outer_calls(patch: Patch) -> None:
    """The outermost layer call that spans a number, and not the innermost."""
    real = autograd.Intervals.__init__

    def outermost(self: Any, table: TraceTable, facts: Any) -> None:
        columns = []
        for c in facts.calls:
            order = range(len(c.layer))[::-1]
            part = {name: [getattr(c, name)[i] for i in order] for name in ("layer", "before", "after")}
            columns.append(structs.replace(c, **part))
        real(self, table, structs.replace(facts, calls=tuple(columns)))

    patch.setattr(autograd.Intervals, "__init__", outermost)


def no_cut_rule(patch: Patch) -> None:
    patch.setattr(attribute, "find_cut_ops", lambda *a: frozenset())


def recomputation_in_the_node_around_it(patch: Patch) -> None:
    patch.setattr(lineage, "INSIDE_BACKWARD", ())


def no_sums_of_gradients(patch: Patch) -> None:
    patch.setattr(lineage, "GRADIENT_SUMS", frozenset())


def gradients_to_the_node_before(patch: Patch) -> None:
    """AccumulateGrad glued to the node that ran before it, whoever owns the parameter."""
    real = accumulation.link_accumulation

    def glued(table: TraceTable, nest: Any, layers: Any, links: Links, facts: Any) -> Links:
        class Anyone(dict[Any, Any]):
            def get(self, key: Any, default: Any = None) -> Any:
                return range(10_000)

        patch.setattr(accumulation, "_owners_of_shapes", lambda facts: Anyone())
        return real(table, nest, layers, links, facts)

    patch.setattr(attribute, "link_accumulation", glued)


def gradients_by_shape_alone(patch: Patch) -> None:
    def nobody(table: Any, nest: Any, layers: Any, links: Links, facts: Any) -> Links:
        links.source[nest.name_kind == NameKind.ACCUMULATE_GRAD] = Source.PARAMETER_UNKNOWN
        return links

    patch.setattr(attribute, "link_accumulation", nobody)


def no_second_order(patch: Patch) -> None:
    patch.setattr(autograd, "_HIGHEST_ORDER", 0)


def kernels_by_their_own_time(patch: Patch) -> None:
    """The op is the one that was open when the kernel ran."""

    def at_kernel(table: TraceTable, nest: Any, launch: Any) -> Any:
        known = np.flatnonzero(launch != NONE)
        anchor = np.full(len(launch), NONE, dtype=np.int32)
        thread = table.host.thread[launch[known]]
        anchor[known] = launches.innermost(
            nest.start_ns, nest.end_ns, nest.thread, nest.parent, table.device.start_ns[known], thread
        )
        return anchor

    patch.setattr(attribute, "anchors_of", at_kernel)


def one_kernel_for_each_launch_thread(patch: Patch) -> None:
    """Launches looked for on the first thread only."""

    def on_first(table: TraceTable, nest: Any, launch: Any) -> Any:
        known = np.flatnonzero(launch != NONE)
        anchor = np.full(len(launch), NONE, dtype=np.int32)
        spans = launch[known]
        anchor[known] = launches.innermost(
            nest.start_ns, nest.end_ns, nest.thread, nest.parent, table.host.start_ns[spans],
            np.zeros(len(spans), dtype=np.int32),
        )  # fmt: skip
        return anchor

    patch.setattr(attribute, "anchors_of", on_first)


FAULTS = [
    numbers_without_threads,
    the_first_op_of_a_number,
    flows_swapped,
    intervals_of_outer_calls,
    no_cut_rule,
    recomputation_in_the_node_around_it,
    no_sums_of_gradients,
    gradients_to_the_node_before,
    gradients_by_shape_alone,
    no_second_order,
    kernels_by_their_own_time,
    one_kernel_for_each_launch_thread,
]


def harmless(patch: Patch) -> None:
    """Flows are the first source, but numbers with their threads tell the same."""
    without_flows(patch)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_a_fault_in_the_join_is_seen(fault: Callable[[Patch], None], monkeypatch: Patch) -> None:
    fault(monkeypatch)
    assert any(check(recorded(seed))[1] for seed in range(SEEDS))


def test_numbers_tell_what_flows_tell(monkeypatch: Patch) -> None:
    harmless(monkeypatch)
    assert not [seed for seed in range(0, SEEDS, 4) if check(recorded(seed))[1]]

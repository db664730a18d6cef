"""What a placement means: the bound of a row, the words for it, and which layers to look at first."""

from __future__ import annotations

from collections.abc import Sequence

from torchroof import units

LATENCY_FACTOR = 2.0
"""Kernels shorter than so many launch floors are bound by latency, whatever their intensity."""
IDLE_UNITS_EFFICIENCY = 0.5
"""Under this efficiency a kernel with fewer blocks than multiprocessors is bound by latency."""
BOUND_EFFICIENCY = 0.6
"""From here on words may say that a row is bound by its roof."""
FAR_EFFICIENCY = 0.25
"""Under this a row is far under its roof."""
FLAGGED_SHARE = 0.5
"""The part of all headroom that the flagged layers hold."""
FLAGGED_LEAST = 0.03
"""The part of step time below which no layer is flagged."""


def bound(
    *,
    modelled: bool,
    communication: bool = False,
    side: str | None = None,
    level: str | None = None,
    mean_kernel_ns: float | None = None,
    launch_ns: float | None = None,
    blocks: int | None = None,
    multiprocessors: int | None = None,
    efficiency: float | None = None,
) -> str | None:
    """The first that holds of unmodelled, communication, latency, cache, compute and memory.

    ``side`` and ``level`` are the placement's; ``launch_ns`` the least time of a kernel on the device;
    ``blocks`` the mean number of thread blocks where the trace tells it. None for work without a roof.
    """
    if not modelled:
        return "unmodelled"
    if communication:
        return "communication"
    if _short(mean_kernel_ns, launch_ns) or (side is not None and _small_grid(blocks, multiprocessors, efficiency)):
        return "latency"
    if side == "memory" and level not in (None, "dram"):
        return "cache"
    return side


def _short(mean_kernel_ns: float | None, launch_ns: float | None) -> bool:
    if mean_kernel_ns is None or launch_ns is None:
        return False
    return mean_kernel_ns < LATENCY_FACTOR * launch_ns


def _small_grid(blocks: int | None, multiprocessors: int | None, efficiency: float | None) -> bool:
    if blocks is None or multiprocessors is None or efficiency is None:
        return False
    return blocks < multiprocessors and efficiency < IDLE_UNITS_EFFICIENCY


_FIXED_WORDS = {
    None: "no roof to judge it by",
    "unmodelled": "no work model",
    "communication": "communication",
    "latency": "bound by latency: kernels too short or too small to fill the device",
}


def words(bound: str | None, efficiency: float | None, *, host_ns: int = 0, busy_ns: int = 0) -> str:
    """A row's verdict in words; a row that waits for the host longer than it runs says that first."""
    said = _judgement(bound, efficiency)
    return f"waits for the host longer than it runs; {said}" if host_ns > busy_ns else said


def _judgement(bound: str | None, efficiency: float | None) -> str:
    if efficiency is not None and efficiency > 1:
        return f"a suspicion: {_percent(efficiency)} of its roof (stale ceiling, cache, or wrong model)"
    if bound in _FIXED_WORDS:
        return _FIXED_WORDS[bound]
    if efficiency is None:
        return f"on the {bound} side, efficiency unknown"
    if efficiency >= BOUND_EFFICIENCY:
        return f"{bound}-bound ({_percent(efficiency)} of its roof)"
    return f"{'far ' if efficiency < FAR_EFFICIENCY else ''}under its {bound} roof ({_percent(efficiency)})"


def _percent(fraction: float) -> str:
    """As in a table, but one decimal where none would hide that 100 % is passed."""
    return f"{100 * fraction:.1f}%" if 1 < fraction < 1.01 else units.percent(fraction)


def flagged(headrooms: Sequence[int], step_ns: int) -> set[int]:
    """Positions of the bottlenecks: the fewest rows that hold half of all headroom, each 3 % of the step.

    ``headrooms`` in ns, ``step_ns`` the time that they are a part of. Equal ones are taken in order.
    """
    total = sum(headrooms)
    chosen: set[int] = set()
    held = 0
    for position in sorted(range(len(headrooms)), key=lambda i: (-headrooms[i], i)):
        if held >= FLAGGED_SHARE * total or headrooms[position] < FLAGGED_LEAST * step_ns:
            break
        chosen.add(position)
        held += headrooms[position]
    return chosen

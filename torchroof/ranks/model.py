"""The report of several ranks as data: plain, frozen values, the same in memory and as JSON.

Unknown is None, never 0. Times are nanoseconds; a rank's own figures are sums over its counted steps, spreads
are means per step and device, so that ranks with different numbers of steps can be compared.
"""

from __future__ import annotations

import msgspec

SCHEMA = "torchroof.ranks/1"


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """One file. ``fault`` is why it could not be read: then it has no figures."""

    rank: int
    source: str
    fault: str | None = None
    cut: bool = False
    """The file ends before its trace does; its whole part is counted."""
    steps: int = 0
    parts: int = 1
    """Steps x devices: what sums are divided by for a mean per step and device."""
    step_ns: int = 0
    kernels: int | None = None
    kernel_ns: int | None = None
    """Of the whole file; None where the device's activity is lost."""
    busy_ns: int = 0
    host_ns: int = 0
    collective_ns: int | None = None
    """Kernel time of communication, of the whole file."""
    waiting_ns: int | None = None
    moving_ns: int | None = None
    """The two parts of ``collective_ns``; None where not every collective could be split."""
    waited_for_ns: int | None = None
    """Time that other ranks spent waiting for this one, the last to come to a collective; None likewise."""


class Spread(msgspec.Struct, frozen=True):
    """A figure over the ranks that have it, in ns per step and device, and the rank with the most."""

    min: float
    median: float
    max: float
    max_rank: int


class LayerSpread(msgspec.Struct, frozen=True, kw_only=True):
    label: str
    """As the table of one rank names it: a layer's path, or an op where no rank knows layers."""
    ranks: int
    """How many ranks have it."""
    kernel_ns: Spread
    host_ns: Spread
    headroom_ns: Spread | None = None


class Collective(msgspec.Struct, frozen=True, kw_only=True):
    """All communication of one kind in one group, over all ranks. ``waiting_ns + moving_ns`` is ``kernel_ns``."""

    name: str
    group: str | None
    ranks: tuple[int, ...]
    calls: int
    kernel_ns: int
    waiting_ns: int | None = None
    moving_ns: int | None = None
    unsplit: str | None = None
    """Why it could not be split."""


class Straggler(msgspec.Struct, frozen=True, kw_only=True):
    rank: int
    ns: float
    """Waited for it, or longer than the median rank: per step."""
    text: str


class RanksData(msgspec.Struct, frozen=True, kw_only=True):
    """The merged report as it is stored."""

    schema: str = SCHEMA
    world_size: int | None = None
    ranks: tuple[Rank, ...] = ()
    by: str = "layer"
    step_ns: Spread | None = None
    layers: tuple[LayerSpread, ...] = ()
    collectives: tuple[Collective, ...] = ()
    straggler: Straggler | None = None
    notes: tuple[str, ...] = ()

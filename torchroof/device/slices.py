"""A part of a card that shows itself as a device: its share of the card's peaks, from what it says of itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torchroof.device.entry import Entry

_INSTANCE = re.compile(r"\s+MIG\b.*$")
"""What a driver adds to the card's name for an instance of a part of it."""
_MEMORY_SLICES = 8
"""Memory, its bandwidth and the last cache are handed out in so many equal parts."""
_PARTITIONS = (2, 3, 4, 6, 8)
"""Numbers of equal parts into which cards of several dies can be divided."""
_NEAR = 0.06


def card_of(name: str) -> str | None:
    """The card's name out of an instance's; None where a name is not an instance's."""
    return _INSTANCE.sub("", name) if _INSTANCE.search(name) else None


def instance(cards: Sequence[Entry], properties: Mapping[str, Any]) -> Entry | None:
    """The share of the one card that an instance can be of; None where its figures or the card are not known.

    Arithmetic goes by multiprocessors, memory in eighths of the card's: an instance with 16 of 132
    multiprocessors and 10.5 of 85 GB has 12.1 % of the peaks and an eighth of the bandwidth.
    """
    units, memory = properties.get("numSms"), properties.get("totalGlobalMem")
    fitting = [e for e in cards if e.multiprocessors and e.memory_bytes]
    rates = {(tuple(e.matrix_flops_per_s.items()), e.memory_bandwidth_bytes_per_s) for e in fitting}
    if not units or not memory or len(rates) != 1 or len(fitting) != len(cards):
        return None
    card = fitting[0]
    assert card.multiprocessors is not None and card.memory_bytes is not None
    eighths = max(1, round(_MEMORY_SLICES * memory / card.memory_bytes))
    if units > card.multiprocessors or eighths > _MEMORY_SLICES:
        return None
    return scaled(card, units, eighths / _MEMORY_SLICES)


def partition(cards: Sequence[Entry], properties: Mapping[str, Any]) -> Entry | None:
    """The share of a card of several dies that was divided into equal parts, each a device of the card's name.

    Its units are an exact part of the card's; its memory, too, or all of it where the parts share it.
    """
    units, memory = properties.get("numSms"), properties.get("totalGlobalMem")
    if not units or not memory:
        return None
    found = []
    for card in cards:
        if not card.multiprocessors or not card.memory_bytes or not card.dies:
            continue
        parts = card.multiprocessors / units
        shares = [n for n in (1, *_PARTITIONS) if abs(memory * n / card.memory_bytes - 1) <= _NEAR]
        if parts in _PARTITIONS and card.dies % parts == 0 and shares:
            found.append(scaled(card, units, 1 / shares[0]))
    return found[0] if len(found) == 1 else None


def scaled(card: Entry, units: int, memory_share: float) -> Entry:
    """A card with so many of its units, and so much of its memory, bandwidth and last cache."""
    assert card.multiprocessors is not None
    share = units / card.multiprocessors

    def part(rates: Mapping[str, float]) -> dict[str, float]:
        return {precision: rate * share for precision, rate in rates.items()}

    said = f"{units} of {card.multiprocessors} multiprocessors and {_fraction(memory_share)} of the memory"
    return replace(
        card,
        name=f"{card.name} ({said})",
        multiprocessors=units,
        multiprocessors_reported=(),
        memory_bytes=None if card.memory_bytes is None else round(card.memory_bytes * memory_share),
        memory_bandwidth_bytes_per_s=card.memory_bandwidth_bytes_per_s * memory_share,
        l2_bytes=None if card.l2_bytes is None else round(card.l2_bytes * memory_share),
        matrix_flops_per_s=part(card.matrix_flops_per_s),
        vector_flops_per_s=part(card.vector_flops_per_s),
        source=f"{card.source}; scaled to {said}",
        origin="derived",
    )


def _fraction(share: float) -> str:
    if share == 1:
        return "all"
    eighths = round(share * _MEMORY_SLICES)
    return f"{eighths}/{_MEMORY_SLICES}" if abs(eighths / _MEMORY_SLICES - share) < 1e-9 else f"1/{round(1 / share)}"

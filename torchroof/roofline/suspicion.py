"""Why something may be quicker than its roof allows: the likely cause, in words."""

from __future__ import annotations

from typing import NamedTuple

from torchroof import units
from torchroof.device.roof import Ceiling, Roof

BOOST = 1.12
"""So far above its printed peak a device may run: peaks of matrix units are printed at less than the highest clock."""
STEADY = 1.25
"""A measured ceiling may be so much too low before the formula is the likelier fault."""


class Cause(NamedTuple):
    """``words`` follow "likely"; ``sound`` is whether both the ceiling and the formula may be right all the same."""

    words: str
    sound: bool = False


def likely_cause(
    efficiency: float, ceiling: Ceiling | None, roof: Roof | None, call_bytes: int | None, algorithm: str | None = None
) -> Cause:
    """The likely cause of an efficiency over 1.

    ``ceiling`` is the one that judged, ``call_bytes`` what one call moves, ``algorithm`` one that the kernels' names
    tell and that needs fewer FLOPs than the op amounts to.
    """
    if algorithm is not None:
        return Cause(f"its kernels use {algorithm}, which needs fewer FLOPs than the op amounts to", sound=True)
    if ceiling is None or roof is None:
        return Cause("the work model counts too much")
    in_cache = _in_an_unknown_cache(ceiling, roof, call_bytes)
    if in_cache is not None:
        return Cause(in_cache, sound=True)
    if ceiling.kind == "compute" and ceiling.origin in ("datasheet", "derived") and efficiency <= BOOST:
        return Cause("the device ran at a higher clock than that of its printed peak", sound=True)
    if ceiling.origin == "measured" and (ceiling.confidence == "low" or efficiency <= STEADY):
        why = "beside other work" if ceiling.confidence == "low" else "too low, or the device has changed since"
        return Cause(f"its ceiling was measured {why}; run `torchroof calibrate`")
    if ceiling.origin == "given":
        return Cause("the ceiling that was given is too low, or the work model counts too much")
    return Cause("the work model counts too much, or an algorithm does less than the op amounts to")


def _in_an_unknown_cache(ceiling: Ceiling, roof: Roof, call_bytes: int | None) -> str | None:
    if ceiling.kind != "bandwidth" or ceiling.level != "dram" or not call_bytes or roof.levels():
        return None
    if roof.last_cache_bytes is None or call_bytes > roof.last_cache_bytes:
        return None
    return (
        f"a call moves {units.quantity(call_bytes, 'B')}, which fits the device's cache of "
        f"{units.quantity(roof.last_cache_bytes, 'B')}, whose bandwidth no datasheet tells; `torchroof calibrate` "
        "measures it"
    )

"""How many blocks of a kernel a multiprocessor of an NVIDIA device holds at a time.

Its warps, registers, shared memory and a number of blocks are limited, and each is handed out in units. The limits are
what a trace tells of the device; the units and the most blocks are facts of its compute capability, from the CUDA C++
Programming Guide (technical specifications per compute capability) and the occupancy calculator in Nsight Compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_WARP = 32
_MOST_BLOCKS = {
    **dict.fromkeys(((5, 0), (5, 2), (6, 0), (6, 1), (7, 0), (8, 0), (9, 0), (10, 0), (10, 3)), 32),
    **dict.fromkeys(((8, 9), (12, 0)), 24),
    **dict.fromkeys(((7, 5), (8, 6), (8, 7)), 16),
}
"""By compute capability. One that is not here is not guessed at."""
_REGISTER_UNIT = 256
"""A warp gets registers in such lots."""
_WARP_UNIT = 4
"""Registers are parted among four schedulers, so that of the warps that they suffice for each has as many."""
_FROM_AMPERE = (8, 0)
_SHARED_UNIT = {True: 128, False: 256}
"""Bytes; from Ampere on the former."""
_RESERVED_SHARED = {True: 1024, False: 0}
"""Bytes of each block's shared memory that the system takes; from Ampere on the former."""

_BEYOND = 2**40
"""More than any device has of anything here."""


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What one of a device's multiprocessors has: ``warps``, ``registers`` (and how many a block may have), and bytes
    of ``shared_memory``."""

    capability: tuple[int, int]
    warps: int
    registers: int
    registers_per_block: int
    shared_memory: int

    @staticmethod
    def of(properties: Mapping[str, Any]) -> Multiprocessor | None:
        """By an entry of a trace's ``deviceProperties``; None where that lacks a limit, or is of another maker."""
        names = (
            *("computeMajor", "computeMinor", "warpSize", "maxThreadsPerMultiprocessor"),
            *("regsPerMultiprocessor", "regsPerBlock", "sharedMemPerMultiprocessor"),
        )
        found = [properties.get(name) for name in names]
        if not all(type(value) is int and 0 <= value < _BEYOND for value in found):
            return None
        major, minor, warp, threads, registers, per_block, shared = (int(value or 0) for value in found)
        if warp != _WARP or (major, minor) not in _MOST_BLOCKS or not 0 < per_block <= registers:
            return None
        return Multiprocessor((major, minor), threads // _WARP, registers, per_block, shared)

    def resident(self, threads: Ints, registers: Ints, shared_memory: Ints) -> Ints:
        """Blocks at a time, by each block's threads, registers per thread and bytes of shared memory.

        0 where one of these is unknown (negative) or impossible.
        """
        known = (threads > 0) & (registers > 0) & (shared_memory >= 0)
        registers, shared_memory = np.clip(registers, 1, _BEYOND), np.clip(shared_memory, 0, _BEYOND)
        modern = self.capability >= _FROM_AMPERE
        warps = np.maximum(-(-threads // _WARP), 1)
        by_warps = self.warps // warps
        lot = -(-registers * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
        held = self.registers_per_block // lot // _WARP_UNIT * _WARP_UNIT
        by_registers = held // warps * (self.registers // self.registers_per_block)
        unit = _SHARED_UNIT[modern]
        taken = -(-(shared_memory + _RESERVED_SHARED[modern]) // unit) * unit
        by_shared = np.where(taken > 0, self.shared_memory // np.maximum(taken, 1), _MOST_BLOCKS[self.capability])
        most = np.minimum.reduce([by_warps, by_registers, by_shared])
        return np.where(known, np.minimum(most, _MOST_BLOCKS[self.capability]), 0).astype(np.int64)

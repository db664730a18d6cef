"""Ops whose traffic depends on values: no trace records how much, and so their work is unknown, with that reason."""

from __future__ import annotations

from torchroof.tensors import OpCall, Unknown
from torchroof.work.algebra import Work
from torchroof.work.registry import Model


def _unknown(call: OpCall) -> Work:
    raise Unknown(f"how much {call.name} moves depends on values, which a trace does not record")


_OPS = "nonzero nonzero_numpy argwhere masked_select masked_scatter masked_scatter_ _unique _unique2 unique_dim"
_WORDS = "Unknown: how much is found, and so written, depends on values."
MODELS: tuple[Model, ...] = tuple(Model(f"aten::{op}", "movement", _unknown, _WORDS) for op in _OPS.split())

"""Ops whose traffic depends on values: no trace records how much, and so their work is unknown, with that reason."""

from __future__ import annotations

from torchroof.tensors import OpCall, Unknown
from torchroof.work.algebra import Work
from torchroof.work.promotion import INT64
from torchroof.work.registry import Model


def _unknown(call: OpCall) -> Work:
    raise Unknown(f"how much {call.name} moves depends on values, which a trace does not record")


def _nonzero(call: OpCall) -> Work:
    """(self, out), where what ran inside told the size of the result."""
    source, out = call.tensor(0), call.optional_tensor(1)
    return _unknown(call) if out is None or not out.numel else Work.of(0, [source], [out.dense(dtype=INT64)])


_OPS = "nonzero_numpy argwhere masked_select masked_scatter masked_scatter_ _unique _unique2 unique_dim"
_WORDS = "Unknown: how much is found, and so written, depends on values."
MODELS: tuple[Model, ...] = (
    Model(
        "aten::nonzero",
        "movement",
        _nonzero,
        "0 FLOPs; reads self, writes int64 indices, one for each axis and place; how many places there are is told by "
        "what ran inside, else unknown.",
    ),
    *(Model(f"aten::{op}", "movement", _unknown, _WORDS) for op in _OPS.split()),
)

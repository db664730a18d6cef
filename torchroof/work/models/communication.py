"""Collectives: what they read and write in the memory of their own device.

How long they take is decided by links and by other devices, for which they wait: they have bytes and no roof.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from torchroof.tensors import OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.registry import Formula, Model

Tensors = tuple[TensorSpec, ...]


def _tensors(call: OpCall, index: int) -> Tensors:
    """One tensor or a list of them."""
    single = call.optional_tensor(index)
    return call.tensor_list(index) if single is None else (single,)


def _out_of(output: int, source: int) -> Formula:
    """Reads one operand, writes another."""

    def work(call: OpCall) -> Work:
        return Work.of(None, _tensors(call, source), _tensors(call, output))

    return work


def _in_place(*, reads: bool = True, writes: bool = True) -> Formula:
    def work(call: OpCall) -> Work:
        own = _tensors(call, 0)
        return Work.of(None, own if reads else (), own if writes else ())

    return work


def _scaled(numerator: bool | None) -> Formula:
    """A new tensor: as large as the input (None), so many times larger as the group is, or smaller (False)."""

    def work(call: OpCall) -> Work:
        own = _tensors(call, 0)
        if numerator is None:
            return Work.of(None, own, [t.dense() for t in own])
        group = call.integer(1 if numerator else 2)
        if group < 1:
            raise Unknown(f"a group of {group}")
        sizes = [t.numel * group if numerator else t.numel // group for t in own]
        return Work.of(None, own, [t.dense((n,)) for t, n in zip(own, sizes, strict=True)])

    return work


def _exchanged(call: OpCall) -> Work:
    """``all_to_all_single(input, output_splits, …)``: splits count along the first axis."""
    own, splits = call.tensor(0), call.integers(1, ())
    rows = sum(splits) if splits else own.shape[0] if own.shape else 1
    return Work.of(None, [own], [own.dense((rows * prod(own.shape[1:]),))])


_KINDS = {
    "all_reduce": (True, True),
    "allreduce_coalesced": (True, True),
    "all_to_all": (True, True),
    "alltoall": (True, True),
    "send": (True, False),
    "recv": (False, True),
}
"""By the library's name for it: whether as much is read, and written, as it was given."""


def _recorded(call: OpCall) -> Work:
    """``record_param_comms``, with the kind of the collective as what ran inside tells it.

    Of other kinds the record has the input alone: that is read, and how much is written depends on the group.
    """
    own = _tensors(call, 0)
    kind = next((v for v in call.operands[1:] if isinstance(v, str) and v in _KINDS), None)
    if kind is None:
        raise Unknown("how much a collective writes depends on its kind and its group, which are not recorded")
    reads, writes = _KINDS[kind]
    return Work.of(None, own if reads else (), own if writes else ())


def _model(op: str, formula: Formula, words: str) -> Model:
    return Model(op, "communication", formula, f"FLOPs are not counted; {words}")


def _each(prefix: str, names: str, formula: Formula, words: str) -> Iterable[Model]:
    return (_model(f"{prefix}::{name}", formula, words) for name in names.split())


_BOTH = "reads the input, writes the output."
_OWN = "reads the tensors and writes them."
MODELS: tuple[Model, ...] = (
    *_each("c10d", "allreduce_ allreduce_coalesced_ reduce_ broadcast_", _in_place(), _OWN),
    *_each("c10d", "send", _in_place(writes=False), "reads the tensors."),
    *_each("c10d", "recv_ recv_any_source_", _in_place(reads=False), "writes the tensors."),
    *_each(
        "c10d",
        "_allgather_base_ _reduce_scatter_base_ alltoall_base_ alltoall_ allgather_into_tensor_coalesced_ "
        "reduce_scatter_tensor_coalesced_",
        _out_of(0, 1),
        _BOTH,
    ),
    *_each(
        "_c10d_functional",
        "all_reduce all_reduce_ all_reduce_coalesced all_reduce_coalesced_ broadcast broadcast_",
        _scaled(None),
        "reads the input, writes as much.",
    ),
    *_each(
        "_c10d_functional",
        "all_gather_into_tensor all_gather_into_tensor_out all_gather_into_tensor_coalesced",
        _scaled(True),
        "reads the input, writes as much for each of the group.",
    ),
    *_each(
        "_c10d_functional",
        "reduce_scatter_tensor reduce_scatter_tensor_out reduce_scatter_tensor_coalesced",
        _scaled(False),
        "reads the input, writes the group's part of it.",
    ),
    *_each("_c10d_functional", "all_to_all_single", _exchanged, "reads the input, writes what the splits say."),
    _model(
        "record_param_comms",
        _recorded,
        "of a sum over all or an exchange reads the tensor and writes as much; of other kinds unknown.",
    ),
)

"""What the formulas share in reading operands."""

from __future__ import annotations

from torchroof.tensors import DType, OpCall, TensorSpec, Unknown
from torchroof.work.promotion import FLOAT32, FLOAT64


def operand(call: OpCall, index: int) -> object:
    """The operand as it was recorded; None where there is none."""
    return call.operands[index] if index < len(call.operands) else None


def shaped(call: OpCall, index: int, rank: int) -> TensorSpec:
    """A tensor of exactly this many axes."""
    tensor = call.tensor(index)
    if len(tensor.shape) != rank:
        raise Unknown(f"operand {index} of {call.name} has {len(tensor.shape)} axes where {rank} are needed")
    return tensor


def agree(call: OpCall, holds: bool, what: str) -> None:
    """Raises Unknown when recorded shapes contradict each other."""
    if not holds:
        raise Unknown(f"shapes of {call.name} do not fit: {what}")


def known_zero(call: OpCall, index: int) -> bool:
    """Whether a factor is recorded as 0. One that a trace does not tell is taken as other than 0."""
    value = operand(call, index)
    return isinstance(value, bool | int | float) and value == 0


def statistics_type(dtype: DType | None) -> DType | None:
    """Type of saved means, reciprocal deviations and log-sum-exps: float32, for float64 input float64."""
    if dtype is None:
        return None
    return FLOAT64 if dtype.name == "float64" else FLOAT32


def optional_list(call: OpCall, index: int) -> tuple[TensorSpec, ...]:
    """A list of tensors; none where the list is empty or was not given."""
    return call.tensor_list(index) if operand(call, index) not in (None, ()) else ()

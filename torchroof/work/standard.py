"""`STANDARD`: the work models that torchroof comes with."""

from __future__ import annotations

from torchroof.work.models import (
    attention,
    convolution,
    embedding,
    matmul,
    movement,
    names,
    norm,
    optimizer,
    pointwise,
    pooling,
    reduction,
    softmax,
)
from torchroof.work.registry import Registry

_TABLES = (
    matmul,
    convolution,
    attention,
    norm,
    pooling,
    embedding,
    pointwise,
    reduction,
    softmax,
    movement,
    optimizer,
)

STANDARD: Registry = Registry().extended(
    (model for table in _TABLES for model in table.MODELS), falls_through=names.FALLS_THROUGH, free=names.FREE
)
"""Every op that has a model, and the names that pass work on or do none."""

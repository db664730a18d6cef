"""`STANDARD`: the work models that torchroof comes with."""

from __future__ import annotations

from torchroof.work.models import (
    attention,
    convolution,
    data_dependent,
    distance,
    embedding,
    fourier,
    losses,
    matmul,
    movement,
    names,
    norm,
    optimizer,
    pointwise,
    pooling,
    recurrent,
    reduction,
    sampling,
    softmax,
    sync_norm,
)
from torchroof.work.registry import Registry

_TABLES = (
    matmul,
    convolution,
    attention,
    recurrent,
    norm,
    sync_norm,
    pooling,
    embedding,
    distance,
    pointwise,
    reduction,
    softmax,
    losses,
    movement,
    sampling,
    data_dependent,
    fourier,
    optimizer,
)

STANDARD: Registry = Registry().extended(
    (model for table in _TABLES for model in table.MODELS), falls_through=names.FALLS_THROUGH, free=names.FREE
)
"""Every op that has a model, and the names that pass work on or do none."""

"""`STANDARD`: the work models that torchroof comes with."""

from __future__ import annotations

from torchroof.work.models import (
    attention,
    communication,
    convolution,
    counting,
    data_dependent,
    distance,
    embedding,
    fourier,
    fused,
    losses,
    matmul,
    movement,
    names,
    norm,
    optimizer,
    pointwise,
    pooling,
    quantized,
    recurrent,
    reduction,
    sampling,
    softmax,
    sync_norm,
)
from torchroof.work.registry import Registry

_TABLES = (
    matmul,
    quantized,
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
    counting,
    softmax,
    losses,
    movement,
    sampling,
    data_dependent,
    fourier,
    optimizer,
    fused,
    communication,
)

STANDARD: Registry = Registry().extended(
    (model for table in _TABLES for model in table.MODELS), falls_through=names.FALLS_THROUGH, free=names.FREE
)
"""Every op that has a model, and the names that pass work on or do none."""

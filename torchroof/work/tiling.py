"""How often a matrix product reads its factors, tile by tile: why products are computed in tiles."""

from __future__ import annotations

from dataclasses import dataclass

from torchroof.errors import OperandError
from torchroof.tensors import OpCall, TensorSpec


@dataclass(frozen=True, slots=True)
class Gemm:
    """A product of m x k by k x n, ``groups`` times: what a convolution or a linear layer amounts to."""

    m: int
    n: int
    k: int
    groups: int = 1


@dataclass(frozen=True, slots=True)
class Tiling:
    """A product whose result is computed in tiles of ``tile`` x ``tile``, each loading its rows and columns anew.

    ``bytes_moved`` are those of both factors, for every tile of the result; what is written counts once in both.
    """

    tile: int
    bytes_moved: int
    intensity: float
    """FLOPs per byte loaded: tile ÷ bytes of an element."""


def gemm_of(call: OpCall, result: TensorSpec | None = None) -> Gemm | None:
    """The product that a call amounts to; None for a call of another kind. ``result`` is a convolution's."""
    short = call.name.removeprefix("aten::")
    if short in ("mm", "addmm"):
        a, b = call.tensors()[-2:]
        return Gemm(a.shape[0], b.shape[1], a.shape[1])
    if short == "bmm":
        a, b = call.tensors()
        return Gemm(a.shape[1], b.shape[2], a.shape[2], a.shape[0])
    if short == "convolution" and result is not None:
        weight, groups = call.tensor(1), call.integer(8)
        per_group = weight.numel // max(1, weight.shape[0])
        places = result.numel // max(1, weight.shape[0])
        return Gemm(places, weight.shape[0] // groups, per_group, groups)
    return None


def tiled(gemm: Gemm, tile: int, element_bytes: float) -> Tiling:
    """Both factors are read once for each tile of the result: 2·m·n·k ÷ tile elements.

    A tile of 1 reads two numbers for each multiply-add. Raises OperandError for a tile under 1.
    """
    if tile < 1:
        raise OperandError(f"a tile of {tile} is none; give a whole number from 1 on")
    rows, columns = -(-gemm.m // tile), -(-gemm.n // tile)
    loaded = gemm.groups * gemm.k * (rows * gemm.n + columns * gemm.m)
    flops = 2 * gemm.groups * gemm.m * gemm.n * gemm.k
    moved = round(loaded * element_bytes)
    return Tiling(tile, moved, flops / moved if moved else 0.0)

"""The headline of a report: what a reader should know before any row."""

from __future__ import annotations

import msgspec

from torchroof.report.model import ReportData


class Share(msgspec.Struct, frozen=True):
    """A named part of step time: nanoseconds per step (mean) and fraction of step time (0 to 1)."""

    name: str
    ns: float
    fraction: float


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """Figures are means per step and device; fractions are 0 to 1; None is unknown."""

    device: str
    steps: int
    step_ns: float
    causes: tuple[Share, ...]
    """Causes of step time with any, largest first."""
    step_efficiency: float | None
    mfu: float | None
    mfu_of: str | None
    """What MFU is taken of: ``datasheet peak`` or ``measured peak``."""
    with_owner: float | None
    """Fraction of the counted kernel time with a layer."""
    with_flops: float | None
    with_bytes: float | None
    matrix_flops: float | None
    """Share of all FLOPs done by matmul, convolution and attention."""
    matrix_time: float | None
    """Share of kernel time taken by them."""
    ceilings: tuple[str, ...]
    """One short text per ceiling that judged a row, and where it comes from (``float32 vector 322 GFLOP/s, measured 3 min ago``)."""
    verdict: str
    """One sentence in words: where the step's time goes."""
    worst: str | None
    """One sentence on the worst layer: how much, why, what it means. None when no layer is flagged."""
    notes: tuple[str, ...]


def headline(data: ReportData, now: float | None = None) -> Headline:
    """The headline. ``now`` (Unix seconds) is what ages of measured ceilings are told against."""
    raise NotImplementedError

"""Colours of the roofline's picture, on light and on dark ground."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Shades:
    """``#rrggbb`` by role: what is filled (words too), and what is a line."""

    fills: Mapping[str, str]
    strokes: Mapping[str, str]


def _shades(bounds: dict[str, str], **named: str) -> Shades:
    return Shades(
        fills=bounds | {role: named[role] for role in ("ground", "panel", "under", "ink", "quiet", "roofs")},
        strokes=bounds | {role: named[role] for role in ("panel", "grid", "roof", "flag")} | {"leader": named["quiet"]},
    )


LIGHT = _shades(
    {
        "compute": "#1a7f37",
        "memory": "#0969da",
        "cache": "#0e8a9c",
        "latency": "#bf8700",
        "communication": "#8250df",
        "unmodelled": "#6e7781",
        "unplaced": "#6e7781",
    },
    ground="#ffffff", panel="#f9fafb", under="#eff3f8", ink="#1f2328", quiet="#656d76", roofs="#424a53",
    grid="#dfe4ea", roof="#424a53", flag="#cf222e",
)  # fmt: skip
DARK = _shades(
    {
        "compute": "#3fb950",
        "memory": "#58a6ff",
        "cache": "#39c5cf",
        "latency": "#e3b341",
        "communication": "#bc8cff",
        "unmodelled": "#8b949e",
        "unplaced": "#8b949e",
    },
    ground="#0d1117", panel="#11161d", under="#182029", ink="#e6edf3", quiet="#8b949e", roofs="#b1bac4",
    grid="#262d36", roof="#b1bac4", flag="#ff7b72",
)  # fmt: skip

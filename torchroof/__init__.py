"""Per-layer roofline reports from PyTorch's profiler.

`profile` records a training loop, `analyze` reads any Kineto trace, `analyze_ranks` those of several ranks, `load`
a saved report, `calibrate` measures what this machine can do. Importing this
package imports neither torch nor pandas; each name brings what it needs when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchroof import errors
    from torchroof.calibration import calibrate
    from torchroof.profiling import profile, schedule
    from torchroof.rank_reports import RanksReport, analyze_ranks
    from torchroof.reports import Report, analyze, load

__version__ = "0.1.0"

__all__ = [
    "RanksReport",
    "Report",
    "__version__",
    "analyze",
    "analyze_ranks",
    "calibrate",
    "errors",
    "load",
    "profile",
    "schedule",
]

_HOMES = {
    "RanksReport": "torchroof.rank_reports",
    "analyze_ranks": "torchroof.rank_reports",
    "Report": "torchroof.reports",
    "analyze": "torchroof.reports",
    "calibrate": "torchroof.calibration",
    "load": "torchroof.reports",
    "profile": "torchroof.profiling",
    "schedule": "torchroof.profiling",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "errors":
        return import_module("torchroof.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'torchroof' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

"""`calibrate`: measures what this machine's devices can do, and keeps it for later runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from torchroof.device.roof import Ceiling, Roof
from torchroof.errors import DeviceBusy, OptionError
from torchroof.profiling import require_torch

if TYPE_CHECKING:
    import torch

    from torchroof.measure.calibrate import Calibration
    from torchroof.views.calibration import CalibrationPage

__all__ = ["Calibrated", "calibrate"]


class Calibrated:
    """The ceilings of a device as they were measured. ``print`` shows them; ``data`` are the plain values.

    ``roof`` has the datasheet's peaks beside them, where the catalogue knows the device.
    """

    def __init__(self, data: Calibration, printed: tuple[Ceiling, ...] = ()) -> None:
        self.data = data
        self.roof = Roof(data.device, data.ceilings + printed)

    @property
    def ceilings(self) -> tuple[Ceiling, ...]:
        """What was measured; `analyze` and `profile` take it as ``ceilings=``."""
        return self.data.ceilings

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values: ceilings as in a report, rates in base units."""
        return asdict(self.data)

    def __str__(self) -> str:
        from torchroof.views.terminal import plain_text, screen_width

        return plain_text(self.__rich__(), screen_width())

    def __repr__(self) -> str:
        return f"<torchroof.Calibrated: {len(self.ceilings)} ceilings of {self.data.device}>"

    def __rich__(self) -> CalibrationPage:
        from torchroof.views.calibration import CalibrationPage

        data = self.data
        sweep = tuple((p.working_set, p.rate) for p in data.sweep)
        return CalibrationPage(
            data.device, self.roof, data.notes, dict(data.conditions), sweep, data.seconds, time.time()
        )


def calibrate(
    device: str | torch.device | None = None,
    *,
    quick: bool = False,
    force: bool = False,
    progress: Callable[[float, str], None] | None = None,
) -> Calibrated:
    """Measures a device's ceilings and keeps them; runs that are profiled afterwards are judged by them.

    ``device`` is ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or the like; without it the best that torch can use. It takes
    under two minutes, with ``quick`` under ten seconds on a CPU. ``progress`` is called with the part done (0 to 1)
    and what comes next. Raises TorchMissing, OptionError for a device that is not there, and DeviceBusy when
    other work runs on it; with ``force`` it is measured all the same, and kept where nothing better is.
    """
    require_torch()
    from torchroof.device import cache
    from torchroof.measure import calibrate as measuring
    from torchroof.measure.conditions import cache_key
    from torchroof.measure.live import printed_ceilings
    from torchroof.measure.quiet import busy_reason

    target = device_named(device)
    reason = busy_reason(target)
    if reason is not None and not force:
        raise DeviceBusy(
            f"{target} is not free, so its ceilings would read too low: {reason}; "
            "wait for it to end, or measure all the same with force (--force)"
        )
    found = measuring.calibrate(target, measuring.QUICK if quick else measuring.FULL, progress)
    key = cache_key(target)
    kept = cache.load(key)
    if kept is not None and kept.quiet and not found.quiet:
        found = measuring.unheeded(kept, found)
    elif found.ceilings:
        found = measuring.keep(key, target, found, None if found.quiet else kept)
    return Calibrated(found, printed_ceilings(target))


def device_named(device: str | torch.device | None) -> torch.device:
    """The device with its index. Raises OptionError for one that torch cannot use here."""
    import torch

    from torchroof.capture.torch_private import device_type

    best = device_type()
    try:
        chosen = torch.device(best if device is None else device)
    except RuntimeError:
        usable = "cpu" if best == "cpu" else f"cpu, {best} or {best}:0"
        raise OptionError(f"{device!r} is no device of torch; use {usable}") from None
    if chosen.type == "cpu":
        return torch.device("cpu")
    if chosen.type != best:
        raise OptionError(f"torch can use no {chosen.type} device here; leave the device out to use {best}")
    module = getattr(torch, best)
    index = module.current_device() if chosen.index is None else chosen.index
    if index >= module.device_count():
        raise OptionError(f"there is no {best}:{index} here; torch sees {module.device_count()}")
    return torch.device(best, index)

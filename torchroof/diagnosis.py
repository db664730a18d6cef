"""`diagnose`: whether what torchroof needs works on this machine, by trying it out."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from torchroof import units
from torchroof.device.roof import Roof
from torchroof.profiling import profile, require_torch

if TYPE_CHECKING:
    import torch

    from torchroof.measure.checks import Check


def diagnose(device: str | torch.device | None = None) -> Iterator[Check]:
    """The checks one after another, as each is done. Raises TorchMissing, and OptionError as `calibrate` does."""
    require_torch()
    from torchroof.calibration import device_named
    from torchroof.measure import checks
    from torchroof.measure.live import kept_ceilings, printed_ceilings
    from torchroof.measure.quiet import busy_reason

    target = device_named(device)
    kept = kept_ceilings(target)
    roof = Roof(str(target), kept + printed_ceilings(target))
    yield from _environment(target)
    yield from checks.private_names()
    yield from checks.profiler(target)
    yield from _known_work(target)
    yield _age_of(kept)
    yield from checks.against_ceilings(target, roof, busy_reason(target))
    yield from checks.beside_datasheet(roof)
    yield from checks.hooks(target)


def _environment(target: torch.device) -> Iterator[Check]:
    import torch

    from torchroof.measure.checks import OK, Check
    from torchroof.measure.conditions import conditions, device_name

    told = conditions(target)
    more = [str(told[name]) for name in ("driver", "instructions") if told.get(name)]
    yield Check("python and torch", OK, "", f"Python {platform.python_version()}, torch {torch.__version__}")
    yield Check("device", OK, "", ", ".join([device_name(target), *more]))
    if told.get("throttled_by"):
        from torchroof.measure.checks import DOUBT

        said = " and ".join(told["throttled_by"])
        yield Check("clocks", DOUBT, "not throttled", f"throttled by {said}", "what is measured now reads low")


BATCH, INPUTS, HIDDEN, CLASSES = 32, 48, 64, 10
FORWARD = 2 * BATCH * (INPUTS * HIDDEN + HIDDEN * CLASSES)
"""Two products of a batch with a weight matrix."""
BACKWARD = 2 * BATCH * (INPUTS * HIDDEN + 2 * HIDDEN * CLASSES)
"""Both weights' gradients, and the gradient of what lies between; the first layer's input needs none."""


def _known_work(target: torch.device) -> Iterator[Check]:
    """One step of a small net whose FLOPs paper tells, profiled as users do it."""
    import torch

    from torchroof.measure.checks import FAULT, OK, Check

    state = torch.random.get_rng_state()
    model = torch.nn.Sequential(
        torch.nn.Linear(INPUTS, HIDDEN, bias=False), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES, bias=False)
    ).to(target)
    x = torch.full((BATCH, INPUTS), 0.5, device=target)
    torch.random.set_rng_state(state)
    with profile(model, measure=False) as prof:
        for _ in range(2):
            model(x).sum().backward()
            prof.step()
    data = prof.report.data
    expected = (FORWARD + BACKWARD) * data.steps
    found = data.totals.matrix_flops
    yield Check(
        "FLOPs of a small net",
        OK if found == expected else FAULT,
        f"{expected:,}",
        "unknown" if found is None else f"{found:,}",
        "" if found == expected else "reports of this torch may count wrong; please report it",
    )
    layered = {row.path for row in data.rows if row.flops and row.path is not None}
    whole = {"0", "2"} <= layered
    named = ", ".join(sorted(layered)) or "none"
    yield Check("its layers", OK if whole else FAULT, "0 and 2 among them", named, "" if whole else "hooks do not run")
    closed = sum(data.totals.causes.values()) == data.totals.step_ns
    yield Check(
        "its step's causes", OK if closed else FAULT, "add up to the step", "they do" if closed else "they do not"
    )


def _age_of(kept: tuple[object, ...]) -> Check:
    from torchroof.measure.checks import DOUBT, OK, Check

    latest = max((getattr(c, "measured_at", None) or "" for c in kept), default="")
    if not latest:
        return Check("calibration", DOUBT, "measured", "not yet", "run `torchroof calibrate`")
    with suppress(ValueError):
        latest = units.age(max(0.0, time.time() - datetime.fromisoformat(latest).timestamp()))
    doubtful = any(getattr(c, "confidence", None) == "low" for c in kept)
    advice = "it was measured beside other work; run `torchroof calibrate` at a quiet moment" if doubtful else ""
    return Check(
        "calibration",
        DOUBT if doubtful else OK,
        "measured at a quiet moment",
        f"{len(kept)} ceilings, {latest}",
        advice,
    )

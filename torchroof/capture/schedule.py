"""Which steps are recorded and which count."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from torchroof.errors import OptionError


class StepKind(Enum):
    WAIT = "wait"
    """Runs without hooks and profiler."""
    WARMUP = "warmup"
    """Recorded, does not count."""
    ACTIVE = "active"
    """Recorded and counted."""
    AFTER = "after"
    """Follows the last window."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Cycles of ``wait``, ``warmup`` and ``active`` steps, ``repeat`` times; 0 repeats for ever."""

    wait: int = 0
    warmup: int = 1
    active: int = 3
    repeat: int = 1

    def __post_init__(self) -> None:
        for name, least in (("wait", 0), ("warmup", 0), ("active", 1), ("repeat", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise OptionError(f"schedule: {name} must be a whole number of at least {least}, not {value!r}")

    @property
    def cycle(self) -> int:
        """Steps in a cycle."""
        return self.wait + self.warmup + self.active

    def kind(self, step: int) -> StepKind:
        """What the step of this number (from 0) is."""
        if self.repeat and step >= self.cycle * self.repeat:
            return StepKind.AFTER
        place = step % self.cycle
        if place < self.wait:
            return StepKind.WAIT
        return StepKind.WARMUP if place < self.wait + self.warmup else StepKind.ACTIVE

    def begins_window(self, step: int) -> bool:
        """Whether recording starts with this step."""
        return self.kind(step) is not StepKind.AFTER and step % self.cycle == self.wait

    def ends_window(self, step: int) -> bool:
        """Whether this step is the last of its window."""
        return self.kind(step) is StepKind.ACTIVE and step % self.cycle == self.cycle - 1


def schedule(wait: int = 0, warmup: int = 1, active: int = 3, repeat: int = 1) -> Schedule:
    """A schedule for `profile`. Raises OptionError for a number out of range."""
    return Schedule(wait, warmup, active, repeat)

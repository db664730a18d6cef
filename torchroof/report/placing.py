"""Where labels go so that none covers another: boxes in whatever unit a drawing has, x to the right, y down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Whether they share more than an edge."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def inside(self, frame: Box) -> bool:
        return (
            self.left >= frame.left
            and self.right <= frame.right
            and self.top >= frame.top
            and self.bottom <= frame.bottom
        )


Boxes = tuple[Box, ...]
"""What one label covers: a slanted one is a chain of boxes."""


def free(boxes: Boxes, frame: Box, taken: Iterable[Box]) -> bool:
    """Whether a label fits in the frame and meets nothing."""
    if not all(box.inside(frame) for box in boxes):
        return False
    return not any(box.overlaps(other) for other in taken for box in boxes)


def choose(candidates: Sequence[Boxes], frame: Box, taken: Sequence[Box], avoided: Sequence[Box] = ()) -> int | None:
    """The candidate that meets nothing ``taken`` and least of what is better ``avoided``, the first of equals.

    None where each meets something taken or leaves the frame.
    """
    fitting = [i for i, boxes in enumerate(candidates) if free(boxes, frame, taken)]
    return min(fitting, key=lambda i: _meetings(candidates[i], avoided), default=None)


def _meetings(boxes: Boxes, others: Iterable[Box]) -> int:
    return sum(any(box.overlaps(other) for box in boxes) for other in others)

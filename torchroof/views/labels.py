"""Where the names of ceilings and points go on the sheet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import atan2, ceil, cos, degrees, hypot, pi, sin

from torchroof import units
from torchroof.report.picture import CeilingLine, Point
from torchroof.report.placing import Box, Boxes, choose
from torchroof.views.drawing import Mark, Sheet, Stroke, Words, breadth
from torchroof.views.text import clean, shorten

_SIZE = 11.0
_LONGEST = 34
"""Characters of a point's name."""
_STARTS = (0.02, 0.08, 0.14, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Parts of a ceiling's length at which its label may begin."""
_DIRECTIONS = (0.0, pi, -pi / 2, pi / 2, -pi / 4, pi / 4, -3 * pi / 4, 3 * pi / 4)
_REACHES = (3.0, 12.0, 24.0, 40.0, 60.0, 84.0)
"""Pixels between a mark and its label."""
_WITHOUT_LEADER = 8.0
_SAME = 7.0
"""Pixels between marks that share one label."""
_BREAK = 5.0
"""Pixels between the boxes that stand for a line."""


def ceiling_labels(place: Sheet, marks: Sequence[tuple[Mark, Point]]) -> tuple[list[Words], list[Box]]:
    """A label for each ceiling that has room for one, and what they cover."""
    words: list[Words] = []
    covered: list[Box] = []
    points, lines = [mark.box for mark, _ in marks], line_boxes(place)
    for ceiling in place.picture.ceilings:
        options = list(_along(place, ceiling))
        places = [boxes for _, boxes in options]
        chosen = choose(places, place.frame, [*covered, *points], lines)
        if chosen is None:
            chosen = choose(places, place.frame, covered, points)
        if chosen is not None:
            words.append(options[chosen][0])
            covered.extend(options[chosen][1])
    return words, covered


def _along(place: Sheet, ceiling: CeilingLine) -> Iterator[tuple[Words, Boxes]]:
    """Places for a ceiling's label: along it, above before below; level beside it where it is too short."""
    text = clean(ceiling.label)
    width = breadth(text, _SIZE)
    x0, y0, x1, y1 = place.x(ceiling.x0), place.y(ceiling.y0), place.x(ceiling.x1), place.y(ceiling.y1)
    length, angle = hypot(x1 - x0, y1 - y0), atan2(y1 - y0, x1 - x0)
    flat = ceiling.kind == "compute"
    for away in (-7.0, 7.0 + 0.6 * _SIZE):
        if flat:
            words = Words("roofs", x1 - 6, y1 + away, text, _SIZE, "end", halo=True)
            yield words, (words.box,)
        for part in _STARTS:
            start = part * length + 6
            if start + width > length:
                continue
            x = x0 + start * cos(angle) - away * sin(angle)
            y = y0 + start * sin(angle) + away * cos(angle)
            yield (
                Words("roofs", x, y, text, _SIZE, angle=degrees(angle), halo=True),
                _chain(x, y, width, angle),
            )
    for part in (0.5, 0.3, 0.7, 0.1, 0.9):
        x, y = x0 + part * (x1 - x0), y0 + part * (y1 - y0)
        for words in (
            Words("roofs", x + 8, y + 14, text, _SIZE, halo=True),
            Words("roofs", x - 8, y - 6, text, _SIZE, "end", halo=True),
        ):
            yield words, (words.box,)


def _chain(x: float, y: float, width: float, angle: float) -> Boxes:
    """Small boxes along slanted words that begin at (x, y)."""
    if abs(angle) < 0.01:
        return (Box(x, y - 0.82 * _SIZE, x + width, y + 0.26 * _SIZE),)
    count = ceil(width / _SIZE)
    half = 0.5 * _SIZE
    middles = [
        (
            x + (i + 0.5) * width / count * cos(angle) + 0.3 * _SIZE * sin(angle),
            y + (i + 0.5) * width / count * sin(angle) - 0.3 * _SIZE * cos(angle),
        )
        for i in range(count)
    ]
    return tuple(Box(mx - half, my - half, mx + half, my + half) for mx, my in middles)


def point_labels(
    place: Sheet, marks: Sequence[tuple[Mark, Point]], covered: Sequence[Box]
) -> tuple[list[Words | Stroke], list[Box]]:
    """The names of the ranked points, the most important first, and what they cover.

    Points in the place of one that has a name are counted in its label.
    """
    items: list[Words | Stroke] = []
    boxes: list[Box] = []
    soft = line_boxes(place) + [mark.box for mark, point in marks if point.rank is None]
    named = _gathered(marks)
    hard = [*covered, *(mark.box for mark, _, _ in named)]
    for mark, point, others in named:
        frame = place.strip if point.x is None and place.strip else place.frame
        options = list(_beside(mark, point, others, frame))
        chosen = choose([(words.box,) for words in options], frame, [*hard, *boxes], soft)
        if chosen is None:
            continue
        words = options[chosen]
        boxes.append(words.box)
        items.extend(_leader(mark, words.box))
        items.append(words)
    # Leaders lie behind all words, whose halos interrupt them.
    return sorted(items, key=lambda item: isinstance(item, Words)), boxes


def _gathered(marks: Sequence[tuple[Mark, Point]]) -> list[tuple[Mark, Point, int]]:
    """The ranked points in their order, each with the number of points that lie under its mark and share its label."""
    ranked = sorted(((m, p) for m, p in marks if p.rank is not None), key=lambda item: item[1].rank or 0)
    kept: list[tuple[Mark, Point]] = []
    for mark, point in ranked:
        if not any(_same_place(mark, other) for other, _ in kept):
            kept.append((mark, point))
    owner = [next((k for k, _ in kept if _same_place(mark, k)), None) for mark, _ in marks]
    return [(mark, point, sum(o is mark for o in owner) - 1) for mark, point in kept]


def _same_place(one: Mark, other: Mark) -> bool:
    return hypot(one.x - other.x, one.y - other.y) < max(_SAME, (one.radius + other.radius) / 2)


def _beside(mark: Mark, point: Point, others: int, frame: Box) -> Iterator[Words]:
    more = f" +{others}" if others else ""
    figures = f" {units.percent(point.share)}{more}"
    longest = min(_LONGEST, int((frame.right - frame.left - 8) / breadth("0", _SIZE, mono=True)) - len(figures))
    text = shorten(clean(point.label), longest) + figures
    width = breadth(text, _SIZE, mono=True)
    for reach in _REACHES:
        away = mark.reach + reach
        for direction in _DIRECTIONS:
            x, y = mark.x + away * cos(direction), mark.y + away * sin(direction)
            across = cos(direction)
            anchor = "middle" if abs(across) < 0.1 else "start" if across > 0 else "end"
            if anchor == "middle":
                x = min(max(x, frame.left + width / 2 + 1), frame.right - width / 2 - 1)
            down = 0.3 + 0.5 * sin(direction)
            yield Words(
                "ink", x, y + down * _SIZE, text, _SIZE, anchor, bold=point.flagged, mono=True, halo=True, width=width
            )


def _leader(mark: Mark, box: Box) -> Iterator[Stroke]:
    """A thin line from a mark to a label that stands away from it."""
    x, y = min(max(mark.x, box.left), box.right), min(max(mark.y, box.top), box.bottom)
    distance = hypot(x - mark.x, y - mark.y)
    if distance > mark.reach + _WITHOUT_LEADER:
        part = mark.reach / distance
        yield Stroke("leader", mark.x + part * (x - mark.x), mark.y + part * (y - mark.y), x, y)


def line_boxes(place: Sheet) -> list[Box]:
    """The ceilings as chains of small boxes."""
    boxes = []
    for c in place.picture.ceilings:
        x0, y0, x1, y1 = place.x(c.x0), place.y(c.y0), place.x(c.x1), place.y(c.y1)
        count = max(1, ceil(hypot(x1 - x0, y1 - y0) / _BREAK))
        for i in range(count + 1):
            x, y = x0 + (x1 - x0) * i / count, y0 + (y1 - y0) * i / count
            boxes.append(Box(x - 1.5, y - 1.5, x + 1.5, y + 1.5))
    return boxes

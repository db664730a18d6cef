"""The roofline as PNG, which TensorBoard's images are: the sheet that the SVG shows, on light ground."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from torchroof.report.picture import Picture
from torchroof.views.drawing import HEIGHT, WIDTH, Area, Item, Mark, Stroke, Words, draw, outline
from torchroof.views.shades import LIGHT
from torchroof.views.text import clean

if TYPE_CHECKING:
    from PIL import Image, ImageDraw, ImageFont

SCALE = 2
"""Pixels of the image for each of the sheet."""
_FINER = 2
"""Drawn so many times larger and shrunk, which smooths the edges."""
_DASH = (7.0, 4.0)


def png(picture: Picture) -> bytes:
    """The picture as a PNG of ``SCALE`` times WIDTH x HEIGHT pixels."""
    from PIL import Image, ImageDraw

    factor = SCALE * _FINER
    image = Image.new("RGB", (WIDTH * factor, HEIGHT * factor))
    pen = _Pen(image, ImageDraw.Draw(image), factor)
    for item in draw(picture).items:
        pen.draw(item)
    file = io.BytesIO()
    image.reduce(_FINER).save(file, "PNG", optimize=True)
    return file.getvalue()


@lru_cache(maxsize=64)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    from PIL import ImageFont

    return ImageFont.load_default(size)


@dataclass(frozen=True)
class _Pen:
    image: Image.Image
    canvas: ImageDraw.ImageDraw
    factor: int

    def draw(self, item: Item) -> None:
        match item:
            case Stroke():
                self._stroke(item)
            case Area():
                self.canvas.polygon(self._scaled(item.corners), fill=LIGHT.fills[item.role])
            case Mark():
                self._mark(item)
            case Words():
                self._words(item)

    def _scaled(self, corners: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
        return [(x * self.factor, y * self.factor) for x, y in corners]

    def _stroke(self, stroke: Stroke) -> None:
        width = round({"roof": 1.8, "leader": 0.8}.get(stroke.role, 1.0) * self.factor)
        start, end = complex(stroke.x0, stroke.y0), complex(stroke.x1, stroke.y1)
        length = abs(end - start)
        on, off = _DASH if stroke.dashed else (length, 1.0)
        at = 0.0
        while at < length:
            parts = [start + (end - start) * part / length for part in (at, min(at + on, length))]
            line = [(p.real * self.factor, p.imag * self.factor) for p in parts]
            self.canvas.line(line, fill=LIGHT.strokes[stroke.role], width=width)
            at += on + off

    def _mark(self, mark: Mark) -> None:
        edge, colour = LIGHT.strokes["panel"], LIGHT.strokes.get(mark.role, LIGHT.strokes["leader"])
        if mark.shape == "ring":
            self._circle(mark, mark.radius, colour)
        elif mark.shape == "circle":
            box = [(mark.x + s * mark.radius, mark.y + s * mark.radius) for s in (-1, 1)]
            self.canvas.ellipse(self._scaled(tuple(box)), fill=colour, outline=edge, width=self.factor)
        else:
            self.canvas.polygon(self._scaled(outline(mark)), fill=colour, outline=edge, width=self.factor)
        if mark.flagged:
            self._circle(mark, mark.reach, LIGHT.strokes["flag"])

    def _circle(self, mark: Mark, radius: float, colour: str) -> None:
        box = tuple((mark.x + s * radius, mark.y + s * radius) for s in (-1, 1))
        self.canvas.ellipse(self._scaled(box), outline=colour, width=2 * self.factor)

    def _words(self, words: Words) -> None:
        """Words no wider than the sheet gives them: the typeface is another than the SVG's, and has ASCII only."""
        from PIL import Image, ImageDraw

        text = "…".join(clean(part, True) for part in words.text.split("…"))
        font = _font(round(words.size * self.factor))
        room = (words.box.right - words.box.left) * self.factor
        if (width := font.getlength(text)) > room:
            font = _font(max(1, int(words.size * self.factor * room / width)))
        colour, edge = LIGHT.fills[words.role], LIGHT.fills["panel"]
        anchor = {"start": "ls", "middle": "ms", "end": "rs"}[words.anchor]
        halo, at = (2 * self.factor if words.halo else 0), (words.x * self.factor, words.y * self.factor)
        if not words.angle:
            heavy = self.factor // 4 if words.bold else 0
            if halo:
                self.canvas.text(at, text, edge, font, anchor, stroke_width=halo, stroke_fill=edge)
            self.canvas.text(at, text, colour, font, anchor, stroke_width=heavy, stroke_fill=colour)
            return
        mask = Image.new("L", self.image.size)
        ImageDraw.Draw(mask).text(at, text, 255, font, anchor)
        turned = mask.rotate(-words.angle, Image.Resampling.BICUBIC, center=at)
        self.image.paste(colour, (0, 0), turned)

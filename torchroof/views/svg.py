"""The roofline as SVG: text without scripts, fonts or links, in light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from torchroof.errors import OptionError
from torchroof.report.picture import Picture
from torchroof.views.drawing import HEIGHT, WIDTH, Area, Drawing, Item, Mark, Stroke, Words, draw, outline
from torchroof.views.shades import DARK, LIGHT, Shades

THEMES = ("auto", "light", "dark")
_SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
_MONO = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"


def svg(picture: Picture, theme: str = "auto") -> str:
    """The picture as one SVG element. ``theme`` is light, dark, or auto: as the reader's system is.

    Raises OptionError for another theme.
    """
    if theme not in THEMES:
        raise OptionError(f"no theme {theme!r}; choose one of {', '.join(THEMES)}")
    drawing = draw(picture)
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{_scope(theme)}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" style="max-width:100%;height:auto">',
        f"<title>{escape(drawing.title)}</title>",
        f"<desc>{escape(drawing.description)}</desc>",
        f"<style>{_css(theme)}</style>",
        *_elements(drawing),
        "</svg>",
    ))  # fmt: skip


def _scope(theme: str) -> str:
    return f"torchroof-{theme}"


def _css(theme: str) -> str:
    """Rules that reach nothing outside the picture."""
    scope = f".{_scope(theme)}"
    rules = [f"{scope} text{{font-family:{_SANS}}}", f"{scope} .mono{{font-family:{_MONO}}}"]
    rules += _colours(scope, DARK if theme == "dark" else LIGHT)
    text = "".join(rules)
    if theme == "auto":
        text += f"@media (prefers-color-scheme:dark){{{''.join(_colours(scope, DARK))}}}"
    return text


def _colours(scope: str, shades: Shades) -> Iterator[str]:
    for role, colour in shades.fills.items():
        yield f"{scope} .f-{role}{{fill:{colour}}}"
    for role, colour in shades.strokes.items():
        yield f"{scope} .s-{role}{{stroke:{colour}}}"
    yield f"{scope} .halo{{stroke:{shades.fills['panel']}}}"


def _elements(drawing: Drawing) -> Iterator[str]:
    for item in drawing.items:
        yield _element(item)


def _element(item: Item) -> str:
    match item:
        case Stroke():
            dash = ' stroke-dasharray="7 4"' if item.dashed else ""
            width = {"roof": 1.8, "leader": 0.8}.get(item.role, 1.0)
            return (
                f'<line class="s-{item.role}" x1="{item.x0:.1f}" y1="{item.y0:.1f}" x2="{item.x1:.1f}" '
                f'y2="{item.y1:.1f}" stroke-width="{width}"{dash}/>'
            )
        case Area():
            corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in item.corners)
            return f'<polygon class="f-{item.role}" points="{corners}"/>'
        case Mark():
            return _mark(item)
        case Words():
            return _words(item)


def _mark(mark: Mark) -> str:
    if mark.shape == "ring":
        inner = _circle(mark, f'class="s-{mark.role}" fill="none" stroke-width="2"', mark.radius - 1)
    elif mark.shape == "circle":
        inner = _circle(mark, f'class="f-{mark.role} s-panel" fill-opacity="0.85"', mark.radius)
    else:
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in outline(mark))
        inner = f'<polygon class="f-{mark.role} s-panel" fill-opacity="0.85" points="{corners}"/>'
    if mark.flagged:
        inner += _circle(mark, 'class="s-flag" fill="none" stroke-width="2"', mark.reach - 1)
    return f"<g>{inner}<title>{escape(mark.tip)}</title></g>" if mark.tip else inner


def _circle(mark: Mark, how: str, radius: float) -> str:
    return f'<circle {how} cx="{mark.x:.1f}" cy="{mark.y:.1f}" r="{radius:.1f}"/>'


def _words(words: Words) -> str:
    classes = " ".join(filter(None, (f"f-{words.role}", "mono" if words.mono else "", "halo" if words.halo else "")))
    more = f' class="{classes}" font-size="{words.size:g}" text-anchor="{words.anchor}"'
    if words.bold:
        more += ' font-weight="600"'
    if words.halo:
        more += ' stroke-width="3" stroke-linejoin="round" paint-order="stroke"'
    if words.angle:
        more += f' transform="rotate({words.angle:.2f} {words.x:.1f} {words.y:.1f})"'
    if words.width is not None:
        more += f' textLength="{words.width:.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{words.x:.1f}" y="{words.y:.1f}"{more}>{escape(words.text)}</text>'

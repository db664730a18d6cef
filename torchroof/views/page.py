"""The page of TensorBoard's tab: its files, and the same as one HTML file with its data inside.

The files are built from ``frontend/`` by its script and are part of the package.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from torchroof.report import codec
from torchroof.report.board import whole
from torchroof.report.model import ReportData
from torchroof.report.summary import headline
from torchroof.views.text import clean

_FOLDER = Path(__file__).with_name("static")
_KINDS = {".js": "text/javascript", ".css": "text/css", ".txt": "text/plain", ".svg": "image/svg+xml"}
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@cache
def static_file(name: str) -> tuple[bytes, str] | None:
    """A file of the page and its media type; None for a name that is none of them."""
    kind = _KINDS.get(Path(name).suffix)
    if kind is None or name not in {file.name for file in _FOLDER.iterdir()}:
        return None
    return (_FOLDER / name).read_bytes(), kind


def html(data: ReportData) -> str:
    """The report as one file. Its policy lets only its own script and style run, and loads nothing."""
    script, style = _text("torchroof.js"), _text("torchroof.css")
    contents = codec.encode(whole(data)).decode().strip()
    for character, escape in _ESCAPED.items():
        contents = contents.replace(character, escape)
    policy = "; ".join((
        "default-src 'none'",
        f"script-src '{_hash(script)}'",
        f"style-src '{_hash(style)}'",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    ))  # fmt: skip
    title = _entities(f"torchroof: {clean(headline(data).device)}")
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n"
        f"<style>{style}</style>\n</head>\n<body>\n"
        f'<script type="application/json" id="torchroof-data">{contents}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _entities(text: str) -> str:
    return "".join(c if c.isalnum() or c in " .,:-_/()" else f"&#{ord(c)};" for c in text)

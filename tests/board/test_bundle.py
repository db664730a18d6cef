"""The page's files: built from the sources that are here, small, and without what they must not have."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from torchroof.report.model import SCHEMA
from torchroof.views.tensorboard import names

ROOT = Path(__file__).resolve().parents[2]
FRONTEND = ROOT / "frontend"
STATIC = ROOT / "torchroof" / "views" / "static"
MOST_BYTES = 1_500_000


def test_the_bundle_is_built_from_these_sources() -> None:
    """As frontend/build.mjs computes it. Where this fails: npm ci && npm run build, in frontend/."""
    found = [f"src/{path.name}" for path in (FRONTEND / "src").iterdir()]
    digest = hashlib.sha256()
    for name in sorted([*found, "build.mjs", "package.json", "package-lock.json"]):
        digest.update(f"{name}\0".encode() + (FRONTEND / name).read_bytes() + b"\0")
    first = (STATIC / "torchroof.js").read_text(encoding="utf-8").split("\n", 1)[0]
    assert f"sources {digest.hexdigest()};" in first


def test_all_of_it_is_small_and_licensed() -> None:
    files = {path.name: path.stat().st_size for path in STATIC.iterdir()}
    assert set(files) == {"index.js", "torchroof.js", "torchroof.css", "LICENSES.txt"}
    assert sum(files.values()) < MOST_BYTES
    licences = (STATIC / "LICENSES.txt").read_text(encoding="utf-8")
    bundled = set(re.findall(r"^([a-z0-9-]+) \d+\.\d+\.\d+$", licences, re.MULTILINE))
    assert {"d3-scale", "d3-selection", "d3-zoom", "internmap"} <= bundled
    assert licences.count("Permission to use, copy, modify") + licences.count("Redistribution and use") >= len(bundled)


def test_nothing_makes_markup_from_text_and_nothing_is_loaded_from_elsewhere() -> None:
    for path in (FRONTEND / "src").iterdir():
        text = path.read_text(encoding="utf-8")
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "srcdoc",
        ):
            assert word not in text, (path.name, word)
    for name in ("torchroof.js", "torchroof.css", "index.js"):
        text = (STATIC / name).read_text(encoding="utf-8")
        assert (
            re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]{2,}[^\s\"'`)]*", text.replace("http://www.w3.org/", "")) == []
        )
        assert not re.search(r"</script|<script|<!--|@import|new Function|[^.\w]eval\(", text)


def test_the_schema_in_the_metadata_is_the_reports() -> None:
    assert names.SCHEMA == SCHEMA

"""From what a reader types to the layers that are meant: a path, a folded pattern, or a label as it was printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from torchroof.errors import OptionError
from torchroof.report.lenses import folded, row_groups
from torchroof.report.model import ReportData

_TIMES = re.compile(r"\s*[×x][0-9]+$")
_BRACKET = re.compile(r"\\\[([0-9,–\\-]+)\\\]")
_NEAR = 3
_LONGEST = 120
"""Characters of a wrong path that an error repeats."""


def layers_named(data: ReportData, asked: str) -> tuple[str, tuple[str, ...]]:
    """The path or pattern that ``asked`` means, and the layers that it stands for.

    A path or an alias; ``(root)``; a pattern (``layer.[0–11].fc1``, also with ``-``, also with its ``×12``); or
    either with ``…`` for what a narrow table left out. Raises OptionError, naming what is near.
    """
    paths = _paths(data)
    if asked == "(root)" or asked in paths:
        path = "" if asked == "(root)" else asked
        return path, (path,)
    for layer in data.layers:
        if asked in layer.aliases:
            return layer.path, (layer.path,)
    plain = _plain(asked)
    folds = {_plain(pattern): (pattern, members) for pattern, members in _folds(data, plain.count(".") + 1)}
    named = {**{path: (path, (path,)) for path in paths}, **folds}
    found = _elided(plain, named)
    if len(found) == 1:
        return named[found[0]]
    if found:
        raise OptionError(f"{_quoted(asked)} may be any of {len(found)} layers: {_listed(found)}; give the whole path")
    matching = re.compile(_BRACKET.sub(_numbers, re.escape(plain)))
    members = tuple(path for path in paths if matching.fullmatch(path))
    if members and "[" in plain:
        return asked, members
    ops = {row.op for row in data.rows if row.op is not None}
    near = _near(plain, [*named, *sorted(ops)])
    told = f"; near it: {_listed(near)}" if near else "; the table lists those there are"
    raise OptionError(f"the report has no layer and no op {_quoted(asked)}{told}")


def is_layer(data: ReportData, name: str) -> bool:
    """Whether a layer, or a container of layers, has this path."""
    return name in _paths(data)


def _paths(data: ReportData) -> dict[str, None]:
    """Every layer, and every container of layers: a list of modules is never called, and so is no layer."""
    paths: dict[str, None] = {}
    for path in (*(layer.path for layer in data.layers), *(row.path for row in data.rows if row.path is not None)):
        while path not in paths:
            paths[path] = None
            path = path.rpartition(".")[0]
    return paths


def _plain(text: str) -> str:
    """A label without its count, in the signs of a pattern."""
    return re.sub(r"(?<=[0-9])-(?=[0-9])", "–", _TIMES.sub("", text.strip())).replace("~", "…")


def _folds(data: ReportData, depth: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The patterns of a folded table, in full and down to the depth of what was asked for."""
    for level in (None, depth):
        for group in folded(row_groups(data, "layer", level), data.layers):
            if group.members and group.path is not None:
                yield group.path, group.members


def _elided(plain: str, named: Mapping[str, object]) -> list[str]:
    if plain in named:
        return [plain]
    if "…" not in plain:
        return []
    pattern = re.compile(".*".join(map(re.escape, plain.split("…"))))
    return [path for path in named if pattern.fullmatch(path)]


def _numbers(bracket: re.Match[str]) -> str:
    """``[0–11]`` as an alternative of the numbers in it."""
    numbers: list[str] = []
    for run in bracket[1].replace("\\", "").split(","):
        first, _, last = run.partition("–")
        if not first.isdecimal() or not (last or first).isdecimal() or len(run) > 12:
            return re.escape(bracket[0])
        numbers += map(str, range(int(first), min(int(last or first), int(first) + 9999) + 1))
    return f"(?:{'|'.join(numbers)})"


def _near(plain: str, named: Iterable[str]) -> list[str]:
    """Layers whose last names, as many as were asked for, are these or spelled alike."""
    names = plain.count(".") + 1
    ends: dict[str, str] = {}
    for path in filter(None, named):
        ends.setdefault(".".join(path.split(".")[-names:]), path)
    alike = get_close_matches(plain[:_LONGEST], ends, n=_NEAR, cutoff=0.5)
    return list(dict.fromkeys(ends[end] for end in alike))


def _listed(paths: list[str]) -> str:
    return ", ".join(path or "(root)" for path in paths[:_NEAR]) + (", …" if len(paths) > _NEAR else "")


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else text[:_LONGEST] + "…")

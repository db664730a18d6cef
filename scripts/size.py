"""Prints the size of the code: lines per room, functions over 60 lines, files over 400.

The average says little; the tail is where code gets tangled. Needs only the standard library.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG_FUNCTION = 60
LONG_FILE = 400


def room_of(path: Path) -> str:
    """``torchroof/trace`` for a file of that room, ``tests/trace`` for one of its tests."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2])


def long_functions(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Length and place of each function over the limit, nested ones too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > LONG_FUNCTION:
                yield lines, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def main() -> None:
    rooms: Counter[str] = Counter()
    files: list[tuple[int, str]] = []
    functions: list[tuple[int, str]] = []
    for top in ("torchroof", "tests", "scripts", "benchmarks"):
        for path in sorted((ROOT / top).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            lines = text.count("\n")
            rooms[room_of(path)] += lines
            if lines > LONG_FILE:
                files.append((lines, str(path.relative_to(ROOT))))
            functions.extend(long_functions(path, text))
    for room, lines in sorted(rooms.items()):
        print(f"{lines:7,}  {room}")
    print(f"{sum(rooms.values()):7,}  in all")
    for title, found in (
        (f"files over {LONG_FILE} lines", files),
        (f"functions over {LONG_FUNCTION} lines", functions),
    ):
        print(f"\n{title}: {len(found) or 'none'}")
        for lines, where in sorted(found, reverse=True):
            print(f"{lines:7,}  {where}")


if __name__ == "__main__":
    main()

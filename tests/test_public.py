"""What a user may rely on: the public names, their documentation, and the code that the documents show."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import torchroof
from torchroof import errors

ROOT = Path(__file__).resolve().parent.parent
PUBLIC = [
    *("RanksReport", "Report", "__version__", "analyze", "analyze_ranks", "calibrate", "errors", "load", "profile"),
    "schedule",
]


def test_all_is_sorted_and_complete() -> None:
    assert sorted(torchroof.__all__) == list(torchroof.__all__) == PUBLIC
    assert all(hasattr(torchroof, name) for name in torchroof.__all__)


def test_a_fresh_interpreter_lists_every_public_name() -> None:
    """Names that load late are listed before anything has asked for them, so that completion finds them."""
    code = "import torchroof; print(*[n for n in torchroof.__all__ if n not in dir(torchroof)])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(torchroof, "analyse_everything")


def test_the_version_is_the_package_s() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{torchroof.__version__}"' in project


def test_everything_public_says_what_it_does() -> None:
    silent = []
    for name in torchroof.__all__:
        thing = getattr(torchroof, name)
        if not (inspect.isroutine(thing) or inspect.isclass(thing) or inspect.ismodule(thing)):
            continue
        if not inspect.getdoc(thing):
            silent.append(name)
        for member, value in vars(thing).items() if inspect.isclass(thing) else ():
            documented = inspect.isroutine(value) or isinstance(value, property)
            if documented and not member.startswith("_") and not inspect.getdoc(value):
                silent.append(f"{name}.{member}")
    assert silent == []


def test_every_error_is_in_the_tree_that_the_docstring_draws() -> None:
    drawn = errors.__doc__ or ""
    classes = [c for c in vars(errors).values() if isinstance(c, type)]
    assert errors.TorchroofError in classes
    assert [c.__name__ for c in classes if not re.search(rf"\b{c.__name__}\b", drawn)] == []
    assert all(issubclass(c, errors.TorchroofError) for c in classes)


# Code in the documents. ```python is compiled; ```python run is run as a whole in a scratch folder;
# ```console run has its lines after "$ " run, each of which must succeed.


@dataclass(frozen=True)
class Block:
    where: str
    tags: tuple[str, ...]
    code: str


def _blocks() -> list[Block]:
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"^```(\S[^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            line = text[: match.start()].count("\n") + 1
            where = f"{path.relative_to(ROOT)}:{line}"
            found.append(Block(where, tuple(match.group(1).split()), match.group(2)))
    return found


BLOCKS = _blocks()
PYTHON = [b for b in BLOCKS if b.tags[0] == "python"]
RUNNABLE = [b for b in BLOCKS if b.tags in (("python", "run"), ("console", "run"))]


@pytest.mark.parametrize("block", PYTHON, ids=lambda b: b.where)
def test_python_in_the_documents_compiles(block: Block) -> None:
    compile(block.code, block.where, "exec")


@pytest.mark.parametrize("block", RUNNABLE, ids=lambda b: b.where)
def test_code_in_the_documents_runs(block: Block, tmp_path: Path) -> None:
    environment = os.environ | {
        "NO_COLOR": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    if block.tags[0] == "python":
        commands = [[sys.executable, "-c", block.code]]
    else:
        commands = [shlex.split(line[2:], comments=True) for line in block.code.splitlines() if line[:2] == "$ "]
    assert commands
    for command in commands:
        run = subprocess.run(
            command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert run.returncode == 0, f"{block.where}: {run.stderr[-2000:]}"


def test_the_readme_is_among_what_is_run() -> None:
    """Were the pattern above wrong, nothing would be run and every test would pass."""
    assert [b for b in RUNNABLE if b.where.startswith("README.md") and b.tags[0] == "python"]
    assert [b for b in RUNNABLE if b.where.startswith("README.md") and b.tags[0] == "console"]


def test_links_between_the_documents_lead_somewhere() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
        for target in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8"))
        if "://" not in target and not (path.parent / target).exists()
    ]
    assert broken == []

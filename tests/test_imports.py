"""The import table: which room may know which. Deny by default: what is not listed here is not allowed."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "torchroof"

# What any room may import, those three among themselves too.
EVERYWHERE = {"torchroof.errors", "torchroof.units", "torchroof.resources"}

# A room is a folder or a file directly in the package. An entry is a room, one module of a room, or one name
# of a module (after a colon); "*" is the whole package.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "units": set(),
    "resources": set(),
    "tensors": set(),
    "work": {"torchroof.tensors"},
    "trace": {"torchroof.tensors"},
    "device": {"torchroof.tensors"},
    "join": {"torchroof.trace", "torchroof.tensors"},
    "roofline": {"torchroof.work", "torchroof.device", "torchroof.tensors"},
    "report": {
        "torchroof.trace",
        "torchroof.join",
        "torchroof.work",
        "torchroof.device",
        "torchroof.roofline",
        "torchroof.tensors",
    },
    "ranks": {
        "torchroof.trace",
        "torchroof.join",
        "torchroof.report",
    },
    "views": {
        "torchroof.report",
        "torchroof.ranks.model",
        "torchroof.device.roof:Ceiling",
        "torchroof.device.roof:Roof",
    },
    "capture": {
        "torchroof.trace.metadata",
        "torchroof.device.roof",
        "torchroof.device.cache",
        "torchroof.tensors",
    },
    "measure": {
        "torchroof.device",
        "torchroof.capture.environment",
        "torchroof.capture.scopes",
        "torchroof.capture.torch_private",
    },
    "workloads": set(),
    "reports": {"*"},
    "rank_reports": {"*"},
    "profiling": {"*"},
    "calibration": {"*"},
    "diagnosis": {"*"},
    "cli": {"*"},
    "__init__": {"*"},
    "__main__": {"torchroof.cli"},
}

SINGLE_FILES = {"errors", "units", "resources", "tensors", "reports", "rank_reports", "profiling", "calibration"}
SINGLE_FILES |= {"__init__", "__main__"}

# Third-party packages: the places that may import them, as paths below the package.
AT_MODULE_LEVEL: dict[str, tuple[str, ...]] = {
    "numpy": tuple(ROOMS.keys() - {"errors", "units", "resources", "__init__", "__main__"}),
    "msgspec": ("trace", "report", "reports", "ranks", "views/tensorboard"),
    "rich": ("views", "cli"),
    "tensorboard": ("views/tensorboard",),
    "werkzeug": ("views/tensorboard/routes",),
    "PIL": ("views/tensorboard",),
    "torch": ("capture", "measure", "workloads"),
}
INSIDE_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "pandas": ("reports", "views/frames"),
    "torch": ("profiling", "calibration", "diagnosis", "cli"),
    "pynvml": ("measure/conditions",),
    # The CLI and `import torchroof` must stay quick, so a few load their tools late.
    "rich": ("reports", "profiling", "calibration"),
    "distributed": ("cli",),
}

# Importing these must not bring these packages along, by any chain of imports at module level.
LIGHT: dict[str, set[str]] = {
    "torchroof": {"torch", "pandas", "rich", "numpy", "msgspec", "tensorboard"},
    "torchroof.reports": {"torch", "pandas", "tensorboard"},
    "torchroof.rank_reports": {"torch", "pandas", "tensorboard"},
    "torchroof.cli": {"torch", "pandas", "tensorboard"},
    "torchroof.profiling": {"torch", "pandas", "tensorboard"},
    "torchroof.diagnosis": {"torch", "pandas", "tensorboard"},
    "torchroof.calibration": {"torch", "pandas", "tensorboard"},
    # TensorBoard imports it when it starts, and does not start where that fails.
    "torchroof.views.tensorboard.plugin": {"torch", "pandas", "numpy", "msgspec", "rich", "PIL"},
    # The verbs are loaded by name, so no chain leads to them.
    **{
        f"torchroof.cli.{v}": {"torch", "pandas", "tensorboard"}
        for v in ("demo", "report", "devices", "explain", "calibrate", "doctor")
    },
}

# Where a vendor's words belong: who speaks to a device, reads its trace, or lists it.
VENDOR_WORDS = re.compile(r"cuda|nvidia|rocm|\bhip(?![a-z])", re.IGNORECASE)
VENDOR_PLACES = (
    "capture",
    "measure",
    "workloads",
    "trace/dialects",
    "device/catalog",
    "cli/demo",
    "cli/calibrate",
    "cli/doctor",
    "calibration",
    # The names of torch's ops, of which aten::cuda is one.
    "work/models/names",
)


@dataclass(frozen=True)
class Import:
    target: str
    """A dotted module; for a name taken out of a module, ``module:name``."""
    line: int
    lazy: bool
    """Inside a function, or only for type checkers."""
    typing_only: bool


def modules(package: Path) -> dict[str, Path]:
    """Every module of a copy of the package by its dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found[".".join(("torchroof", *parts))] = path
    return found


def place(path: Path, package: Path) -> str:
    """``trace/reader`` for trace/reader.py, ``trace/__init__`` for its ``__init__.py``."""
    return path.relative_to(package).with_suffix("").as_posix()


def below(where: str, places: tuple[str, ...]) -> bool:
    return any(where == p or where.startswith(p + "/") for p in places)


def _is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imports(tree: ast.AST, module: str, is_package: bool, known: set[str]) -> Iterator[Import]:
    """All imports of a module, `import_module("literal")` included."""

    def visit(node: ast.AST, lazy: bool, typing_only: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, lazy or typing_only, typing_only)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + (1 if is_package else 0)]
                base = ".".join([*parts, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                target = inner if inner in known else f"{base}:{alias.name}"
                yield Import(target, node.lineno, lazy or typing_only, typing_only)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            first = node.args[0] if node.args else None
            name = first.value if isinstance(first, ast.Constant) else "?"
            yield Import(str(name), node.lineno, lazy, False)
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            for guarded in node.body:
                yield from visit(guarded, lazy, True)
            for otherwise in node.orelse:
                yield from visit(otherwise, lazy, typing_only)
            return
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inner_node in ast.iter_child_nodes(node):
            yield from visit(inner_node, lazy or inside, typing_only)

    yield from visit(tree, False, False)


def _room(name: str) -> str:
    parts = name.split(":")[0].split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def _allows(allowed: set[str], target: str) -> bool:
    module = target.split(":")[0]
    return any(entry in ("*", target) or module == entry or module.startswith(entry + ".") for entry in allowed)


def _own_faults(where: str, room: str, found: Import) -> Iterator[str]:
    if room not in ROOMS:
        return
    own = {"torchroof" if room == "__init__" else f"torchroof.{room}"}
    if not _allows(ROOMS[room] | EVERYWHERE | own, found.target):
        yield f"{where}:{found.line} {room} must not import {found.target}"
    elif room == "__init__" and not found.lazy and not _allows(EVERYWHERE, found.target):
        yield f"{where}:{found.line} torchroof/__init__ may import {found.target} only inside functions"


def _foreign_faults(where: str, found: Import) -> Iterator[str]:
    package = found.target.split(":")[0].split(".")[0]
    if package in sys.stdlib_module_names:
        return
    if below(where, AT_MODULE_LEVEL.get(package, ())):
        return
    if below(where, INSIDE_FUNCTIONS.get(package, ())):
        if not found.lazy:
            yield f"{where}:{found.line} {package} may be imported here only inside functions"
        return
    yield f"{where}:{found.line} must not import {package}"


def _docstrings(tree: ast.AST) -> set[ast.Constant]:
    """Texts that stand as statements of their own: docstrings of modules, classes, functions, attributes."""
    return {n.value for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}


def _vendor_faults(where: str, tree: ast.AST) -> Iterator[str]:
    if below(where, VENDOR_PLACES):
        return
    documentation = _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documentation:
            word = VENDOR_WORDS.search(node.value)
            if word:
                yield f"{where}:{node.lineno} a vendor's word ({word.group()}) belongs in dialects or catalog"


def _eager_reach(start: str, eager: dict[str, set[str]]) -> dict[str, str]:
    """What importing a module imports, each with who imported it."""
    reached, waiting = {start: start}, [start]
    while waiting:
        here = waiting.pop()
        for target in eager.get(here, set()):
            # Importing a.b.c runs a and a.b first.
            parts = target.split(".")
            for module in (".".join(parts[: i + 1]) for i in range(len(parts))):
                if module not in reached:
                    reached[module] = here
                    waiting.append(module)
    return reached


def faults(package: Path) -> list[str]:
    """Every breach of the table in a copy of the package, one line each."""
    known = modules(package)
    found: list[str] = []
    eager: dict[str, set[str]] = {}
    for module, path in known.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        where, room = place(path, package), _room(module)
        if room not in ROOMS:
            found.append(f"{where}: the room {room} is not in the import table")
        eager[module] = set()
        for one in imports(tree, module, path.name == "__init__.py", set(known)):
            if one.target.split(":")[0].split(".")[0] == "torchroof":
                found.extend(_own_faults(where, room, one))
            elif one.target == "?":
                if room not in ("__init__", "cli"):
                    found.append(f"{where}:{one.line} imports a module by a computed name")
            else:
                found.extend(_foreign_faults(where, one))
            if not one.lazy:
                eager[module].add(one.target.split(":")[0])
        found.extend(_vendor_faults(where, tree))
    for start, heavy in LIGHT.items():
        if start in known:
            reached = _eager_reach(start, eager)
            found.extend(f"importing {start} imports {h} (in {reached[h]})" for h in heavy & reached.keys())
    return found


def test_every_room_imports_only_what_the_table_allows() -> None:
    assert "\n".join(faults(PACKAGE)) == ""


# (file to add to, code, what the complaint must say)
SEEDED = [
    (
        "work/seed.py",
        "from torchroof.device.roof import Roof\n",
        "work must not import torchroof.device.roof",
    ),
    ("trace/seed.py", "from ..work.algebra import Work\n", "trace must not import torchroof.work"),
    ("device/seed.py", "import torchroof.trace.table\n", "device must not import torchroof.trace"),
    ("tensors.py", "from torchroof.work import algebra\n", "tensors must not import torchroof.work"),
    ("join/seed.py", "from torchroof.work.algebra import Work\n", "join must not import torchroof.work"),
    ("roofline/seed.py", "def f():\n    import torchroof.report.model\n", "roofline must not import"),
    ("report/seed.py", "from torchroof.views import table\n", "report must not import torchroof.views"),
    ("views/seed.py", "from torchroof.device import cache\n", "views must not import torchroof.device"),
    (
        "views/seed.py",
        "from torchroof.device.roof import _preferred\n",
        "views must not import torchroof.device",
    ),
    ("views/seed.py", "from torchroof.roofline import place\n", "views must not import torchroof.roofline"),
    (
        "capture/seed.py",
        "from torchroof.trace.table import Note\n",
        "capture must not import torchroof.trace",
    ),
    ("capture/seed.py", "from torchroof.report import model\n", "capture must not import torchroof.report"),
    ("workloads/seed.py", "from torchroof.tensors import DType\n", "workloads must not import torchroof"),
    ("ranks/seed.py", "from torchroof.work import standard\n", "ranks must not import torchroof.work"),
    ("views/seed.py", "from torchroof.ranks import merge\n", "views must not import torchroof.ranks"),
    ("report/seed.py", "from torchroof import analyze\n", "report must not import torchroof:analyze"),
    ("units.py", "import numpy\n", "units:1 must not import numpy"),
    ("work/seed.py", "import msgspec\n", "must not import msgspec"),
    ("report/seed.py", "from rich.table import Table\n", "must not import rich"),
    ("views/seed.py", "import tensorboard\n", "must not import tensorboard"),
    ("views/seed.py", "def f():\n    import pandas\n", "must not import pandas"),
    ("views/frames.py", "import pandas\n", "only inside functions"),
    ("report/seed.py", "def f():\n    import torch\n", "must not import torch"),
    ("profiling.py", "import torch\n", "only inside functions"),
    ("profiling.py", "from torchroof.capture import seed\n", "torchroof.profiling imports torch"),
    ("cli/seed.py", "try:\n    import torch.nn\nexcept ImportError:\n    pass\n", "only inside functions"),
    ("report/seed.py", "import requests\n", "must not import requests"),
    ("trace/seed.py", "import importlib\nm = importlib.import_module('torch')\n", "must not import torch"),
    ("trace/seed.py", "import importlib\nm = importlib.import_module('to' + 'rch')\n", "computed name"),
    ("__init__.py", "from torchroof.report import model\n", "only inside functions"),
    ("attic/__init__.py", "", "the room attic is not in the import table"),
    ("join/seed.py", "SYNC = 'cudaDeviceSynchronize'\n", "a vendor's word (cuda)"),
    ("report/seed.py", "def f(n):\n    return n.startswith('NVIDIA H')\n", "a vendor's word (NVIDIA)"),
    ("device/seed.py", "KINDS = ('cpu', 'hip')\n", "a vendor's word (hip)"),
]


@pytest.mark.parametrize(("file", "code", "complaint"), SEEDED, ids=[f"{f}-{c[:24]!r}" for f, c, _ in SEEDED])
def test_a_seeded_breach_is_found(tmp_path: Path, file: str, code: str, complaint: str) -> None:
    copy = _sound_copy(tmp_path)
    assert faults(copy) == []
    target = copy / file
    target.parent.mkdir(exist_ok=True)
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    target.write_text(code + before, encoding="utf-8")
    assert any(complaint in line for line in faults(copy)), faults(copy)


def _sound_copy(tmp_path: Path) -> Path:
    """A small package with every room, in which each imports something that it may."""
    copy = tmp_path / "torchroof"
    files = {(f"{r}.py" if r in SINGLE_FILES else f"{r}/__init__.py"): '"""On CUDA."""\n' for r in ROOMS}
    files |= dict.fromkeys(
        ("device/cache.py", "trace/table.py", "trace/metadata.py", "work/algebra.py", "report/model.py"), ""
    )
    files |= dict.fromkeys(("views/table.py", "roofline/place.py", "join/attribute.py"), "")
    files |= {
        "capture/seed.py": "import torch\nNAME = 'cuda'\n",
        "workloads/seed.py": "import torch\n",
        "cli/seed.py": "def f():\n    import torch\n    from torchroof.capture import seed\n",
        "views/seed.py": "from rich.table import Table\nfrom torchroof.device.roof import Ceiling, Roof\n",
        "views/tensorboard/seed.py": "import tensorboard\n",
        "device/roof.py": "SHIP = 'a chip and its relationship'\n",
        "report/seed.py": "import msgspec\nimport numpy as np\nfrom torchroof.join import attribute\n",
        "views/frames.py": "def f():\n    import pandas\n",
    }
    for file, code in files.items():
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        (copy / file).write_text(code, encoding="utf-8")
    return copy


def _imported_by(code: str) -> set[str]:
    """Top-level packages in sys.modules after running some code in a fresh interpreter."""
    code += "\nimport sys\nprint(*sorted({m.split('.')[0] for m in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("code", ["import torchroof", "import torchroof.cli", "import torchroof.reports"])
def test_importing_it_brings_nothing_heavy_along(code: str) -> None:
    loaded = _imported_by(code)
    assert "torchroof" in loaded
    assert not loaded & {"torch", "pandas", "tensorboard"}
    if code == "import torchroof":
        assert not loaded & {"rich", "numpy", "msgspec"}


def test_reading_a_trace_needs_neither_torch_nor_pandas(tmp_path: Path) -> None:
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 1, "ts": 1.0, "dur": 5.0}
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [op]}), encoding="utf-8")
    for style in ("json", "table"):
        loaded = _imported_by(
            "from torchroof.cli import main\n"
            f"assert main(['report', {str(trace)!r}, '--format', {style!r}]) == 0\nprint()"
        )
        assert "torchroof" in loaded
        assert not loaded & {"torch", "pandas", "tensorboard"}

"""Formulas from outside: a decorator for one's own ops, entry points for packages."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from trace_maker import TraceMaker

from torchroof import analyze
from torchroof.errors import RegistrationError
from torchroof.work import Model, OpCall, Unknown, Work, work_model
from torchroof.work.plugins import GROUP, with_plugins
from torchroof.work.standard import STANDARD


@work_model("mylib::scaled_add", family="pointwise", words="2 per element; reads both, writes the result.")
def scaled_add(call: OpCall) -> Work:
    a, b = call.tensor(0), call.tensor(1)
    return Work.of(2 * a.numel, [a, b], [a.dense()])


def test_the_decorator_makes_a_model_and_changes_nothing_else() -> None:
    assert isinstance(scaled_add, Model) and scaled_add.op == "mylib::scaled_add"
    assert STANDARD.model("mylib::scaled_add") is None
    mine = STANDARD.extended([scaled_add])
    assert mine.model("mylib::scaled_add") is scaled_add and STANDARD.model("mylib::scaled_add") is None


@pytest.mark.parametrize("given", [("", "f", "w"), ("op", " ", "w"), ("op", "f", "")])
def test_an_empty_text_is_refused(given: tuple[str, str, str]) -> None:
    op, family, words = given
    with pytest.raises(RegistrationError, match="is empty"):
        work_model(op, family=family, words=words)


def traced(folder: Path) -> Path:
    """One step of an op that no formula of ours knows, on 4 x 8 float32."""
    t = TraceMaker()
    args = {
        "Input Dims": [[4, 8], [4, 8]],
        "Input type": ["float", "float"],
        "Input Strides": [[8, 1], [8, 1]],
        "Concrete Inputs": ["", ""],
    }
    t.op("mylib::scaled_add", 10, 20, **args)
    return t.save(folder)


def test_a_report_with_an_op_of_ones_own(tmp_path: Path) -> None:
    trace = traced(tmp_path)
    (plain,) = analyze(trace).data.rows
    assert (plain.flops, plain.unknown) == (None, "no work model for mylib::scaled_add")
    (row,) = analyze(trace, models=[scaled_add]).data.rows
    assert (row.flops, row.bytes_read, row.bytes_written) == (64, 256, 128)


def test_a_second_formula_for_an_op_is_refused(tmp_path: Path) -> None:
    trace = traced(tmp_path)
    again = work_model("aten::mm", family="matmul", words="mine")(lambda call: Work.zero())
    with pytest.raises(RegistrationError, match="aten::mm is registered already"):
        analyze(trace, models=[again])


def test_a_formula_that_fails_leaves_its_op_unknown(tmp_path: Path) -> None:
    def fails(call: OpCall) -> Work:
        raise ZeroDivisionError("by zero")

    def lacks(call: OpCall) -> Work:
        raise Unknown("nothing is known")

    for formula, reason in ((fails, "failed: ZeroDivisionError: by zero"), (lacks, "nothing is known")):
        model = work_model("mylib::scaled_add", family="pointwise", words="w")(formula)
        (row,) = analyze(traced(tmp_path), models=[model]).data.rows
        assert row.flops is None and reason in (row.unknown or "")


def test_a_model_of_a_prefix_is_for_what_has_none_of_its_own() -> None:
    wide = work_model("mylib::*", family="pointwise", words="w")(lambda call: Work(1, 1, 1))
    wider = work_model("my*", family="pointwise", words="w")(lambda call: Work(2, 2, 2))
    mine = STANDARD.extended([wider, wide, scaled_add])
    assert mine.model("mylib::scaled_add") is scaled_add
    assert mine.model("mylib::other") is wide and mine.model("mything") is wider
    assert mine.model("aten::mm") is STANDARD.model("aten::mm")


PACKAGE = {
    "mylib/__init__.py": "",
    "mylib/formulas.py": """
from torchroof.work import Work, work_model

@work_model("mylib::scaled_add", family="pointwise", words="2 per element.", source="mylib's kernels")
def scaled_add(call):
    a, b = call.tensor(0), call.tensor(1)
    return Work.of(2 * a.numel, [a, b], [a.dense()])

MODELS = [scaled_add]
""",
    "mylib-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mylib\nVersion: 1.0\n",
    "mylib-1.0.dist-info/entry_points.txt": f"[{GROUP}]\nmylib = mylib.formulas\nbroken = mylib.missing\n",
    "mylib-1.0.dist-info/RECORD": "",
}


def test_an_installed_package_brings_its_formulas_along(tmp_path: Path) -> None:
    """As pip lays a package out, found by a fresh interpreter: the good entry counts, the broken one is said."""
    site = tmp_path / "site"
    for name, text in PACKAGE.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    code = (
        f"import sys, json; sys.path.insert(0, {str(site)!r})\n"
        "from torchroof import analyze\n"
        f"data = analyze({str(traced(tmp_path))!r}).data\n"
        "from torchroof.cli import main\n"
        "assert main(['explain', '--list', 'mylib']) == 0\n"
        "print(json.dumps([data.rows[0].flops, [n.text for n in data.notes if n.kind == 'work models']]))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    flops, notes = json.loads(run.stdout.splitlines()[-1])
    assert flops == 64
    assert notes == [
        "The work models of mylib (mylib.missing) are left out: ModuleNotFoundError: No module named 'mylib.missing'"
    ]
    assert "mylib's kernels" in run.stdout


class Entry:
    """An entry point of a package that is not there."""

    dist = None

    def __init__(self, value: object, name: str = "entry") -> None:
        self.name, self.value, self._loaded = name, f"pack:{name}", value

    def load(self) -> object:
        return self._loaded


def test_what_an_entry_point_may_lead_to() -> None:
    other = work_model("mylib::other", family="norm", words="w")(lambda call: Work.zero())
    holder = type("Holder", (), {"MODELS": (other,)})
    for loaded in (other, [other], holder):
        found = with_plugins(STANDARD, [Entry(loaded)])  # type: ignore[list-item]
        assert found.problems == () and found.registry.model("mylib::other") is other


@pytest.mark.parametrize(
    ("loaded", "said"),
    [
        (3, "it is no Model"),
        ([], "it is no Model"),
        ([scaled_add, 3], "it is no Model"),
        (
            work_model("aten::mm", family="matmul", words="w")(lambda call: Work.zero()),
            "aten::mm is registered already",
        ),
    ],
)
def test_what_cannot_be_used_is_left_out_and_said(loaded: object, said: str) -> None:
    found = with_plugins(STANDARD, [Entry(loaded, "bad"), Entry(scaled_add, "good")])  # type: ignore[list-item]
    assert found.registry.model("mylib::scaled_add") is scaled_add
    assert found.registry.models["aten::mm"] is STANDARD.models["aten::mm"]
    (problem,) = found.problems
    assert problem.startswith("The work models of pack:bad are left out: ") and said in problem


def test_a_real_entry_point_is_what_is_expected() -> None:
    entry = EntryPoint("mylib", "torchroof.work.models.fourier", GROUP)
    assert "registered already" in with_plugins(STANDARD, [entry]).problems[0]

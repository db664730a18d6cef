"""The report as users hold it: saved and restored whole, as DataFrames, and printed."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchroof.device.roof import Ceiling
from torchroof.errors import OutputError, ReportFileError, TraceError, UnknownDevice
from torchroof.report import codec
from torchroof.report.model import SCHEMA, Kernel, ReportData, Row, Step, Totals
from torchroof.reports import Report, analyze, is_saved_report, load

INTEGERS = st.integers(-(2**63), 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    int: INTEGERS,
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    str: st.text(max_size=8),
    type(None): st.none(),
    Any: JSON,
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of an annotated type of the model, built from its annotations: new fields are covered unasked."""
    if hint in PLAIN:
        return PLAIN[hint]
    if get_origin(hint) is tuple:
        return st.lists(values_of(get_args(hint)[0]), max_size=2).map(tuple)
    if get_origin(hint) is dict:
        return st.dictionaries(st.text(max_size=5), values_of(get_args(hint)[1]), max_size=2)
    if get_args(hint):
        return st.one_of(*map(values_of, get_args(hint)))
    assert dataclasses.is_dataclass(hint) or issubclass(hint, msgspec.Struct)
    return st.builds(hint, **{n: values_of(h) for n, h in get_type_hints(hint).items() if n != "schema"})


@settings(max_examples=60)
@given(values_of(ReportData))
def test_a_report_comes_back_whole(data: ReportData) -> None:
    rows = tuple(msgspec.structs.replace(row, ceiling=None) for row in data.rows)  # an index into what is made up, too
    data = msgspec.structs.replace(data, rows=rows)
    assert codec.decode(codec.encode(data), "it") == data


def small(**more: Any) -> ReportData:
    totals = dict.fromkeys(get_type_hints(Totals), 0) | {"causes": {"host": 0}, "overhead": None, "mfu": None}
    return ReportData(**{"totals": Totals(**totals), "steps": 2, **more})


@pytest.mark.parametrize("name", ["report.json", "report.json.gz"])
def test_save_and_load(tmp_path: Path, name: str) -> None:
    ceiling = Ceiling(kind="launch", value=1.5e-6, unit="s", origin="given", source="x")
    report = Report(small(environment={"torch": "2.13", "ceiling": dataclasses.asdict(ceiling)}))
    report.save(tmp_path / name)
    text = (tmp_path / name).read_bytes()
    assert text.startswith(b"\x1f\x8b") == name.endswith(".gz")
    assert load(tmp_path / name).data == report.data
    assert is_saved_report(tmp_path / name)
    plain = gzip.decompress(text) if name.endswith(".gz") else text
    assert plain.decode() == report.to_json() + "\n"
    assert next(iter(json.loads(plain))) == "schema" and json.loads(plain)["schema"] == SCHEMA


def test_unknown_is_null_in_json() -> None:
    assert json.loads(Report(small()).to_json())["totals"]["mfu"] is None


GOOD = codec.encode(small())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not a torchroof report"),
        (b"{", "not a torchroof report"),
        (b"[1]", "not a torchroof report"),
        (b"\xff\xfe", "not a torchroof report"),
        (b"{}", "has no schema"),
        (b'{"traceEvents": []}', "is a trace, not a saved report; read it with torchroof.analyze"),
        (b'[{"ph": "X"}]', "is a trace"),
        (GOOD.replace(b"report/1", b"report/9"), "report/9"),
        (GOOD.replace(b'"steps":2', b'"steps":"two"'), "damaged"),
        (GOOD[:-20], "not a torchroof report"),
        (gzip.compress(GOOD)[:-12], "damaged gzip"),
    ],
)
def test_what_cannot_be_loaded_says_why_in_one_line(tmp_path: Path, text: bytes, words: str) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(text)
    with pytest.raises(ReportFileError, match=words) as caught:
        load(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_report(tmp_path: Path) -> None:
    with pytest.raises(ReportFileError, match="cannot read"):
        load(tmp_path / "none.json")
    assert not is_saved_report(tmp_path / "none.json")


def test_save_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        Report(small()).save(tmp_path / "missing" / "report.json")


def test_analyze_refuses_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHROOF_CACHE_DIR", str(tmp_path / "empty"))
    with pytest.raises(UnknownDevice):
        analyze(tmp_path / "none.json", device="no such device")
    with pytest.raises(UnknownDevice, match="torchroof calibrate"):
        analyze(tmp_path / "none.json", device="local")
    with pytest.raises(TraceError):
        analyze(tmp_path / "none.json")


def test_dataframes_keep_integers_and_unknowns() -> None:
    pandas = pytest.importorskip("pandas")
    big = 2**53 + 1  # the first integer that a float cannot hold
    kernels = (
        Kernel(name="a", path=None, phase="forward", op=None, kernels=1, kernel_ns=big),
        Kernel(name="b", path="net", phase=None, op="aten::mm", kernels=2, kernel_ns=7),
    )
    steps = (Step(index=0, ns=5, counted=False), Step(index=1, ns=6, counted=True))
    report = Report(small(kernels=kernels, per_step=steps))
    assert str(report.kernels["kernel_ns"].dtype) == "Int64"
    assert report.kernels["kernel_ns"].sum() == big + 7
    assert report.kernels["path"][0] is pandas.NA
    assert list(report.steps["counted"]) == [False, True] and list(report.steps["ns"]) == [5, 6]
    assert list(report.rows.columns) == list(get_type_hints(Row)) and len(report.rows) == 0
    assert str(report.rows["flops"].dtype) == "Int64" and str(report.rows["efficiency"].dtype) == "Float64"


def test_the_report_module_is_light() -> None:
    code = "import sys, torchroof.reports; print({'torch', 'pandas', 'tensorboard', 'rich'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_every_way_to_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    monkeypatch.setenv("COLUMNS", "90")
    report = Report(small())
    assert str(report).startswith("torchroof") and max(map(len, str(report).splitlines())) <= 90
    console = Console(width=70, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(report)
    assert console.export_text().startswith("torchroof")
    picture, table = report._repr_html_().split("</svg>")
    assert picture.startswith("<svg") and table.lstrip().startswith("<pre")
    assert "2 steps" in repr(report)


def test_the_documentation_names_every_key_of_the_model() -> None:
    """And none of the tables names one that is not there."""
    from torchroof.ranks import model as of_ranks
    from torchroof.report import model

    text = (Path(__file__).resolve().parent.parent / "docs" / "report-schema.md").read_text(encoding="utf-8")
    values = [*vars(model).values(), *vars(of_ranks).values()]
    kinds = [kind for kind in values if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    keys = {name for kind in kinds for name in get_type_hints(kind)} | set(get_type_hints(Ceiling))
    keys |= {"shape", "dtype"}
    assert [key for key in sorted(keys) if not re.search(rf"[`{{ ]{key}[`}},]", text)] == []
    for phrase in (*model.CAUSES, *model.PHASES):
        assert f"`{phrase}`" in text
    tables = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = {name for cell in tables for name in re.findall(r"`(\w+)`", cell)}
    assert named - keys == set()

"""Every route of the plugin, asked over HTTP of a real TensorBoard, under both of its loaders."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
import pytest
from served import Server

import torchroof
from torchroof.cli import main
from torchroof.report import board as lens
from torchroof.report import codec

LOADERS = ("true", "false")


def place(run: str, step: int, prefix: str = "") -> str:
    return urlencode({f"{prefix}run": run, f"{prefix}tag": "torchroof/report", f"{prefix}step": step})


def answer(server: Server, route: str) -> Any:
    status, headers, body = server.get(route)
    assert status == 200 and headers["Content-Type"].startswith("application/json")
    return json.loads(body)


@pytest.fixture(scope="module", params=LOADERS)
def loaded(request: pytest.FixtureRequest, start: Callable[..., Server], runs: Path) -> Server:
    server = start(runs, f"--load_fast={request.param}")
    waited_for(server, lambda listed: len(listed["series"]) == 2)
    return server


def waited_for(server: Server, enough: Callable[[Any], bool]) -> Any:
    """The list of windows, when TensorBoard has read enough of the logdir."""
    import time

    for _ in range(300):
        listed = answer(server, "windows")
        if enough(listed):
            return listed
        time.sleep(0.1)
    raise AssertionError(f"TensorBoard did not read the logdir: {listed}\n{''.join(server.log)}")


def saved(runs: Path, name: str, step: int) -> Path:
    whole = runs / name / "torchroof.report.json"
    return whole if whole.exists() else runs / name / f"torchroof.{step}.report.json"


def test_the_tab_is_listed(board: Server) -> None:
    listing = json.loads(board.get("/data/plugins_listing")[2])
    ours = listing["torchroof"]
    assert ours["enabled"] is True and ours["tab_name"] == "torchroof"
    assert ours["loading_mechanism"]["module_path"].endswith("/static/index.js")


def test_windows_are_listed_by_run_with_rising_steps(loaded: Server) -> None:
    listed = answer(loaded, "windows")
    assert listed["notes"] == []
    found = {one["run"]: [window["step"] for window in one["windows"]] for one in listed["series"]}
    # Windows of three steps, of which the last ends at 2, 5 and 8.
    assert found == {"first/torchroof": [2, 5, 8], "second/torchroof": [2]}
    assert {one["tag"] for one in listed["series"]} == {"torchroof/report"}


@pytest.mark.parametrize(("name", "step"), [("first", 2), ("first", 8), ("second", 2)])
def test_the_report_is_byte_for_byte_what_the_command_line_prints(
    loaded: Server, runs: Path, capfdbinary: Any, name: str, step: int
) -> None:
    served = loaded.get(f"report?{place(f'{name}/torchroof', step)}")[2]
    assert main(["report", str(saved(runs, name, step)), "--format", "json"]) == 0
    assert served == capfdbinary.readouterr().out


def test_page_and_details_are_the_lens_of_that_report(loaded: Server, runs: Path) -> None:
    data = torchroof.load(saved(runs, "first", 5)).data
    for route, shown in (("page", lens.board), ("details", lens.details)):
        served = answer(loaded, f"{route}?{place('first/torchroof', 5)}")
        made = json.loads(codec.encode(shown(data)))
        if route == "page":
            for one in (served, made):  # texts of ages, made at another time
                one["headline"].pop("ceilings")
        assert served == made


def test_the_comparison_is_the_lens_of_both(loaded: Server, runs: Path) -> None:
    query = f"{place('second/torchroof', 2)}&{place('first/torchroof', 8, 'base_')}"
    served = answer(loaded, f"comparison?{query}")
    made = lens.comparison(torchroof.load(saved(runs, "second", 2)).data, torchroof.load(saved(runs, "first", 8)).data)
    assert served["tree"] == json.loads(codec.encode(made))["tree"]
    # The head of the first run is a layer, that of the second a container of two.
    assert [entry["path"] for entry in served["removed"]] == ["head"]


def test_static_files_are_those_of_the_package_and_no_others(board: Server) -> None:
    kinds = {"index.js": "text/javascript", "torchroof.js": "text/javascript", "torchroof.css": "text/css"}
    for name, kind in kinds.items():
        status, headers, body = board.get(f"static/{name}")
        assert status == 200 and headers["Content-Type"].startswith(kind) and body
        assert headers["X-Content-Type-Options"] == "nosniff"
    assert (
        b"ISC License" in board.get("static/LICENSES.txt")[2] or b"Mike Bostock" in board.get("static/LICENSES.txt")[2]
    )
    for name in ("../page.py", "..%2fpage.py", "%2e%2e/page.py", "/etc/passwd", "", ".", "nothing.js", "index.js/"):
        assert board.get(f"static/{name}")[0] == 404, name


@pytest.mark.parametrize("route", ["windows", "report", "page", "details", "comparison", "static/index.js"])
def test_only_get_and_head(board: Server, route: str) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        status, headers, _ = board.get(f"{route}?{place('first/torchroof', 2)}", method)
        assert status == 405 and headers["Allow"] == "GET, HEAD", method
    if route in ("windows", "static/index.js"):
        status, _, body = board.get(route, "HEAD")
        assert status == 200 and body == b""


@pytest.mark.parametrize("route", ["report", "page", "details", "comparison"])
def test_a_window_that_is_not_there_is_one_line(board: Server, route: str) -> None:
    asked = {
        "": 400,
        "run=first%2Ftorchroof": 400,
        "run=first%2Ftorchroof&tag=torchroof%2Freport&step=two": 400,
        place("first/torchroof", 3): 404,
        place("../../etc", 2): 404,
        urlencode({"run": "first/torchroof", "tag": "torchroof/layers", "step": 2}): 404,
    }
    for query, status in asked.items():
        found, _, body = board.get(f"{route}?{query}")
        assert found == status and body.count(b"\n") == 1 and b"Traceback" not in body, query


@pytest.mark.parametrize("loader", LOADERS)
def test_thirty_windows_of_one_run_are_all_there(
    start: Callable[..., Server], runs: Path, tmp_path: Path, loader: str
) -> None:
    from torchroof.views.tensorboard.logdir import write

    report = torchroof.load(saved(runs, "first", 2))
    parts = (report.data, report.headline, report.lines(top=3), tmp_path)
    for step in range(30):
        assert write(*parts, step=step) == "torchroof"
    server = start(tmp_path, f"--load_fast={loader}")
    listed = waited_for(server, lambda listed: listed["series"] and len(listed["series"][0]["windows"]) == 30)
    assert [window["step"] for window in listed["series"][0]["windows"]] == list(range(30))
    assert answer(server, f"report?{place('torchroof', 17)}")["schema"] == "torchroof.report/1"


@pytest.mark.parametrize("loader", LOADERS)
def test_windows_through_a_writer_are_all_there_after_a_restart(
    start: Callable[..., Server], tmp_path: Path, loader: str
) -> None:
    """The writer's run has the user's own scalars, which begin again at step 0, as a training does."""
    import torch
    from torch.utils.tensorboard import SummaryWriter

    model = torch.nn.Linear(4, 4)
    expected = []
    for suffix in ("a", "b"):
        with SummaryWriter(str(tmp_path / "exp"), filename_suffix=suffix) as writer:
            plan = torchroof.schedule(warmup=1, active=1, repeat=2)
            with torchroof.profile(model, writer=writer, schedule=plan, measure=False) as prof:
                for step in range(4):
                    model(torch.ones(2, 4)).sum().backward()
                    writer.add_scalar("loss", 1 / (step + 1), step)
                    prof.step()
                    expected += [report.to_json() for report in prof.reports]
        assert prof.notes == ()
    server = start(tmp_path, f"--load_fast={loader}")
    listed = waited_for(server, lambda listed: listed["series"] and len(listed["series"][0]["windows"]) == 4)
    (series,) = listed["series"]
    steps = [window["step"] for window in series["windows"]]
    assert series["run"] == "exp" and steps == sorted(set(steps))
    found = [server.get(f"report?{place('exp', step)}")[2].decode() for step in steps]
    assert [json.loads(text) for text in found] == [json.loads(text) for text in expected]


def test_hundreds_of_runs_are_listed_without_their_reports(
    start: Callable[..., Server], runs: Path, tmp_path: Path
) -> None:
    import shutil

    report = torchroof.load(saved(runs, "second", 2))
    report.write_logdir(tmp_path / "run0")
    for number in range(1, 300):
        shutil.copytree(tmp_path / "run0", tmp_path / f"run{number}")
    server = start(tmp_path, "--bind_all")
    listed = waited_for(server, lambda listed: len(listed["series"]) == 300)
    assert len(server.get("windows")[2]) < 300 * 250 and not listed["notes"]  # names and steps, no figures
    asked = answer(server, f"report?{place('run217/torchroof', listed['series'][0]['windows'][0]['step'])}")
    assert asked == answer(server, f"report?{place('run0/torchroof', listed['series'][0]['windows'][0]['step'])}")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no second loopback address")
def test_bound_to_all_addresses_it_answers_at_each(start: Callable[..., Server], runs: Path) -> None:
    port = urlsplit(start(runs, "--bind_all").url).port
    for address in ("127.0.0.1", "127.0.0.2"):
        there = Server(f"http://{address}:{port}/", [])
        waited_for(there, lambda listed: len(listed["series"]) == 2)
        status, headers, script = there.get("static/torchroof.js")
        assert status == 200 and headers["Content-Type"].startswith("text/javascript") and b"torchroof's page" in script


def test_summaries_that_are_not_ours_are_passed_over_with_a_note(
    start: Callable[..., Server], runs: Path, tmp_path: Path
) -> None:
    """Newer, foreign, damaged and empty ones stand beside a good one; TensorBoard and the good one are untouched."""
    write_foreign(tmp_path, runs)
    server = start(tmp_path)
    listed = waited_for(server, lambda listed: len(listed["series"]) == 4 and len(listed["notes"]) == 3)
    notes = "\n".join(listed["notes"])
    assert "newer: torchroof/report was passed over, it has the schema torchroof.report/2" in notes
    assert "foreign: torchroof/report was passed over, it is no report of torchroof's" in notes
    assert answer(server, f"page?{place('good/torchroof', 2)}")["schema"] == "torchroof.page/1"
    told = {run: answer(server, f"page?{place(run, 1)}")["unreadable"] for run in ("damaged", "cut", "lying")}
    assert "damaged" in told["damaged"]
    assert "ends too early" in told["cut"]
    assert "'torchroof.report/9'" in told["lying"]
    assert server.get("/data/plugins_listing")[0] == 200
    assert "Traceback" not in "".join(server.log)


def write_foreign(folder: Path, runs: Path) -> None:
    """One run each of what may come in our name."""
    import gzip

    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    from torchroof.views.tensorboard import summary

    report = torchroof.load(saved(runs, "first", 2))
    report.write_logdir(folder / "good")
    whole = summary.report(report.data).tensor.string_val[0]
    blobs: dict[str, tuple[bytes, list[bytes]]] = {
        "newer": (b"torchroof.report/2", [b"{}"]),
        "foreign": (b"\xff\xfe", [b"x"]),
        "empty": (b"torchroof.report/1", []),
        "damaged": (b"torchroof.report/1", [b"\x1f\x8bnothing"]),
        "cut": (b"torchroof.report/1", [whole[: len(whole) // 2]]),
        "lying": (b"torchroof.report/1", [gzip.compress(b'{"schema": "torchroof.report/9"}')]),
    }
    for name, (content, strings) in blobs.items():
        value = summary.report(msgspec.structs.replace(report.data))
        value.metadata.plugin_data.content = content
        del value.tensor.string_val[:]
        value.tensor.string_val.extend(strings)
        value.tensor.tensor_shape.dim[0].size = len(strings)
        event = Event(wall_time=1.0, step=1)
        event.summary.value.append(value)
        writer = EventFileWriter(str(folder / name))
        writer.add_event(event)
        writer.close()

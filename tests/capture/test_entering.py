"""What is refused on entering, before anything is recorded, and what the user then has in hand."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules import module as hooks

import torchroof
from torchroof.device.roof import Ceiling
from torchroof.errors import (
    CaptureError,
    CeilingsError,
    OptionError,
    OutputError,
    ProfilerRunning,
    TorchroofError,
    UnknownDevice,
)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"model": "net"}, OptionError, "model must be"),
        ({"schedule": (1, 2, 3)}, OptionError, r"torchroof\.schedule"),
        ({"max_events": 0}, OptionError, "max_events must be a whole number over 0, not 0"),
        ({"max_events": 1e6}, OptionError, "max_events"),
        ({"device": "RTX 9999 Ultra"}, UnknownDevice, "9999"),
        ({"ceilings": "absent.json"}, CeilingsError, r"absent\.json"),
    ],
)
def test_wrong_arguments_raise_on_entering(arguments: dict[str, Any], error: type[TorchroofError], words: str) -> None:
    prof = torchroof.profile(**arguments)
    entered = False
    with pytest.raises(error, match=words) as caught, prof:
        entered = True
    assert not entered and "\n" not in str(caught.value)
    assert not hooks._global_forward_hooks and not torch.autograd._profiler_enabled()
    with torchroof.profile(measure=False):  # and the next one may begin
        pass


def test_a_logdir_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write to the logdir"):
        torchroof.profile(logdir=tmp_path / "file" / "runs", measure=False).__enter__()


def test_a_running_torch_profiler_is_left_alone() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        torch.ones(3).exp_()
        with pytest.raises(ProfilerRunning, match=r"leave that profiler first, .* torchroof\.analyze"):
            torchroof.profile(measure=False).__enter__()
        torch.ones(3).sin_()
    names = {e.name for e in theirs.events()}
    assert {"aten::exp_", "aten::sin_"} <= names


def test_no_nesting_and_no_second_entering() -> None:
    with torchroof.profile(measure=False) as prof:
        with pytest.raises(CaptureError, match="already recording"):
            torchroof.profile(measure=False).__enter__()
        torch.ones(2)
    assert prof.report.data.steps == 1
    with pytest.raises(CaptureError, match="entered before"):
        prof.__enter__()


def test_no_report_before_there_is_one(tmp_path: Path) -> None:
    prof = torchroof.profile(measure=False)
    with pytest.raises(CaptureError, match="nothing has been recorded"):
        _ = prof.report
    with prof:
        with pytest.raises(CaptureError, match="no window has closed yet"):
            _ = prof.report
        with pytest.raises(CaptureError, match="no window has closed yet"):
            prof.export_trace(tmp_path / "x.json")
    assert prof.report is prof.report


def test_exported_traces(tmp_path: Path) -> None:
    with torchroof.profile(nn.ReLU(), measure=False) as prof:
        torch.ones(2)
    prof.export_trace(tmp_path / "t.json")
    prof.export_trace(str(tmp_path / "t.json.gz"))
    plain = (tmp_path / "t.json").read_bytes()
    assert gzip.decompress((tmp_path / "t.json.gz").read_bytes()) == plain
    found = json.loads(plain)
    assert found["host_name"] == "" and found["torchroof"]["version"] == 1
    with pytest.raises(OutputError, match="cannot write"):
        prof.export_trace(tmp_path / "absent" / "t.json")


def test_the_run_tells_its_environment_without_names() -> None:
    import getpass
    import socket

    with torchroof.profile(measure=False) as prof:
        torch.ones(2)
    told = prof.report.data.environment
    assert told["torch"] == torch.__version__ and told["threads"] == torch.get_num_threads()
    assert told["float32_matmul_precision"] == "highest" and told["rank"] is None
    words = {str(value) for value in told.values()}
    assert socket.gethostname() not in words and getpass.getuser() not in words


def test_torchs_new_precision_switches_do_not_stop_a_run() -> None:
    """Once they are used torch raises where the old ones are read."""
    code = (
        "import torch, torchroof\n"
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'\n"
        "with torchroof.profile(measure=False) as prof: torch.ones(2)\n"
        "print(prof.report.data.environment['allow_tf32_matmul'], [n.text for n in prof.report.data.notes])\n"
        "from torchroof.measure.conditions import cache_key; cache_key(torch.device('cpu'))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("True ") and "lost" not in run.stdout


def test_a_fault_in_gathering_facts_costs_no_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchroof.capture import window

    def fail() -> None:
        raise ZeroDivisionError("seeded")

    monkeypatch.setattr(window, "environment", fail)
    with torchroof.profile(measure=False) as prof:
        torch.ones(2).exp_()
    assert prof.report.data.steps == 1
    assert any("ZeroDivisionError: seeded" in note.text for note in prof.report.data.notes)


def test_ceilings_given_go_before_measured_ones() -> None:
    given = Ceiling(
        kind="compute",
        precision="float32",
        pipe="vector",
        value=123e9,
        unit="FLOP/s",
        origin="given",
        source="a test",
    )
    with torchroof.profile(ceilings=[given]) as prof:
        torch.ones(4, 4) @ torch.ones(4, 4)
    assert prof.report.data.devices[0].ceilings == (given,)


def test_the_logdir_has_trace_report_and_scalars(tmp_path: Path) -> None:
    model = nn.Linear(4, 4)
    with torchroof.profile(model, logdir=tmp_path, name="exp1", measure=False) as prof:
        for _ in range(4):
            model(torch.ones(2, 4)).sum().backward()
            model.zero_grad()
            prof.step()
        files = {p.name.split(".")[0] + "".join(p.suffixes[:4]) for p in (tmp_path / "exp1").iterdir()}
        assert "torchroof.report.json" in files  # as soon as the window has closed
    assert prof.notes == ()
    restored = torchroof.load(tmp_path / "exp1" / "torchroof.report.json")
    assert restored.data == prof.report.data and restored.data.steps == 3
    again = torchroof.analyze(tmp_path / "exp1" / "torchroof.trace.json.gz")
    assert again.data.totals.kernel_ns == restored.data.totals.kernel_ns
    assert list((tmp_path / "exp1" / "torchroof").glob("events.out.tfevents.*"))


def test_a_writer_of_the_users_receives_what_tensorboard_shows(tmp_path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    model, writer = nn.Linear(4, 4), SummaryWriter(str(tmp_path / "mine"))
    plan = torchroof.schedule(warmup=1, active=1, repeat=2)
    with torchroof.profile(model, writer=writer, logdir=tmp_path / "ours", schedule=plan, measure=False) as prof:
        for _ in range(4):
            model(torch.ones(2, 4)).sum().backward()
            prof.step()
    writer.close()
    assert prof.notes == ()
    (file,) = (tmp_path / "mine").iterdir()  # one file: the user's own
    content = file.read_bytes()
    assert content.count(b"torchroof/report") == 2
    names = {path.name for path in (tmp_path / "ours").iterdir()}
    assert {"torchroof.1.report.json", "torchroof.3.report.json"} <= names and "torchroof" not in names
    with pytest.raises(OptionError, match="open"):
        torchroof.profile(model, writer=writer, measure=False).__enter__()


def test_windows_of_one_profile_are_one_run_and_those_of_the_next_another(tmp_path: Path) -> None:
    model = nn.Linear(4, 4)
    for _ in range(2):
        plan = torchroof.schedule(warmup=0, active=1, repeat=3)
        with torchroof.profile(model, logdir=tmp_path, schedule=plan, measure=False) as prof:
            for _ in range(3):
                model(torch.ones(2, 4)).sum()
                prof.step()
        assert prof.notes == ()
    runs = {path.name: len(list(path.iterdir())) for path in tmp_path.iterdir() if path.is_dir()}
    assert runs == {"torchroof": 3, "torchroof-2": 3}


def test_without_torch_one_line_says_how_to_get_it() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import torchroof\n"
        "try: torchroof.profile().__enter__()\n"
        "except torchroof.errors.TorchMissing as why: print(why)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'torchroof[torch]'" in run.stdout and run.stdout.count("\n") == 1


@pytest.mark.filterwarnings("ignore")
def test_a_torch_profiler_inside_the_block_costs_the_window_and_no_more() -> None:
    model = nn.Linear(4, 4)
    with torchroof.profile(model, measure=False, schedule=torchroof.schedule(0, 0, 3)) as prof:
        for number in range(4):
            if number == 1:
                with torch.profiler.profile():
                    model(torch.ones(2, 4))
            prof.step()
    assert any("another torch profiler was started inside the block" in note for note in prof.notes)
    with pytest.raises(CaptureError, match="another torch profiler"):
        prof.report  # noqa: B018


def test_a_user_s_profiler_started_while_the_schedule_waits_is_left_alone() -> None:
    model = nn.Linear(4, 4)
    waiting = torchroof.schedule(1, 0, 2)
    with torchroof.profile(model, measure=False, schedule=waiting) as prof, torch.profiler.profile() as users:
        for _ in range(3):
            model(torch.ones(2, 4))
            prof.step()
    assert sum((e.key == "aten::addmm" and e.count) or 0 for e in users.key_averages()) == 3
    assert prof.notes[0] == "no window was opened at step 1: another torch profiler was recording"


def test_of_two_threads_one_enters() -> None:
    entered, refused = [], []
    meet = threading.Barrier(2, timeout=60)

    def go() -> None:
        meet.wait()
        try:
            with torchroof.profile(measure=False) as prof:
                entered.append(prof)
                meet.wait()
        except CaptureError as why:
            refused.append(why)
            meet.wait()

    threads = [threading.Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(entered) == len(refused) == 1


def test_steps_and_the_end_may_come_from_another_thread() -> None:
    model = nn.Linear(4, 4)
    prof = torchroof.profile(model, measure=False, schedule=torchroof.schedule(0, 0, 2))
    prof.__enter__()

    def rest() -> None:
        for _ in range(2):
            model(torch.ones(2, 4))
            prof.step()
        prof.__exit__(None, None, None)

    thread = threading.Thread(target=rest)
    thread.start()
    thread.join()
    assert sum(r.calls for r in prof.report.data.rows if r.op == "aten::addmm") >= 1

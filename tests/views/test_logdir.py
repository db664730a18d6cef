"""The folder for TensorBoard, read back with TensorBoard's own reader."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import picture_maker
import pytest
import sample

from torchroof.errors import OutputError
from torchroof.report import codec

pytest.importorskip("tensorboard")

from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_BLOB_SEQUENCE

from torchroof.views.tensorboard import summary
from torchroof.views.tensorboard.logdir import write


def values(folder: Path) -> dict[str, tuple[int, Any]]:
    """By tag: the step, and the event's value."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    (file,) = (folder / "torchroof").glob("events.out.tfevents.*")
    events = list(EventFileLoader(str(file)).Load())
    return {value.tag: (event.step, value) for event in events for value in event.summary.value}


def test_scalars_and_text_come_back(tmp_path: Path) -> None:
    trace = tmp_path / "given.json.gz"
    trace.write_bytes(b"trace")
    folder = tmp_path / "runs" / "exp1"
    write(sample.data(), sample.headline(), sample.grouped(top=4), folder, trace)
    found = values(folder)
    step, step_ms = found["torchroof/step_ms"]
    assert step == 2  # the index of the last step
    assert step_ms.tensor.float_val[0] == pytest.approx(20.0)
    assert step_ms.metadata.plugin_data.plugin_name == "scalars"
    # 16.6 ms of host over two steps.
    assert found["torchroof_causes_ms/host"][1].tensor.float_val[0] == pytest.approx(8.3)
    causes = [v.tensor.float_val[0] for tag, (_, v) in found.items() if tag.startswith("torchroof_causes_ms/")]
    assert sum(causes) == pytest.approx(20.0)
    assert found["torchroof/mfu"][1].tensor.float_val[0] == pytest.approx(0.066)
    table = found["torchroof/layers"][1]
    assert table.metadata.plugin_data.plugin_name == "text"
    assert "`bert.embeddings`" in table.tensor.string_val[0].decode()
    assert (folder / "torchroof.trace.json.gz").read_bytes() == b"trace"
    assert codec.decode((folder / "torchroof.report.json").read_bytes(), "it") == sample.data()


def test_the_roofline_is_an_image(tmp_path: Path) -> None:
    picture = picture_maker.drawn(*picture_maker.ROWS)
    write(sample.data(), sample.headline(), sample.grouped(), tmp_path, picture=picture)
    value = values(tmp_path)["torchroof/roofline"][1]
    assert value.metadata.plugin_data.plugin_name == "images"
    assert value.metadata.data_class == DATA_CLASS_BLOB_SEQUENCE
    width, height, png = value.tensor.string_val
    assert (width, height) == (b"1800", b"1200") and png.startswith(b"\x89PNG\r\n")
    # A PNG's size stands in its first chunk, big endian.
    assert [int.from_bytes(png[at : at + 4], "big") for at in (16, 20)] == [1800, 1200]


def test_what_is_unknown_has_no_scalar(tmp_path: Path) -> None:
    write(sample.data(), sample.headline(mfu=None, step_efficiency=None), sample.grouped(), tmp_path, step=7)
    found = values(tmp_path)
    assert "torchroof/mfu" not in found and "torchroof/step_efficiency" not in found
    assert {step for step, _ in found.values()} == {7}
    assert (tmp_path / "torchroof.7.report.json").exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match="cannot write to"):
        write(sample.data(), sample.headline(), sample.grouped(), tmp_path / "file")


def test_every_row_of_the_text_has_as_many_cells_as_its_heading() -> None:
    evil = msgspec.structs.replace(sample.LAYERS[0], label="a|b`c\n<img src=x>", type="![x](y)")
    text = summary.markdown(sample.headline(worst="<img src=x> | `"), sample.grouped((evil, *sample.LAYERS[1:])))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({row.count("|") for row in rows}) == 1
    assert "<img" not in text
    assert "`a¦b'c?‹img src=x›`" in text and "`![x](y)`" in text


def test_the_report_is_a_blob_for_the_tab(tmp_path: Path) -> None:
    write(sample.data(), sample.headline(), sample.grouped(), tmp_path)
    step, value = values(tmp_path)["torchroof/report"]
    assert step == 2
    assert value.metadata.plugin_data.plugin_name == "torchroof"
    assert value.metadata.plugin_data.content == b"torchroof.report/1"
    assert value.metadata.data_class == DATA_CLASS_BLOB_SEQUENCE
    (blob,) = value.tensor.string_val
    assert gzip.decompress(blob) == codec.encode(sample.data())


def written(folder: Path) -> dict[str, list[int]]:
    """The steps of each run, as TensorBoard's reader finds them in the order of its files."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    found: dict[str, list[int]] = {}
    for file in sorted(folder.glob("*/events.out.tfevents.*")):
        events = [event for event in EventFileLoader(str(file)).Load() if event.summary.value]
        found.setdefault(file.parent.name, []).extend(event.step for event in events if event.summary.value)
    return {run: sorted(set(steps), key=steps.index) for run, steps in found.items()}


def test_steps_of_a_run_rise_and_a_repeated_write_is_a_new_run(tmp_path: Path) -> None:
    def put(**more: Any) -> str:
        return write(sample.data(), sample.headline(), sample.grouped(), tmp_path, **more)

    assert put() == "torchroof"
    assert put() == "torchroof-2"
    assert put(step=5) == "torchroof"  # it had step 2
    assert put(step=5) == "torchroof-2"  # a step that is there already is none that rises
    assert put(step=5) == "torchroof-3"
    assert put(step=6) == "torchroof"
    assert put(step=7, fresh=True) == "torchroof-4"
    assert put(step=8, name="torchroof-4") == "torchroof-4"
    assert put(name="mine") == "mine"
    assert written(tmp_path) == {
        "torchroof": [2, 5, 6], "torchroof-2": [2, 5], "torchroof-3": [5], "torchroof-4": [7, 8], "mine": [2],
    }  # fmt: skip
    assert {p.name for p in tmp_path.glob("*.report.json")} >= {"torchroof.report.json", "torchroof-2.report.json"}


def test_a_foreign_run_is_never_written_into(tmp_path: Path) -> None:
    foreign = tmp_path / "torchroof" / "events.out.tfevents.1.host.1.0"
    foreign.parent.mkdir()
    foreign.write_bytes(b"someone's")
    assert write(sample.data(), sample.headline(), sample.grouped(), tmp_path, step=9) == "torchroof-2"
    assert foreign.read_bytes() == b"someone's" and len(list(foreign.parent.iterdir())) == 1


def test_many_windows_within_a_second_are_read_in_their_order(tmp_path: Path) -> None:
    for step in range(12):
        write(sample.data(), sample.headline(), sample.grouped(), tmp_path, step=step)
    assert written(tmp_path) == {"torchroof": list(range(12))}


def test_through_a_summary_writer_of_the_users(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from torch.utils.tensorboard import SummaryWriter

    from torchroof.reports import Report

    writer = SummaryWriter(str(tmp_path))
    writer.add_scalar("loss", 0.5, 1)
    report = Report(sample.data())
    report.write_summaries(writer)
    report.write_summaries(writer)  # the same step again: the next one
    report.write_summaries(writer, step=40)
    writer.add_scalar("loss", 0.25, 2)
    writer.close()
    with pytest.raises(OutputError, match="closed"):
        report.write_summaries(writer)
    (file,) = tmp_path.iterdir()
    events = [event for event in EventFileLoader(str(file)).Load() if event.summary.value]
    steps = [event.step for event in events for value in event.summary.value if value.tag == "torchroof/report"]
    assert steps == [2, 3, 40]
    assert [event.step for event in events for value in event.summary.value if value.tag == "loss"] == [1, 2]


def test_a_training_that_is_taken_up_again_goes_on_in_the_same_folder(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from torch.utils.tensorboard import SummaryWriter

    from torchroof.reports import Report

    report = Report(sample.data())
    for round in range(3):  # each as a new process would
        with SummaryWriter(str(tmp_path), filename_suffix=f".{round}") as writer:
            writer.add_scalar("loss", 0.5, 1_000_000)
            writer.add_text("torchroof/note", "torchroof/step_ms, says the user's own text " * 9, 5_000)
            for _ in range(2):
                report.write_summaries(writer)
        if round == 1:  # cut by a crash, and something else of that name
            (file,) = tmp_path.glob("*.1")
            file.write_bytes(file.read_bytes()[:-10])
            (tmp_path / "tfevents.other").write_bytes(b"\xff" * 100)
    steps = []
    for file in sorted(tmp_path.glob("events*")):
        found = list(EventFileLoader(str(file)).Load())
        steps.append([e.step for e in found for v in e.summary.value if v.tag == "torchroof/report"])
    assert steps == [[2, 3], [4], [5, 6]]


def test_neither_torch_nor_tensorflow_is_imported() -> None:
    code = "import sys, torchroof.views.tensorboard.logdir; print({'torch', 'tensorflow'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"

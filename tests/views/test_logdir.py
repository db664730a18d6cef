"""The folder for TensorBoard, read back with TensorBoard's own reader."""

from __future__ import annotations

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


def test_neither_torch_nor_tensorflow_is_imported() -> None:
    code = "import sys, torchroof.views.tensorboard.logdir; print({'torch', 'tensorflow'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"

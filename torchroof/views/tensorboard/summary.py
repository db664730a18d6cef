"""A report as TensorBoard's own scalars, text and image, and whole for our page."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_BLOB_SEQUENCE, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING

from torchroof import units
from torchroof.report import codec
from torchroof.report.lenses import Lines
from torchroof.report.model import ReportData
from torchroof.report.picture import Picture
from torchroof.report.summary import Headline
from torchroof.views.columns import columns
from torchroof.views.drawing import HEIGHT, WIDTH
from torchroof.views.tensorboard import png
from torchroof.views.tensorboard.names import PLUGIN, REPORT_TAG, SCHEMA
from torchroof.views.text import clean

_GZIP_LEVEL = 6
_TEXT_RANK = 6
"""Columns of the text: TensorBoard makes all of them as narrow as it takes, and wraps within words."""
FIRST_TAG = "torchroof/step_ms"
"""Every event of ours begins with it."""


def values(data: ReportData, headline: Headline, lines: Lines, picture: Picture | None = None) -> list[Summary.Value]:
    """All that one window gives TensorBoard. Tags begin with ``torchroof``; ``picture`` adds the roofline's image."""
    found = [scalar(tag, value) for tag, value in scalars(data, headline, lines)]
    found.append(text("torchroof/layers", markdown(headline, lines)))
    if picture is not None:
        found.append(image("torchroof/roofline", png.SCALE * WIDTH, png.SCALE * HEIGHT, png.png(picture)))
    found.append(report(data))
    return found


def scalars(data: ReportData, headline: Headline, lines: Lines) -> Iterator[tuple[str, float]]:
    """Tags and values; what is unknown is left out. Times are ms per step, the rest fractions of 1."""
    yield FIRST_TAG, units.in_milliseconds(headline.step_ns)
    for cause, ns in data.totals.causes.items():
        yield f"torchroof_causes_ms/{cause}", units.in_milliseconds(ns / lines.steps)
    figures = {
        "step_efficiency": headline.step_efficiency,
        "mfu": headline.mfu,
        "hfu": data.totals.hfu,
        "with_owner": headline.with_owner,
        "with_flops": headline.with_flops,
        "with_bytes": headline.with_bytes,
    }
    for name, value in figures.items():
        if value is not None:
            yield f"torchroof/{name}", value
    if lines.total.headroom_ns is not None:
        yield "torchroof/headroom_ms", units.in_milliseconds(lines.total.headroom_ns / lines.steps)


def scalar(tag: str, value: float) -> Summary.Value:
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    return Summary.Value(tag=tag, simple_value=value, metadata=metadata)


def text(tag: str, markdown_text: str) -> Summary.Value:
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(dtype=DT_STRING, string_val=[markdown_text.encode()], tensor_shape=shape)
    return Summary.Value(tag=tag, tensor=tensor, metadata=metadata)


def image(tag: str, width: int, height: int, png: bytes) -> Summary.Value:
    """A PNG as TensorBoard's image data: width and height as text, then the file."""
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="images"))
    parts = [str(width).encode(), str(height).encode(), png]
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=len(parts))])
    return Summary.Value(
        tag=tag, tensor=TensorProto(dtype=DT_STRING, string_val=parts, tensor_shape=shape), metadata=metadata
    )


def report(data: ReportData) -> Summary.Value:
    """The report for our page: one blob, gzipped JSON. Metadata tells its schema without loading it."""
    metadata = SummaryMetadata(data_class=DATA_CLASS_BLOB_SEQUENCE)
    metadata.plugin_data.plugin_name = PLUGIN
    metadata.plugin_data.content = SCHEMA.encode()
    blob = gzip.compress(codec.encode(data), _GZIP_LEVEL, mtime=0)
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(dtype=DT_STRING, string_val=[blob], tensor_shape=shape)
    return Summary.Value(tag=REPORT_TAG, tensor=tensor, metadata=metadata)


def markdown(headline: Headline, lines: Lines) -> str:
    """The verdict and the table as Markdown. Names stand in code spans, where no image is loaded."""
    shown = [column for column in columns(lines) if column.rank <= _TEXT_RANK or column.heading == "class"]
    heads = [" ".join(filter(None, (column.heading, column.unit))) for column in shown]
    rows = [[lines.by, *heads], [":--", *(":--" if column.left else "--:" for column in shown)]]
    for line in (*lines.lines, *filter(None, (lines.rest,)), lines.total):
        mark = "▶ " if line.flagged else ""
        rows.append([mark + code(line.label), *(code(column.cell(line).plain) for column in shown)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    words = [prose(f"{headline.device}, {headline.steps} steps of {units.duration(headline.step_ns)}")]
    words += [f"**{prose(headline.verdict)}**", *([prose(headline.worst)] if headline.worst else [])]
    return "\n\n".join([*words, table, *(prose(note) for note in headline.notes)]) + "\n"


def code(name: str) -> str:
    """A name as a code span that no name can leave: no backquote, no bar, no angle bracket, no line's end."""
    plain = clean(name).translate(_LEAVING).strip()
    return f"`{plain}`" if plain else ""


def prose(words: str) -> str:
    """A sentence that may hold names: what Markdown and HTML obey becomes an entity."""
    return "".join(
        c if c.isalnum() or c in " .,;:%+=/()?-" or not c.isascii() else f"&#{ord(c)};" for c in clean(words)
    )


_LEAVING = str.maketrans("`|<>", "'¦‹›")

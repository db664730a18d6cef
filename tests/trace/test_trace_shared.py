"""Real public traces against an independent count and against a naive exact reading."""

from __future__ import annotations

import dataclasses
import gzip
import json
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torchroof.errors import TruncatedTrace
from torchroof.trace.reader import read
from torchroof.trace.table import DeviceKind, HostKind, TraceTable

pytestmark = pytest.mark.shared

_FOLDER = Path(__file__).resolve().parents[3] / "shared" / "traces"
_EXPECTED = json.loads((_FOLDER / "expected.json").read_text()) if _FOLDER.is_dir() else {}
NAMES = sorted(_EXPECTED) or [pytest.param("", marks=pytest.mark.skip(reason="the public traces are not here"))]


def kernel_ns_of_the_table() -> dict[str, int]:
    """The column "kernel ns" of the folder's own table, by file."""
    rows = [line.split("|") for line in (_FOLDER / "README.md").read_text().splitlines() if line.startswith("| ")]
    return {cells[1].strip(): int(cells[6]) for cells in rows if cells[6].strip().isdigit()}


@pytest.mark.parametrize("name", NAMES)
def test_counts_kernel_time_and_joins(name: str) -> None:
    table, expected = read(_FOLDER / f"{name}.json.gz"), _EXPECTED[name]
    device = table.device
    counts = {kind: int((device.kind == kind).sum()) for kind in DeviceKind}
    kernels = device.kind == DeviceKind.KERNEL
    launches = table.host.correlation[table.host.kind == HostKind.LAUNCH]
    launched = np.isin(device.correlation[kernels], launches[launches >= 0])

    assert table.events == expected["events"]
    assert counts[DeviceKind.KERNEL] == expected["kernels"]
    assert counts[DeviceKind.MEMCPY] == expected["memcpy"]
    assert counts[DeviceKind.MEMSET] == expected["memset"]
    assert (device.end_ns - device.start_ns)[kernels].sum() == kernel_ns_of_the_table()[name]
    assert (~launched).sum() == expected["kernels_without_runtime_event"]
    assert len({table.names[i] for i in device.name[kernels]}) == expected["distinct_kernel_names"]


def naive(name: str) -> list[dict[str, Any]]:
    loaded = json.loads(gzip.decompress((_FOLDER / f"{name}.json.gz").read_bytes()), parse_float=Decimal)
    events: list[dict[str, Any]] = loaded["traceEvents"]
    return events


def ns(event: dict[str, Any]) -> tuple[int, int]:
    start = Decimal(event["ts"]) * 1000
    length = Decimal(event["dur"]) * 1000
    return int(start), int(start) + int(length)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "tl-mi300-ddp-resnet18-202604"])
def test_every_op_and_kernel_has_its_exact_times_and_ids(name: str) -> None:
    table, events = read(_FOLDER / f"{name}.json.gz"), naive(name)
    host, device = table.host, table.device

    kernels = sorted(
        (*ns(e), e["name"], e.get("args", {}).get("device", e["pid"]), e.get("args", {}).get("stream", e["tid"]))
        for e in events
        if e.get("cat", "").lower() == "kernel"
    )
    rows = np.flatnonzero(device.kind == DeviceKind.KERNEL)
    assert kernels == sorted(
        (device.start_ns[i], device.end_ns[i], table.names[device.name[i]], device.device[i], device.stream[i])
        for i in rows
    )

    ops = sorted(
        (*ns(e), e["name"], f"{e['tid']}".removeprefix("thread "), e.get("args", {}).get("Sequence number", -1))
        for e in events
        if e.get("cat") == "cpu_op"
    )
    by_op = {name for _, _, name, _, _ in ops}
    kept = [i for i in range(len(host)) if host.kind[i] in (HostKind.OP, HostKind.ANNOTATION)]
    got = {
        (host.start_ns[i], host.end_ns[i], table.names[host.name[i]], table.thread_ids[host.thread[i]],
         host.sequence[i])
        for i in kept
        if table.names[host.name[i]] in by_op
    }  # fmt: skip
    assert set(ops) <= got


def order_is_as_promised(table: TraceTable) -> bool:
    host = table.host
    keys = list(zip(host.thread.tolist(), host.start_ns.tolist(), (-host.end_ns).tolist(), strict=True))
    return keys == sorted(keys) and (np.diff(table.device.start_ns) >= 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_order_and_the_number_of_flows_and_modules(name: str) -> None:
    table, events = read(_FOLDER / f"{name}.json.gz"), naive(name)
    assert order_is_as_promised(table)
    assert len(table.flows.from_ns) == sum(e.get("cat") == "fwdbwd" and e["ph"] == "s" for e in events)
    modules = [e for e in events if e.get("cat") == "python_function" and e["name"].startswith("nn.Module: ")]
    assert (table.host.kind == HostKind.MODULE).sum() == len(modules)
    ids = table.host.module_id[table.host.kind == HostKind.MODULE]
    assert sorted(ids.tolist()) == sorted(e["args"]["Python module id"] for e in modules)


@pytest.mark.parametrize("name", ["tl-h100-bert-small-202507", "hta-ns-resolution-202404"])
def test_everything_but_the_events_is_metadata(shared_traces: Path, name: str) -> None:
    path = shared_traces / f"{name}.json.gz"
    loaded = json.loads(gzip.decompress(path.read_bytes()))
    del loaded["traceEvents"]
    assert read(path).metadata == loaded


def test_kernels_of_old_rocm_are_joined_by_their_external_id(shared_traces: Path) -> None:
    table = read(shared_traces / "tl-mi300-gemm-nocorr-202602.json.gz")
    assert [note.kind for note in table.notes] == ["joined_by_external_id"]
    launches = table.host.kind == HostKind.LAUNCH
    by_key = dict(zip(table.host.correlation[launches], table.host.name[launches], strict=True))
    assert {table.names[by_key[key]] for key in table.device.correlation} == {"hipExtModuleLaunchKernel"}


def test_an_id_beyond_63_bits_does_no_harm(shared_traces: Path) -> None:
    table = read(shared_traces / "hta-large-integer.json.gz")
    assert table.names == ("ncclKernel_AllReduce", "record_param_comms")


def test_threads_of_2021_are_one_whether_written_as_number_or_as_text(shared_traces: Path) -> None:
    table = read(shared_traces / "kineto-gpu-metrics-202105.json.gz")
    assert all(" " not in thread for thread in table.threads)
    assert set(table.device.stream.tolist()) == {7}
    steps = [i for i, kind in enumerate(table.host.kind) if kind == HostKind.ANNOTATION]
    assert "ProfilerStep#2" in {table.names[table.host.name[i]] for i in steps}


@pytest.mark.parametrize(
    ("stem", "kind", "words"),
    [
        ("d01-truncated-mid-event", TruncatedTrace, "the file ends in the middle of the trace"),
        ("d03-gzip-stream-cut", TruncatedTrace, "the gzip data end early"),
    ],
)
def test_made_defects_that_are_refused(shared_traces: Path, stem: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        read(shared_traces / "malformed" / f"{stem}.json.gz")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("stem", ["d05-bare-nan", "d07-unescaped-quote-newline", "d09-trailing-comma", "d15-utf8-bom"])
def test_a_mended_file_has_everything_that_the_sound_one_has(shared_traces: Path, stem: str) -> None:
    sound = read(shared_traces / "hta-event-sync-multistream-202404.json.gz")
    made = read(shared_traces / "malformed" / f"{stem}.json.gz")
    assert sound.events == 149
    assert made.events == 149 + ("quote" in stem)  # an event of Python's, of no interest, was put in front
    for part in ("host", "device", "flows"):
        for column, values in dataclasses.asdict(getattr(sound, part)).items():
            assert np.array_equal(dataclasses.asdict(getattr(made, part))[column], values), column
    assert len(made.names) == len(sound.names)
    assert [note.kind for note in made.notes] == ["byte_order_mark" if "bom" in stem else "mended"]


@pytest.mark.parametrize(("stem", "events"), [("d01-truncated-mid-event", 102), ("d03-gzip-stream-cut", 86)])
def test_a_cut_file_is_read_as_far_as_it_goes(shared_traces: Path, stem: str, events: int) -> None:
    path = shared_traces / "malformed" / f"{stem}.json.gz"
    inflated = zlib.decompressobj(wbits=31).decompress(path.read_bytes())
    assert inflated.count(b'"ph":') == events + 1  # the cut goes through the last
    made = read(path, partial=True)
    assert made.events == events
    assert [note.kind for note in made.notes] == ["truncated"]


def test_made_defects_that_are_noted(shared_traces: Path) -> None:
    def notes(stem: str) -> list[tuple[str, int | None]]:
        return [(n.kind, n.count) for n in read(shared_traces / "malformed" / f"{stem}.json.gz").notes]

    assert notes("d11-kernel-correlation-zero") == [("zero_correlation", 3)]
    assert notes("d13-negative-missing-dur-args") == [("missing_duration", 1), ("negative_duration", 1)]
    assert notes("d15-utf8-bom") == [("byte_order_mark", 1)]

"""Files that end early, and text that is nearly JSON: what is whole is read, what is not is told."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchroof.errors import TraceError, TruncatedTrace
from torchroof.trace.mending import mended, with_names_closed
from torchroof.trace.reader import read
from torchroof.trace.table import TraceTable


def kernel(name: str, at: int, **more: Any) -> str:
    event = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at, "dur": 2, "args": {"stream": 7}}
    return json.dumps({**event, **more})


EVENTS = [
    kernel("plain", 1),
    kernel("},{", 2),
    kernel("}]}", 3),
    kernel('"', 4, x=[{"a": 1}, {"b": [{}]}]),
    kernel("e", 5),
]
HEAD = '{"deviceProperties": [{"id": 0}], "traceEvents": ['


def names(table: TraceTable) -> list[str]:
    return [table.names[i] for i in table.device.name]


def notes(table: TraceTable) -> dict[str, int | None]:
    return {note.kind: note.count for note in table.notes}


@pytest.mark.parametrize("chunk", [1, 150, 10**6])
@pytest.mark.parametrize("between", [",", ",\n  ", " , "])
def test_a_file_cut_anywhere_gives_the_events_that_are_whole(tmp_path: Path, chunk: int, between: str) -> None:
    text = HEAD + between.join(EVENTS) + '], "last": {"a": [1, 2]}}'
    ends = [len(HEAD + between.join(EVENTS[: i + 1])) for i in range(len(EVENTS))]
    path = tmp_path / "cut.json"
    for cut in range(1, len(text)):
        path.write_text(text[:cut])
        whole = sum(end <= cut for end in ends)
        with pytest.raises(TruncatedTrace):
            read(path, chunk_bytes=chunk)
        if not whole:
            with pytest.raises(TruncatedTrace):
                read(path, partial=True, chunk_bytes=chunk)
            continue
        table = read(path, partial=True, chunk_bytes=chunk)
        assert table.events == whole, cut
        assert table.device.start_ns.tolist() == [1000 * (i + 1) for i in range(whole)]
        assert notes(table) == {"truncated": None}, cut
        assert table.metadata == {"deviceProperties": [{"id": 0}]}, cut


def test_gzip_data_cut_anywhere_give_what_they_inflate_to(tmp_path: Path) -> None:
    events = [kernel(f"{i * 7919 % 1000}", i) for i in range(60)]
    packed = gzip.compress((HEAD + ",".join(events) + "]}").encode())
    path, most = tmp_path / "cut.json.gz", 0
    for cut in range(20, len(packed), 7):
        path.write_bytes(packed[:cut])
        with pytest.raises(TruncatedTrace, match="the gzip data end early"):
            read(path)
        try:
            count = read(path, partial=True).events
        except TruncatedTrace:
            count = 0
        assert most <= count <= 60
        most = count
    path.write_bytes(packed[:-4])
    assert read(path, partial=True).events == 60


MENDED = [
    ('"dur": 2', '"dur": NaN', {"mended": 1, "missing_duration": 1}, 0),
    ('"dur": 2', '"dur": -inf', {"mended": 1, "missing_duration": 1}, 0),
    ('"dur": 2', '"dur": ', {"mended": 1, "missing_duration": 1}, 0),
    ('"stream": 7', '"stream": 7, "memory bandwidth (GB/s)": inf', {"mended": 1}, 2000),
    ('"plain"', '"C:\\q\\p"', {"mended": 1}, 2000),
    ('"plain"', '"a\tb\nc"', {"mended": 1}, 2000),
    ('"plain"', '"f("a", b)"', {"mended": 1}, 2000),
    ('"plain"', '"C:\\dir\\"', {"mended": 1}, 2000),
    ('"stream": 7', '"stream": 7,', {"mended": 1}, 2000),
]


@pytest.mark.parametrize("chunk", [1, 10**6])
@pytest.mark.parametrize(("old", "new", "told", "length"), MENDED)
def test_what_writers_get_wrong_costs_nothing(
    tmp_path: Path, old: str, new: str, told: dict[str, int], length: int, chunk: int
) -> None:
    path = tmp_path / "made.json"
    path.write_text(HEAD + ",".join([EVENTS[0].replace(old, new), *EVENTS[1:]]) + "]}")
    table = read(path, chunk_bytes=chunk)
    assert table.events == 5
    assert table.device.start_ns.tolist() == [1000, 2000, 3000, 4000, 5000]
    assert (table.device.end_ns - table.device.start_ns).tolist() == [length, 2000, 2000, 2000, 2000]
    assert notes(table).keys() == told.keys()
    assert notes(table).get("missing_duration") == told.get("missing_duration")


@pytest.mark.parametrize("chunk", [1, 10**6])
def test_bytes_that_are_no_text_cost_one_name_only(tmp_path: Path, chunk: int) -> None:
    path = tmp_path / "made.json"
    path.write_bytes((HEAD + ",".join(EVENTS) + "]}").encode().replace(b"plain", b"a\xff\xfeb"))
    table = read(path, chunk_bytes=chunk)
    assert names(table)[0] == "a\ufffd\ufffdb"
    assert notes(table) == {"mended": 1}


@pytest.mark.parametrize("chunk", [1, 10**6])
@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.parametrize(
    "broken", ['{"ph" "X"}', '{"ph": "X", "dur": 1 2}', '{"ph": tru}', '{"a": [1, 2}', '{"a": 01}']
)
def test_an_event_beyond_mending_is_left_out_and_told(tmp_path: Path, broken: str, place: int, chunk: int) -> None:
    path = tmp_path / "made.json"
    path.write_text(HEAD + ",".join([*EVENTS[:place], broken, *EVENTS[place:]]) + '], "a": 1}')
    table = read(path, chunk_bytes=chunk)
    assert table.device.start_ns.tolist() == [1000, 2000, 3000, 4000, 5000]
    assert notes(table)["lost_events"] == 1
    assert table.metadata["a"] == 1


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ('"a": Infinity, ', "", {"a": None}),
        ("", ', "a": nan', {"a": None}),
        ("", ', "a": [1,], ', {"a": [1]}),
        ("", ', "path": "C:\\q"', {"path": "C:\\q"}),
    ],
)
def test_what_lies_around_the_events_is_mended_too(
    tmp_path: Path, before: str, after: str, found: dict[str, Any]
) -> None:
    path = tmp_path / "made.json"
    path.write_text("{" + before + '"traceEvents": [' + EVENTS[0] + "]" + after + "}")
    table = read(path)
    assert (table.events, table.metadata) == (1, found)
    assert "mended" in notes(table)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just("name"), inner, max_size=4),
    max_leaves=12,
)


@given(anything, st.booleans())
def test_json_stays_what_it_is(value: Any, ascii_only: bool) -> None:
    text, found = json.dumps(value, ensure_ascii=ascii_only).encode(errors="replace"), Counter[str]()
    assert mended(text, found) == text
    assert not found.total()


@given(st.text())
def test_a_closed_name_stays_what_it_is(name: str) -> None:
    text, found = json.dumps({"name": name, "pid": 1}, ensure_ascii=False).encode(errors="replace"), Counter[str]()
    if '", "' not in name and '"}' not in name:
        assert msgspec.json.decode(with_names_closed(text, found)) == msgspec.json.decode(text)


@given(st.binary(max_size=200), st.sampled_from([b"", b"[", b'{"traceEvents":[', HEAD.encode() + EVENTS[0].encode()]))
def test_no_bytes_whatever_break_the_reader(tmp_path_factory: pytest.TempPathFactory, junk: bytes, head: bytes) -> None:
    path = tmp_path_factory.mktemp("junk", numbered=True) / "junk.json"
    path.write_bytes(head + junk)
    try:
        read(path, partial=True)
    except TraceError as why:
        assert "\n" not in str(why)


def test_events_nested_without_end_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    deep = '{"args": ' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "}"
    path.write_text(HEAD + EVENTS[0] + "," + deep + "," + EVENTS[1] + "]}")
    table = read(path)
    assert table.device.start_ns.tolist() == [1000, 2000]
    assert notes(table)["lost_events"] == 1

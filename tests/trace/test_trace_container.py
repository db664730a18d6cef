"""Where the list of events lies in a file, and what is said of a file that is no trace."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchroof.errors import NotATrace, TraceError, TruncatedTrace
from torchroof.trace.container import Container
from torchroof.trace.reader import read

# Names that look like the end of an event, of the list, of the file, or like its key.
nasty = st.lists(
    st.sampled_from(["},{", "} , {", '"', "\\", "}]", "]}", "[", "\n", "\\u0022", '"traceEvents":[', "µ", "a", "🔥"])
).map("".join)
values = st.one_of(nasty, st.integers(), st.none(), st.lists(st.dictionaries(nasty, nasty, max_size=2), max_size=3))
event = st.fixed_dictionaries(
    {
        "ph": st.just("X"),
        "cat": st.sampled_from(["cpu_op", "kernel", "user_annotation", "cuda_runtime"]),
        "name": nasty,
        "pid": st.just(1),
        "tid": st.sampled_from([7, 8]),
        "ts": st.integers(0, 99),
        "dur": st.integers(0, 9),
    },
    optional={"args": st.dictionaries(st.sampled_from(["Call stack", "correlation", "other"]), values)},
)
others = st.dictionaries(nasty.filter(lambda key: key != "traceEvents"), values, max_size=3)


def pieces(text: bytes, size: int) -> Iterator[bytes]:
    return (text[i : i + size] for i in range(0, len(text), size))


def decoded(text: bytes, chunk_bytes: int, block: int) -> tuple[list[Any], dict[str, Any], int]:
    """All events as plain data, the metadata, and the number of pieces."""
    made = Container(pieces(text, block), "made", chunk_bytes)
    parts = [msgspec.to_builtins(events) for _, events in made.events(msgspec.json.decode)]
    return [e for part in parts for e in part], made.metadata, len(parts)


@given(
    st.lists(event, max_size=8), others, others, st.sampled_from([None, 0, 2]), st.integers(1, 80), st.integers(1, 300)
)
def test_the_pieces_hold_all_events_wherever_the_text_is_cut(
    events: list[Any], before: dict[str, Any], after: dict[str, Any], indent: int | None, chunk: int, block: int
) -> None:
    after = {key: value for key, value in after.items() if key not in before}
    text = json.dumps({**before, "traceEvents": events, **after}, indent=indent, ensure_ascii=False).encode()
    got, metadata, _ = decoded(text, chunk, block)
    assert got == events
    assert metadata == {**before, **after}


@given(st.lists(event, max_size=8), st.integers(1, 80))
def test_a_bare_list_is_a_trace_without_metadata(events: list[Any], chunk: int) -> None:
    got, metadata, _ = decoded(json.dumps(events).encode(), chunk, 64)
    assert got == events
    assert metadata == {}


@given(st.lists(st.lists(event, max_size=3), min_size=2, max_size=4), others, st.integers(1, 80), st.integers(1, 300))
def test_several_lists_are_read_as_one(lists: list[list[Any]], between: dict[str, Any], chunk: int, block: int) -> None:
    """A key that comes again: JSON keeps the last value, and here no event is lost."""
    rest = json.dumps(between)[1:-1]
    parts = [f'"traceEvents": {json.dumps(events)}{", " * bool(rest)}{rest}' for events in lists]
    got, metadata, _ = decoded(f"{{{', '.join(parts)}}}".encode(), chunk, block)
    assert got == [e for events in lists for e in events]
    assert metadata == between


def test_a_file_of_several_lists_says_so(read_text: Any) -> None:
    table = read_text('{"traceEvents": [], "a": 1, "traceEvents": [' + ONE + '], "traceEvents": [' + ONE + "]}")
    assert table.events == 2
    assert [(note.kind, note.count) for note in table.notes if note.kind == "several_lists"] == [("several_lists", 3)]


def test_a_long_list_is_taken_in_many_pieces() -> None:
    events = [{"name": f"op {i}"} for i in range(1000)]
    got, metadata, count = decoded(json.dumps({"traceEvents": events, "x": 1}).encode(), 100, 64)
    assert got == events
    assert metadata == {"x": 1}
    assert count > 100


@given(st.lists(event, max_size=12), st.integers(1, 200))
def test_the_table_does_not_depend_on_the_size_of_chunks(
    tmp_path_factory: pytest.TempPathFactory, events: list[Any], chunk: int
) -> None:
    path = tmp_path_factory.mktemp("trace", numbered=True) / "made.json"
    path.write_text(json.dumps({"traceEvents": events}))
    small, large = (dataclasses.asdict(read(path, chunk_bytes=size)) for size in (chunk, 10**6))
    for table in (small, large):
        table["joins"] = joins(table)
    for part in ("host", "device", "flows"):
        assert all(np.array_equal(small[part][key], large[part][key]) for key in large[part])
    for key in ("names", "threads", "signatures", "metadata", "notes", "events", "joins"):
        assert small[key] == large[key]


def joins(table: dict[str, Any]) -> list[int]:
    """The join keys by order of appearance: their numbers mean nothing, their equality does."""
    keys = [*table["host"].pop("correlation").tolist(), *table["device"].pop("correlation").tolist()]
    order = {key: i for i, key in enumerate(dict.fromkeys(key for key in keys if key >= 0))}
    return [order.get(key, -1) for key in keys]


@pytest.mark.parametrize(
    "text",
    [
        '{"note": "\\"traceEvents\\": [", "traceEvents": []}',
        '{"inner": {"traceEvents": [{"name": "not this"}]}, "traceEvents": []}',
        '{"list": ["traceEvents"], "traceEvents" :\n [ ] }',
        '{"traceEvents": [], "after": [{"a": 1}, {"b": [{}]}]}',
    ],
)
@pytest.mark.parametrize("chunk", [1, 10**6])
def test_only_the_outermost_list_is_the_list(text: str, chunk: int) -> None:
    got, metadata, _ = decoded(text.encode(), chunk, 7)
    wanted = json.loads(text)
    assert got == wanted.pop("traceEvents")
    assert metadata == wanted


def test_gzip_is_told_by_content_and_may_have_several_members(tmp_path: Path) -> None:
    text = b'{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2}],"a":1}'
    path = tmp_path / "named.json"
    path.write_bytes(gzip.compress(text[:40]) + gzip.compress(text[40:]))
    assert len(read(path).device) == 1
    path.write_bytes(gzip.compress(text) + b"\0" * 512)
    assert read(path).metadata == {"a": 1}
    plain = tmp_path / "named.json.gz"
    plain.write_bytes(text)
    assert len(read(os.fspath(plain)).device) == 1


def test_a_gzip_file_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents":[]}')[:-9])
    with pytest.raises(TruncatedTrace, match=r"cut\.json\.gz: the gzip data end early"):
        read(path)


def test_a_byte_order_mark_is_noted(read_text: Any) -> None:
    assert [note.kind for note in read_text(b'\xef\xbb\xbf{"traceEvents":[]}').notes] == ["byte_order_mark"]


def test_a_gzip_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents":[' + (b'{"ph":"M"},' * (1 << 17))))
    with pytest.raises(TraceError, match=r"bomb\.json\.gz inflates to more than 0\.000977 GiB.* raise --memory"):
        read(path, memory_limit=1 << 20)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("opening", [b'{"traceEvents":[', b'{"traceEvents":[{"name":"', b'{"a":"', b"[", b" "])
def test_a_line_without_end_is_refused_long_before_it_is_read(tmp_path: Path, opening: bytes, packed: bool) -> None:
    filler = b" " if opening in (b" ", b"[") else b"x" if opening.endswith(b'"') else b"[] "
    text = opening + filler * ((3 << 20) // len(filler))
    path = tmp_path / "line.json"
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(TraceError, match=r"no event ends within 0\.00.* GiB from byte .*raise --memory"):
        read(path, memory_limit=16 << 20)


def test_columns_have_a_limit_that_can_be_raised(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    path.write_text("[" + ",".join([ONE] * 5000) + "]")
    with pytest.raises(TraceError, match=r"its first [\d,]+ events need more than 0\.000954 GiB .* raise --memory"):
        read(path, memory_limit=1_024_000, chunk_bytes=1 << 12)
    assert len(read(path, memory_limit=2_048_000).device) == 5000


def test_names_count_towards_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    path.write_text("[" + ",".join(ONE.replace('"k"', f'"{i}{"k" * 5000}"') for i in range(500)) + "]")
    with pytest.raises(TraceError, match="need more than"):
        read(path, memory_limit=2 << 20, chunk_bytes=1 << 12)


ONE = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2}'


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("", TraceError, "is empty"),
        (" \n", NotATrace, "nothing but blanks"),
        ("hello", NotATrace, "is not JSON"),
        (b"\x1f\x8b" + b"garbage" * 9, NotATrace, "the gzip data are damaged"),
        ("{}", NotATrace, "it has no traceEvents"),
        ('{"traceEvents": null}', NotATrace, "its traceEvents is no list"),
        ('{"schema": "torchroof.report/1", "rows": []}', NotATrace, "this is a torchroof report; use torchroof.load"),
        ('{"traceEvents": [' + ONE, TruncatedTrace, "ends in the middle"),
        ('{"traceEvents": [' + ONE + ",", TruncatedTrace, "ends in the middle"),
        ('{"traceEvents": [' + ONE[:40], TruncatedTrace, "ends in the middle"),
        ('{"traceEvents": [' + ONE + "]", TruncatedTrace, "ends in the middle"),
        ('{"traceEvents": [' + ONE + '],"a":', TruncatedTrace, "ends in the middle"),
        ('{"schemaVersion": 1, "dev', TruncatedTrace, "ends in the middle"),
        ("[" + ONE, TruncatedTrace, "ends in the middle"),
        ("[" + ONE + "]]", NotATrace, "more text follows the trace at byte 69"),
        ('{"traceEvents": []]}', NotATrace, "not valid JSON"),
        ("[" + ONE + "] more", NotATrace, "more text follows the trace at byte 69"),
        ('{"traceEvents": [' + ONE + "], }nonsense", NotATrace, "not valid JSON at byte 8"),
        (2 * ('{"traceEvents": [' + ONE + '], "name": "a"}'), NotATrace, "more text follows the trace at byte 99"),
        (10**5 * "[" + 10**5 * "]", NotATrace, "nested too deeply"),
        (10**5 * '{"a":' + "1" + 10**5 * "}", NotATrace, "nested too deeply"),
        ('{"traceEvents": [' + ONE + "," + 10**5 * "[" + 10**5 * "]" + "]}", NotATrace, "nested too deeply"),
        ('{"traceEvents": [' + ONE + '], "a": ' + 10**5 * "[" + 10**5 * "]" + "}", NotATrace, "nested too deeply"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 10**6])
def test_a_file_that_is_no_whole_trace(
    read_text: Any, text: str | bytes, kind: type[TraceError], words: str, chunk: int
) -> None:
    with pytest.raises(kind, match=words) as caught:
        read_text(text, chunk_bytes=chunk)
    assert type(caught.value) is kind
    assert str(caught.value).startswith("made.json") and "\n" not in str(caught.value)


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"absent\.json: no such file"):
        read(tmp_path / "absent.json")
    with pytest.raises(TraceError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(TraceError, match="cannot be opened"):
        read("a\0b")


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:  # root may read everything, so no mode of the file would do
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "closed.json"
    path.write_text("[]")
    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(TraceError, match="no permission"):
        read(path)


def test_a_decoder_that_changed_its_messages_would_be_noticed() -> None:
    # The cutting relies on how msgspec words three faults.
    for text, words in (
        (b"[1", "Input data was truncated"),
        (b"[{}] 2", "trailing characters (byte 6)"),
        (b'[{"a":{}]', "(byte 8)"),
    ):
        with pytest.raises(msgspec.DecodeError) as caught:
            msgspec.json.decode(text)
        assert words in str(caught.value)


def test_an_event_of_many_chunks_is_found_whole(tmp_path: Path) -> None:
    """Its name is as long as hundreds of chunks, full of what looks like the end of an event, and is kept in part."""
    long = "x" * 300_000 + "} , y" * 1000
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 1}
        for at, name in enumerate(("a", long, "b", "} , {" * 50_000, "c"))
    ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
    for chunk in (64, 1000, 1 << 18):
        table = read(tmp_path / "t.json", chunk_bytes=chunk)
        assert table.events == 5 and [len(name) for name in table.names] == [1, 100_001, 1, 100_001, 1]
        assert not [note for note in table.notes if note.kind in ("mended", "lost_events")]


INNER = ",".join(50_000 * ['{"traceEvents":[1]}'])


@pytest.mark.parametrize(
    ("text", "events", "words"),
    [
        (f'{{"a":[{INNER}],"traceEvents":[{ONE}]}}', 1, None),
        (f'{{"traceEvents":[{ONE}],"a":[{INNER}]}}', 1, None),
        (f'{{"b":nan,"a":[{INNER}],"traceEvents":[{ONE}]}}', 0, "not valid JSON"),
        ('{"traceEvents":[' + 200_000 * '{"name":"\\"},{', 0, "not valid JSON in 1,000 places and more"),
        ('{"traceEvents":[' + 100_000 * '{"name":"', 0, "ends in the middle"),
        ('{"traceEvents":[' + 100_000 * '{"name":"a","args":nan nan},' + ONE + "]}", 0, "in 1,000 places and more"),
        ('{"traceEvents":[' + ONE + ',{"args":{"x":[' + 50_000 * '{"b":[{}]},' + '{}],"z":nan}}],"q":nan', 1, "ends"),
    ],
    ids=["before", "behind", "malformed", "quotes", "names", "events", "ends"],
)
def test_what_could_be_read_for_ever(read_text: Any, text: str, events: int, words: str | None) -> None:
    """Text in which every place looks like another beginning or end, and each look is at all of the rest."""
    if words:
        with pytest.raises(TraceError, match=words):
            read_text(text)
    if events:
        assert len(read_text(text, partial=True).device) == events

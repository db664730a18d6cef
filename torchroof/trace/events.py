"""One event of a trace as a typed record, and the decoders that make chunks of JSON into lists of them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from torchroof.trace.table import NONE

ABSENT = Raw()


class Args(msgspec.Struct, gc=False, frozen=True):
    """The keys of ``args`` that matter. ``Any`` where files disagree about the type; keys in common order."""

    external_id: Any = msgspec.field(default=None, name="External id")
    old_external_id: Any = msgspec.field(default=None, name="external id")
    sequence: Any = msgspec.field(default=NONE, name="Sequence number")
    forward_thread: Any = msgspec.field(default=NONE, name="Fwd thread id")
    concrete: Raw = msgspec.field(default=ABSENT, name="Concrete Inputs")
    types: Raw = msgspec.field(default=ABSENT, name="Input type")
    strides: Raw = msgspec.field(default=ABSENT, name="Input Strides")
    dims: Raw = msgspec.field(default=ABSENT, name="Input Dims")
    old_dims: Raw = msgspec.field(default=ABSENT, name="Input dims")
    device: Any = None
    stream: Any = None
    correlation: Any = NONE
    bytes: Any = NONE
    grid: Raw = ABSENT
    block: Raw = ABSENT
    registers: Any = msgspec.field(default=NONE, name="registers per thread")
    shared_memory: Any = msgspec.field(default=NONE, name="shared memory")
    module_id: Any = msgspec.field(default=NONE, name="Python module id")
    collective: Any = msgspec.field(default=None, name="Collective name")
    group: Any = msgspec.field(default=None, name="Process Group Name")


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str | None = None
    name: str = ""
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    args: Args | None = NO_ARGS
    id: Any = None


class LateEvent(Event, gc=False):
    """An event of a file whose starts need their decimal text; its length, a small number, does not."""

    dur: float | None = None


class EventDecoder:
    """Decodes the text of a JSON list of events.

    ``odd`` is how many events of the last list had a field of a type that no writer uses; they are kept as
    far as they can be read.
    """

    def __init__(self) -> None:
        self.odd = 0
        self._raw = msgspec.json.Decoder(list[Raw])
        self._any = msgspec.json.Decoder(float_hook=str)
        self._list: msgspec.json.Decoder[Any] = msgspec.json.Decoder(list[Event])
        self._one = msgspec.json.Decoder(Event)
        self._of_late = msgspec.json.Decoder(list[LateEvent], float_hook=str)

    def keep_decimals(self) -> None:
        """From now on starts with decimals come as their text, for times that a float cannot hold; asked again,
        lengths do so too."""
        late = self._list is not self._of_late
        self._list = self._of_late if late else msgspec.json.Decoder(list[Event], float_hook=str)
        self._one = msgspec.json.Decoder(Event, float_hook=str)

    def decode(self, text: bytes) -> list[Event]:
        """The events; raises msgspec.DecodeError only where the text is no JSON list."""
        self.odd = 0
        try:
            events: list[Event] = self._list.decode(text)
            return events
        except msgspec.ValidationError:
            return [self._lenient(raw) for raw in self._raw.decode(text)]

    def _lenient(self, raw: Raw) -> Event:
        try:
            return self._one.decode(raw)
        except msgspec.ValidationError:
            self.odd += 1
            return _converted(self._any.decode(raw))


def _converted(value: Any) -> Event:
    """An event out of an object with fields of odd types; out of anything else an empty event."""
    if not isinstance(value, dict):
        return Event()
    args = value.get("args")
    known = {f.encode_name: f for f in msgspec.structs.fields(Args)}
    kept = {
        known[key].name: Raw(msgspec.json.encode(v)) if known[key].type is Raw else v
        for key, v in (args.items() if isinstance(args, dict) else ())
        if key in known
    }
    ph, cat, name = (_word(value.get(key)) for key in ("ph", "cat", "name"))
    pid, tid, ts, dur, key = (value.get(k) for k in ("pid", "tid", "ts", "dur", "id"))
    return Event(ph, cat or None, name, pid, tid, ts, dur, Args(**kept), key)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)

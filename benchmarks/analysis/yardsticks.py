"""Builds the two files of about a million events that the analysis is timed on.

`joins` repeats hta-ns-resolution-202404 15 times (kernels, launches, no shapes; times of 19 digits);
`everything` repeats tl-mi300-ddp-resnet18-202604 34 times (shapes, modules, backward). Each copy has its
times and its ids shifted, so that no two copies join. The traces lie in ../shared and are not ours to ship;
where they are absent, the yardsticks repeat twins of them instead, with as many events of each kind.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from twins import twin

SOURCES = {"joins": ("hta-ns-resolution-202404", 15), "everything": ("tl-mi300-ddp-resnet18-202604", 34)}
TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
ID_KEYS = ("correlation", "External id", "Ev Idx", "Sequence number", "Python id", "Python parent id", "stream id")


def build(kind: str, folder: Path) -> Path:
    """The yardstick's file in a folder; made only when it is not there yet."""
    name, copies = SOURCES[kind]
    target = folder / f"{kind}.json"
    if target.exists():
        return target
    source = TRACES / f"{name}.json.gz"
    if source.exists():
        with gzip.open(source, "rt", encoding="utf-8") as file:
            trace = json.load(file, parse_float=Decimal)
    else:
        trace = twin(kind)
    events = trace.pop("traceEvents")
    times = [Decimal(e["ts"]) for e in events if e.get("ph") == "X"]
    length = max(times) - min(times) + 1_000_000
    most = max((v for e in events for k, v in (e.get("args") or {}).items() if k in ID_KEYS and isinstance(v, int)))
    with target.open("w", encoding="utf-8") as out:
        out.write(_encode(trace)[:-1] + ', "traceEvents": [\n')
        first = True
        for copy in range(copies):
            for event in events:
                out.write(("" if first else ",\n") + _shifted(event, copy * length, copy * (most + 1)))
                first = False
        out.write("\n]}")
    return target


def _shifted(event: dict[str, Any], time: Decimal, ids: int) -> str:
    event = dict(event)
    if "ts" in event:
        event["ts"] = Decimal(event["ts"]) + time
    if "id" in event and isinstance(event["id"], int):
        event["id"] += ids
    args = event.get("args")
    if args:
        event["args"] = {k: v + ids if k in ID_KEYS and isinstance(v, int) and v > 0 else v for k, v in args.items()}
    return _encode(event)


_QUOTED = re.compile(r'"@(-?[0-9.E+-]+)@"')


def _encode(value: Any) -> str:
    """JSON in which every decimal number keeps the text that it was read from."""
    return _QUOTED.sub(r"\1", json.dumps(value, default=lambda number: f"@{number}@"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for kind in SOURCES:
        print(build(kind, folder))

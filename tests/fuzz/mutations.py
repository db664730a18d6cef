"""Structured mutations of traces: what goes wrong in a file without its being noise.

Each is a function of a random source and a trace (as `json.loads` gives it) to the bytes of a file. What is
expected of the reader depends on the kind: see `test_mutations.py`.
"""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from random import Random
from typing import Any

Trace = dict[str, Any]
Mutation = Callable[[Random, Trace], bytes]

ODD_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e308, 1e-320, "", "x", "-7", "12.5", "NaN",
    "\x1b[31m", "\u202e", "a" * 5000, [], [[]], [1, [2, {"a": 3}]], {}, {"ph": "X"},
)  # fmt: skip
ODD_TIMES: tuple[Any, ...] = (0, -1, -0.001, 1e18, 2**62, "5", "5.0001", "1e3", 1e-9, None)
NOT_JSON = (b"nan", b"-inf", b"Infinity", b"", b"undefined", b"'x'", b"0x10", b"01", b'"\\q"', b'"a\tb"', b"\xff")


def _text(trace: Trace) -> bytes:
    return json.dumps(trace).encode()


def _events(random: Random, trace: Trace, most: int = 5) -> list[dict[str, Any]]:
    events = trace["traceEvents"]
    return random.sample(events, min(len(events), random.randint(1, most)))


def drop_events(random: Random, trace: Trace) -> bytes:
    kept = random.random()
    trace["traceEvents"] = [event for event in trace["traceEvents"] if random.random() < kept]
    return _text(trace)


def repeat_events(random: Random, trace: Trace) -> bytes:
    trace["traceEvents"] += copy.deepcopy(_events(random, trace, 30))
    return _text(trace)


def reorder_events(random: Random, trace: Trace) -> bytes:
    random.shuffle(trace["traceEvents"])
    return _text(trace)


def reorder_keys(random: Random, trace: Trace) -> bytes:
    def shuffled(value: Any) -> Any:
        if isinstance(value, list):
            return [shuffled(v) for v in value]
        if not isinstance(value, dict):
            return value
        keys = list(value)
        random.shuffle(keys)
        return {key: shuffled(value[key]) for key in keys}

    return _text(shuffled(trace))


def odd_argument(random: Random, trace: Trace) -> bytes:
    """One field of one event's ``args`` gets a value of another type or size."""
    with_args = [event for event in trace["traceEvents"] if event.get("args")]
    if with_args:
        args = random.choice(with_args)["args"]
        args[random.choice(list(args))] = random.choice(ODD_VALUES)
    return _text(trace)


def lost_argument(random: Random, trace: Trace) -> bytes:
    with_args = [event for event in trace["traceEvents"] if event.get("args")]
    if with_args:
        args = random.choice(with_args)["args"]
        del args[random.choice(list(args))]
    return _text(trace)


def odd_field(random: Random, trace: Trace) -> bytes:
    for event in _events(random, trace):
        event[random.choice(list(event))] = random.choice(ODD_VALUES)
    return _text(trace)


def lost_field(random: Random, trace: Trace) -> bytes:
    for event in _events(random, trace):
        del event[random.choice(list(event))]
    return _text(trace)


def swapped_fields(random: Random, trace: Trace) -> bytes:
    for event in _events(random, trace):
        first, second = random.choice(list(event)), random.choice(list(event))
        event[first], event[second] = event[second], event[first]
    return _text(trace)


def odd_events(random: Random, trace: Trace) -> bytes:
    for _ in range(random.randint(1, 4)):
        trace["traceEvents"].insert(random.randint(0, len(trace["traceEvents"])), random.choice(ODD_VALUES))
    return _text(trace)


def odd_metadata(random: Random, trace: Trace) -> bytes:
    others = [key for key in trace if key != "traceEvents"]
    for key in random.sample(others, min(len(others), 2)):
        trace[key] = random.choice(ODD_VALUES)
    trace[random.choice(("torchroof", "distributedInfo", "deviceProperties", "extra"))] = random.choice(ODD_VALUES)
    return _text(trace)


def odd_times(random: Random, trace: Trace) -> bytes:
    for event in _events(random, trace, 20):
        key = random.choice(("ts", "dur"))
        event[key] = random.choice(
            (0, -1, -0.001, 1e18, 2**62, "5", "5.0001", "1e3", 1e-9, None, random.uniform(-1e6, 1e6))
        )
    return _text(trace)


def cut_text(random: Random, trace: Trace) -> bytes:
    text = _text(trace)
    return text[: random.randint(1, len(text))]


def cut_gzip(random: Random, trace: Trace) -> bytes:
    packed = gzip.compress(_text(trace), 1)
    return packed[: random.randint(3, len(packed))]


def damaged_gzip(random: Random, trace: Trace) -> bytes:
    packed = bytearray(gzip.compress(_text(trace), 1))
    for _ in range(random.randint(1, 3)):
        packed[random.randrange(len(packed))] ^= 1 << random.randrange(8)
    return bytes(packed)


def not_json(random: Random, trace: Trace) -> bytes:
    """A value in the text is replaced by what JSON has no word for."""
    text = _text(trace)
    colons = [i for i in range(len(text)) if text[i : i + 2] == b": "]
    for at in sorted(random.sample(colons, min(len(colons), random.randint(1, 3))), reverse=True):
        end = min((e for e in (text.find(b",", at), text.find(b"}", at), text.find(b"]", at)) if e > 0), default=at + 2)
        text = text[: at + 2] + random.choice(NOT_JSON) + text[end:]
    return text


def changed_bytes(random: Random, trace: Trace) -> bytes:
    text = bytearray(_text(trace))
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(text))
        if random.random() < 0.5:
            text[at] = random.randrange(256)
        else:
            del text[at]
    return bytes(text)


def repeated_keys(random: Random, trace: Trace) -> bytes:
    text = _text(trace).decode()
    key = random.choice(('"ts": ', '"name": ', '"dur": ', '"args": ', '"ph": '))
    at = text.rfind(key, 0, random.randint(1, len(text)))
    return (text if at < 0 else f"{text[:at]}{key}{random.choice(('1', 'null', '[]'))}, {text[at:]}").encode()


def two_lists(random: Random, trace: Trace) -> bytes:
    """The events in two lists, as if the key came again."""
    events = trace.pop("traceEvents")
    at = random.randint(0, len(events))
    first, second = (f'"traceEvents": {json.dumps(part)}' for part in (events[:at], events[at:]))
    return f"{_text(trace).decode()[:-1]}{', ' * bool(trace)}{first}, {second}}}".encode()


def second_window(random: Random, trace: Trace) -> bytes:
    """Everything, or some of it, once more later on, under the same ids."""
    later = random.choice((1, 10**4, 10**9))
    copies = [copy.deepcopy(event) for event in trace["traceEvents"] if random.random() < 0.9]
    for event in copies:
        if "ts" in event:
            event["ts"] = float(event["ts"]) + later
    trace["traceEvents"] += copies
    return _text(trace)


MUTATIONS: tuple[Mutation, ...] = (
    drop_events, repeat_events, reorder_events, reorder_keys, odd_argument, lost_argument, odd_field, lost_field,
    swapped_fields, odd_events, odd_metadata, odd_times, cut_text, cut_gzip, damaged_gzip, not_json, changed_bytes,
    repeated_keys, two_lists, second_window,
)  # fmt: skip
ALWAYS_A_REPORT = (drop_events, repeat_events, reorder_events, reorder_keys, two_lists, second_window)
SINGLE_ARGUMENT = (odd_argument, lost_argument)

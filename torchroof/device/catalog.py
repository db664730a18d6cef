"""The catalogue of devices: found by what a person types, or by what a trace says of its device."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from torchroof.device.entry import Entry
from torchroof.device.shelf import read_shelf
from torchroof.device.slices import card_of, instance, partition
from torchroof.errors import UnknownDevice
from torchroof.resources import configs_folder

_MAKERS = frozenset(
    {"nvidia", "amd", "intel", "apple", "tesla", "geforce", "instinct", "radeon", "gpu"},
)
"""Words that people add to a name or leave out."""


@cache
def entries() -> tuple[Entry, ...]:
    """Every device known, in catalogue order."""
    return read_shelf(configs_folder() / "devices")


# -- by what a person types ---------------------------------------------------------------------------------


def find(name: str) -> Entry:
    """The device of a key, a plain name, a driver's name, or the words that single one out.

    Several that differ in no ceiling count as one. Raises UnknownDevice with the near names.
    """
    wanted = " ".join(name.split())
    by_name = [e for e in entries() if wanted.lower() in {n.lower() for n in (e.key, e.name, *e.aliases)}]
    found = by_name or (_named(wanted, entries()) if wanted else []) or _with_words(wanted)
    if not found:
        near = _near(wanted)
        raise UnknownDevice(f"no device named {name!r} is known; {near}'torchroof devices' lists all")
    if any(_rates(e) != _rates(found[0]) for e in found):
        names = ", ".join(e.name for e in found)
        raise UnknownDevice(f"{name!r} may be any of {names}; name one of them")
    return found[0]


def _with_words(name: str) -> list[Entry]:
    """Entries whose names hold all the words: ``H100 SXM`` is in ``H100 SXM 80GB``."""
    words = _words(name) - _MAKERS
    return [e for e in entries() if words and words <= _words(e.name) | _words(e.key)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def _rates(entry: Entry) -> object:
    """What judges a kernel: two entries that agree here are one device to the roofline."""
    return entry.matrix_flops_per_s, entry.vector_flops_per_s, entry.memory_bandwidth_bytes_per_s


def _near(name: str) -> str:
    """The near names by spelling, as the start of a sentence, or nothing."""
    import difflib  # 8 ms that only a wrong name pays

    spelled: dict[str, list[str]] = {}
    for entry in entries():
        models = (w for w in entry.name.split() if re.search(r"[A-Za-z]+\d", w))
        for spelling in (entry.key, entry.name, *entry.aliases, *models):
            spelled.setdefault(spelling.lower(), []).append(entry.name)
    bare = " ".join(w for w in name.lower().split() if w not in _MAKERS)
    near = difflib.get_close_matches(bare, spelled, n=8, cutoff=0.5)
    names = list(dict.fromkeys(n for spelling in near for n in spelled[spelling]))[:5]
    return f"near ones are {', '.join(names)}; " if names else ""


# -- by what a trace says -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Match:
    """The entry of a trace's device, None where none is certain, and sentences that a reader should see."""

    entry: Entry | None
    notes: tuple[str, ...] = ()


def match(properties: Mapping[str, Any]) -> Match:
    """The device of one entry of Kineto's ``deviceProperties``.

    Read are ``name``, ``totalGlobalMem`` (bytes), ``numSms``, ``computeMajor``, ``computeMinor`` and
    ``warpSize``. A name is believed only where units and memory agree; another card's numbers are never
    taken.
    """
    name = str(properties.get("name") or "").strip()
    if not name:
        return _match_unnamed(properties)
    if (card := card_of(name)) is not None:
        return _share(instance(_with_variants(_named(card, entries())), properties), name)
    named = _with_variants(_named(name, entries()))
    if not named:
        return Match(None, (f"{name!r} is not in the device catalogue",))
    fitting = [e for e in named if not _misfits(e, properties)]
    if not fitting and (part := partition(named, properties)) is not None:
        return _share(part, name)
    if not fitting:
        return Match(None, (_misfit_sentence(name, named, properties),))
    if any(_rates(e) != _rates(fitting[0]) for e in fitting):
        names = ", ".join(e.name for e in fitting)
        return Match(None, (f"{name!r} may be any of {names}; the trace does not tell which",))
    entry = fitting[0]
    return Match(entry, (f"{entry.name}: {entry.caution}",) if entry.caution else ())


def _share(part: Entry | None, name: str) -> Match:
    if part is None:
        return Match(None, (f"{name!r} is a slice of a card; its share of the card's peaks is not known",))
    return Match(part, (f"{name!r} is judged as a part of a card: {part.name}",))


def differences(entry: Entry, properties: Mapping[str, Any]) -> tuple[str, ...]:
    """Sentences for what the trace's device has otherwise than a chosen entry; none where they agree."""
    return tuple(f"the trace's device has {said}, {entry.name} has {own}" for said, own in _misfits(entry, properties))


def is_called(name: str, key: str) -> bool:
    """Whether a driver's name is one of the device with this key."""
    return any(key in (e.key, e.variant_of) for e in _with_variants(_named(name, entries()))) or any(
        name in (e.name, *e.aliases) for e in entries() if e.key == key
    )


def _match_unnamed(properties: Mapping[str, Any]) -> Match:
    """A device without a name: by its figures, where exactly one entry has them."""
    if not properties.get("numSms") or not properties.get("totalGlobalMem"):
        return Match(None, ("the trace does not name its device",))
    fitting = [
        e
        for e in entries()
        if e.capability is not None
        and e.capability == (properties.get("computeMajor"), properties.get("computeMinor"))
        and e.warp == properties.get("warpSize", e.warp)
        and not _misfits(e, properties)
    ]
    figures = f"{properties['numSms']} multiprocessors and {_gib(properties['totalGlobalMem'])}"
    if len(fitting) == 1:
        note = f"the trace does not name its device; only {fitting[0].name} has {figures}"
        return Match(fitting[0], (note,))
    candidates = ", ".join(e.name for e in fitting) or "no known device"
    return Match(None, (f"the trace does not name its device; {figures} fit {candidates}",))


def _named(name: str, candidates: Iterable[Entry]) -> list[Entry]:
    """Entries one of whose patterns fits a driver's name.

    Compiling every pattern costs more than all else here, so those that share a word with a digit in it
    (``A6000``) are tried first, and the rest only when none of them fits.
    """
    marks = [w for w in re.findall(r"[A-Z0-9]+", name.upper()) if len(w) > 1 and any(c.isdigit() for c in w)]
    likely: list[Entry] = []
    rest: list[Entry] = []
    for entry in candidates:
        text = " ".join(entry.patterns).upper()
        (likely if any(m in text for m in marks) else rest).append(entry)
    return _fitting(name, likely) or _fitting(name, rest)


def _fitting(name: str, candidates: Sequence[Entry]) -> list[Entry]:
    return [e for e in candidates if any(re.search(p, name, re.IGNORECASE) for p in e.patterns)]


def _with_variants(named: Sequence[Entry]) -> list[Entry]:
    keys = {e.key for e in named}
    return [*named, *(e for e in entries() if e.variant_of in keys)]


# Memory is sold in GB, built in GiB, and reported less what error correction and the driver keep (up to a
# sixteenth of GDDR). So what is reported lies between 5 % under the size read as GB and 5 % over it in GiB.
_LEAST_MEMORY = 0.95 * 1e9 / 2**30
_MOST_MEMORY = 1.05


def _misfits(entry: Entry, properties: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Pairs (what the trace says, what the entry has) that disagree; absent figures disagree with nothing."""
    found = []
    units, memory = properties.get("numSms"), properties.get("totalGlobalMem")
    if units and entry.units() and units not in entry.units():
        found.append((f"{units} multiprocessors", str(entry.units()[0])))
    if (
        memory
        and entry.memory_bytes
        and not _LEAST_MEMORY * entry.memory_bytes <= memory <= _MOST_MEMORY * entry.memory_bytes
    ):
        found.append((f"{_gib(memory)} of memory", _gib(entry.memory_bytes)))
    return found


def _misfit_sentence(name: str, named: Sequence[Entry], properties: Mapping[str, Any]) -> str:
    if len(named) > 1:
        known = ", ".join(e.name for e in named)
        said = f"{properties.get('numSms')} multiprocessors and {_gib(properties.get('totalGlobalMem') or 0)}"
        return f"{name!r} with {said} is none of the devices of that name ({known}), so it gets no roof"
    said = " and ".join(said for said, _ in _misfits(named[0], properties))
    own = " and ".join(own for _, own in _misfits(named[0], properties))
    return f"{name!r} has {said} where the catalogue's {named[0].name} has {own}, so it gets no roof"


def _gib(size: float) -> str:
    return f"{size / 2**30:.4g} GiB"

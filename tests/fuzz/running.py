"""One fuzz case: a mutated trace goes in; a report that keeps every law comes out, or one clear line."""

from __future__ import annotations

import copy
import gzip
import json
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import laws
from job_maker import make_job
from mutations import MUTATIONS, Mutation

from torchroof.errors import TorchroofError, TruncatedTrace
from torchroof.report.build import analyse
from torchroof.report.lenses import lines
from torchroof.report.model import ReportData
from torchroof.trace.reader import read

SHARED = Path(__file__).resolve().parents[3] / "shared" / "traces"
SMALL = 4000
"""Bytes of a packed file that is small."""


@cache
def originals() -> dict[str, dict[str, Any]]:
    """Real small files where they are here, and simulated jobs."""
    found = {f"job{seed}": _job(seed) for seed in range(6)}
    for path in sorted(SHARED.glob("*.json.gz")) if SHARED.is_dir() else ():
        if path.stat().st_size < SMALL:
            found[path.name.removesuffix(".json.gz")] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def _job(seed: int) -> dict[str, Any]:
    trace = make_job(seed, steps=1)[0].trace
    return {**trace.metadata, "traceEvents": trace.events}


def outcome(name: str, mutation: Mutation, seed: int, path: Path) -> ReportData | TorchroofError:
    """Runs one case. Anything but a report or an error of ours is raised, and so is a broken law."""
    path.write_bytes(mutation(Random(seed), copy.deepcopy(originals()[name])))
    try:
        try:
            data = analyse(read(path))
        except TruncatedTrace as cut:
            try:
                data = analyse(read(path, partial=True))
                assert any(note.kind == "truncated" for note in data.notes)
            except TruncatedTrace:
                raise cut from None
    except TorchroofError as why:
        assert "\n" not in str(why) and str(why).startswith(path.name), str(why)
        return why
    laws.check(data)
    lines(data, "kernel")
    return data


def cases(seed: int, count: int) -> list[tuple[str, Mutation, int]]:
    """So many cases, spread evenly over mutations."""
    random = Random(seed)
    names = sorted(originals())
    return [(random.choice(names), MUTATIONS[i % len(MUTATIONS)], random.randrange(10**9)) for i in range(count)]


def main(count: int, seed: int) -> None:
    """Runs so many cases and prints what came of them, by mutation."""
    reports: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    with TemporaryDirectory() as folder:
        for name, mutation, case in cases(seed, count):
            try:
                found = outcome(name, mutation, case, Path(folder) / "made.json")
            except Exception as why:
                sys.exit(f"{name} {mutation.__name__} {case}: {type(why).__name__}: {why}")
            (reports if isinstance(found, ReportData) else errors)[mutation.__name__] += 1
    print(f"{count:,} mutations of {len(originals())} traces, seed {seed}:")
    print(f"{reports.total():,} reports that keep every law, {errors.total():,} clear errors, nothing else.\n")
    print(f"{'mutation':18}{'reports':>9}{'errors':>9}")
    for mutation in MUTATIONS:
        print(f"{mutation.__name__:18}{reports[mutation.__name__]:9}{errors[mutation.__name__]:9}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)

"""Ranks analysed side by side: which files, and on whose processors."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from torchroof.errors import TraceError
from torchroof.ranks.one import Options, RankFile, analyse_rank
from torchroof.report.codec import looks_like_report
from torchroof.trace.file import blocks

Progress = Callable[[int, int], None]
"""Told how many of how many files are done."""

_ENDINGS = (".json", ".json.gz", ".json.tmp", ".json.gz.tmp")
"""What traces are called; a profiler that was killed leaves a ``.tmp``."""
_HEAD = 256


def traces_in(folder: str | os.PathLike[str]) -> list[Path]:
    """The trace files of a folder, by name, without the reports that lie among them. Raises TraceError."""
    try:
        inside = sorted(path for path in Path(folder).iterdir() if path.name.endswith(_ENDINGS) and path.is_file())
    except OSError as why:
        raise TraceError(f"{folder}: cannot be listed ({why.strerror or why}); check the path") from None
    found = [path for path in inside if not _is_report(path)]
    if not found:
        raise TraceError(f"{folder} holds no trace; a trace's name ends in .json or .json.gz")
    return found


def _is_report(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return looks_like_report(next(blocks(file, path.name))[:_HEAD])
    except (OSError, TraceError):
        return False


def analyse_ranks(
    paths: Sequence[str | os.PathLike[str]],
    options: Options,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> list[RankFile]:
    """Every file analysed, in the order given. ``executor`` does the work, by default a process per core."""
    names = [os.path.abspath(path) for path in paths]
    tell = progress or (lambda done, of: None)
    if executor is not None:
        return _gathered(names, options, executor, tell)
    workers = min(len(names), _cores())
    if workers < 2:
        found = []
        for name in names:
            found.append(analyse_rank(name, options))
            tell(len(found), len(names))
        return found
    with _pool(workers) as pool:
        return _gathered(names, options, pool, tell)


def _pool(workers: int) -> ProcessPoolExecutor:
    """A fresh interpreter each: one that was forked could hang on a lock that a thread held."""
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _gathered(names: Sequence[str], options: Options, executor: Executor, tell: Progress) -> list[RankFile]:
    futures: dict[Future[RankFile], int] = {}
    found: dict[int, RankFile] = {}
    try:
        for i, name in enumerate(names):
            futures[executor.submit(analyse_rank, name, options)] = i
        for future in as_completed(futures):
            i = futures[future]
            try:
                found[i] = future.result()
            except BrokenProcessPool:
                continue
            tell(len(found), len(names))
    except BrokenProcessPool:
        pass
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    for i, name in enumerate(names):
        if i not in found:  # a worker died, and took with it what others had to do
            found[i] = _alone(name, options)
            tell(len(found), len(names))
    return [found[i] for i in range(len(names))]


def _alone(name: str, options: Options) -> RankFile:
    """A file in a process of its own, so that only the file that is the cause has no figures."""
    try:
        with _pool(1) as pool:
            return pool.submit(analyse_rank, name, options).result()
    except BrokenProcessPool:
        why = "the process that read it ended early (out of memory, or a script without if __name__ == '__main__')"
        return RankFile(name, fault=f"{os.path.basename(name)}: {why}")

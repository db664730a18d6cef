"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from torchroof.errors import NO_PATH, OutputError, reason_of

Write = Callable[[bytes], None]


@contextmanager
def output(path: str | os.PathLike[str]) -> Iterator[Write]:
    """Opens a file for writing at once and gives a function that writes to it.

    The file takes its name when the block ends well; else nothing is left, and what had the name keeps it.
    Pipes and devices are written to directly. Raises OutputError.
    """
    try:
        target = Path(os.path.realpath(path))
        direct = target.exists() and not target.is_file() and not target.is_dir()
        draft = target if direct else target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.tmp")
        file = _open(target, draft, path)
    except NO_PATH as why:
        raise _fault(path, why) from None
    try:
        yield _writer(file, path)
        _finish(file, target, draft, path)
    finally:
        with suppress(OSError):
            file.close()
        if not direct:
            draft.unlink(missing_ok=True)


def _open(target: Path, draft: Path, path: str | os.PathLike[str]) -> BinaryIO:
    if target.is_dir():
        raise OutputError(f"cannot write {path}: it is a folder; name a file")
    if target.exists() and not os.access(target, os.W_OK):
        raise OutputError(f"cannot write {path}: it may not be changed; choose another name")
    if draft == target:
        return target.open("wb", buffering=0)
    return open(draft, "xb", buffering=0)


def _writer(file: BinaryIO, path: str | os.PathLike[str]) -> Write:
    def write(text: bytes) -> None:
        left = memoryview(text)
        try:
            while left:
                left = left[file.write(left) :]
        except BrokenPipeError:
            raise
        except OSError as why:
            raise _fault(path, why) from None

    return write


def _finish(file: BinaryIO, target: Path, draft: Path, path: str | os.PathLike[str]) -> None:
    try:
        file.close()
        if draft != target:
            if target.exists():
                draft.chmod(stat.S_IMODE(target.stat().st_mode))
            draft.replace(target)
    except OSError as why:
        raise _fault(path, why) from None


def _fault(path: str | os.PathLike[str], why: Exception) -> OutputError:
    return OutputError(f"cannot write {path}: {reason_of(why)}; choose another place with -o or save()")

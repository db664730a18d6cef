"""The command `torchroof`. A verb is a module: NAME, HELP, ``configure(parser)``, ``run(args) -> int``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import UnsupportedOperation
from typing import Any, NoReturn

from torchroof.cli import exit_codes
from torchroof.errors import TorchroofError, reason_of

VERBS = (
    ("demo", "torchroof.cli.demo", "train a small network here and print its table"),
    ("report", "torchroof.cli.report", "the per-layer roofline table of a trace"),
    ("devices", "torchroof.cli.devices", "show what ceilings are known, from where, how sure"),
    ("calibrate", "torchroof.cli.calibrate", "measure the ceilings of a device here, and keep them"),
    ("doctor", "torchroof.cli.doctor", "try out what profiling needs here, expected beside found"),
    ("explain", "torchroof.cli.explain", "work out the FLOPs, bytes and least time of one op"),
)
"""Name, module, help. Only the module of the verb that runs is imported, for a quick start."""

_CODES = "exit codes: 0 done, 1 a check failed, 2 bad input or usage, 130 interrupted"


class _UsageError(Exception):
    """What argparse found wrong, in its words."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message}; see {self.prog} --help")

    def _print_message(self, message: str, file: Any = None) -> None:
        """As argparse's own, which says nothing where a screen takes no help."""
        if message:
            (file or sys.stderr).write(message)


class _Formatter(argparse.HelpFormatter):
    """Gives the longest verb room for its help beside it; argparse forgets their indent."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = 4 + max(len(name) for name, *_ in VERBS)


class _Version(argparse.Action):
    """Looks the version up only when asked: reading package metadata is slow."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import torchroof

        print(f"torchroof {torchroof.__version__}")
        parser.exit(exit_codes.DONE)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code. ``argv`` is without the program's name."""
    words = list(sys.argv[1:] if argv is None else argv)
    _stand_in_for_closed_streams()
    _never_fail_to_encode()
    try:
        try:
            code = _run(words)
        except SystemExit as leaving:  # argparse, after --help and --version
            code = int(leaving.code or 0)
        sys.stdout.flush()
    except _UsageError as why:
        return _refuse(str(why))
    except TorchroofError as why:
        return _refuse(str(why))
    except BrokenPipeError:
        _let_go_of_stdout()
        return exit_codes.DONE
    except OSError as why:
        if why.filename is not None:  # a file's fault has its own message; what is left is the screen's
            raise
        _let_go_of_stdout()
        told = "it is closed" if isinstance(why, UnsupportedOperation) else reason_of(why)
        return _refuse(f"cannot write to standard output: {told}")
    except KeyboardInterrupt:
        print("torchroof: interrupted", file=sys.stderr)
        return exit_codes.INTERRUPTED
    return code


def _run(words: list[str]) -> int:
    verb = next((word for word in words if not word.startswith("-")), None)
    parser = _Parser(
        prog="torchroof",
        description="Attributes kernel time to the layers of a PyTorch model and judges each by a roofline.",
        epilog=_CODES,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, module, help_line in VERBS:
        child = verbs.add_parser(name, help=help_line, description=f"{_sentence(help_line)}.", allow_abbrev=False)
        if name == verb:
            chosen = import_module(module)
            chosen.configure(child)
            child.set_defaults(run=chosen.run)
    args = parser.parse_args(words)
    if not hasattr(args, "run"):
        parser.print_help()
        return exit_codes.DONE
    code: int = args.run(args)
    return code


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _refuse(message: str) -> int:
    line = "".join(c if c.isprintable() else "?" for c in " ".join(message.splitlines()))
    print(f"torchroof: {line}", file=sys.stderr)
    return exit_codes.UNUSABLE


def _stand_in_for_closed_streams() -> None:
    """Python has None for a stream that the shell closed: what is said on it is lost, an answer is a fault."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull)  # noqa: SIM115 - it lives as long as the process; writing to it fails
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _never_fail_to_encode() -> None:
    """A terminal without UTF-8 shows ``?`` for what it cannot, instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _let_go_of_stdout() -> None:
    """The reader of the pipe is gone: what is still buffered would fail again when Python ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return

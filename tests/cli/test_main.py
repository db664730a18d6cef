"""The command's frame: verbs, help, version, exit codes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import torchroof
from torchroof import cli
from torchroof.cli import exit_codes, main
from torchroof.errors import TorchroofError


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"torchroof {torchroof.__version__}\n"


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name, _, _ in cli.VERBS)


@pytest.mark.parametrize(("name", "module", "help_line"), cli.VERBS)
def test_verbs_keep_their_contract(name: str, module: str, help_line: str, capsys: pytest.CaptureFixture[str]) -> None:
    verb = import_module(module)
    assert name == verb.NAME and callable(verb.run)
    assert help_line == verb.HELP
    assert main([name, "--help"]) == 0
    assert f"torchroof {name}" in capsys.readouterr().out


def outcome(monkeypatch: pytest.MonkeyPatch, fault: BaseException) -> int:
    def fail(_: list[str]) -> int:
        raise fault

    monkeypatch.setattr(cli, "_run", fail)
    return main(["report"])


def test_faults_become_exit_codes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(monkeypatch, KeyboardInterrupt()) == exit_codes.INTERRUPTED == 130
    assert outcome(monkeypatch, TorchroofError("bad\nthing")) == exit_codes.UNUSABLE == 2
    assert capsys.readouterr().err.splitlines() == ["torchroof: interrupted", "torchroof: bad thing"]
    with pytest.raises(ZeroDivisionError):  # our own faults are shown whole
        outcome(monkeypatch, ZeroDivisionError())


def test_readme_has_the_exit_codes() -> None:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    codes = [value for name, value in vars(exit_codes).items() if name.isupper()]
    assert codes == [0, 1, 2, 130]
    assert all(f"| {code} |" in readme for code in codes)

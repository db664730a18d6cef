"""Finds and reads `configs/`: inside an installed wheel, or beside the package in an editable install."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from torchroof.errors import TorchroofError


@cache
def configs_folder() -> Path:
    """The folder that holds `devices/` and the rest."""
    package = Path(__file__).resolve().parent
    for folder in (package / "configs", package.parent / "configs"):
        if (folder / "devices").is_dir():
            return folder
    raise TorchroofError("torchroof's configs folder is missing; install torchroof again")


def read_toml(name: str) -> dict[str, Any]:
    """A TOML file of `configs/` by its path in there."""
    import tomllib  # 8 ms that a report does not need

    with (configs_folder() / name).open("rb") as file:
        return tomllib.load(file)

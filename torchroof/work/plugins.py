"""Formulas that installed packages bring along.

A package declares an entry point of the group `torchroof.work_models` that leads to a `Model`, to several, or to a
module or an object with a list of them called ``MODELS``. In its pyproject.toml::

    [project.entry-points."torchroof.work_models"]
    mylib = "mylib.torchroof_models"

One that cannot be loaded, or whose names are taken, is left out, and said to be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from torchroof.errors import RegistrationError
from torchroof.work.registry import Model, Registry
from torchroof.work.standard import STANDARD

GROUP = "torchroof.work_models"


@dataclass(frozen=True, slots=True)
class Installed:
    """The standard formulas and those of packages; why those of some packages are missing."""

    registry: Registry
    problems: tuple[str, ...] = ()


@cache
def installed() -> Installed:
    """What is installed, looked up once a process."""
    return with_plugins(STANDARD, entry_points(group=GROUP))


def with_plugins(registry: Registry, found: Iterable[EntryPoint]) -> Installed:
    """A registry with what entry points lead to, in the order of their names."""
    problems = []
    for entry in sorted(found, key=lambda e: (e.name, e.value)):
        try:
            registry = registry.extended(_models(entry.load()))
        except Exception as why:  # a package that is broken must not take the report with it
            problems.append(f"The work models of {_package(entry)} are left out: {_reason(why)}")
    return Installed(registry, tuple(problems))


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} ({entry.value})" if entry.dist is not None else entry.value


def _reason(why: Exception) -> str:
    return str(why) if isinstance(why, RegistrationError) else f"{type(why).__name__}: {why}"


def _models(loaded: object) -> tuple[Model, ...]:
    """The models that an entry point leads to. Raises RegistrationError for something else."""
    if isinstance(loaded, Model):
        return (loaded,)
    models = getattr(loaded, "MODELS", loaded)
    if isinstance(models, Iterable):
        listed = tuple(models)
        if listed and all(isinstance(model, Model) for model in listed):
            return listed
    raise RegistrationError("it is no Model, no list of them and has no MODELS")

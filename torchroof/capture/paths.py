"""What each module is called: its dotted path from the model, whatever wraps it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Mapping

from torch import nn

from torchroof.errors import OptionError

_WRAPPED = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
"""Child names under which torch's wrappers hold what they wrap."""
_REPLICATING = ("DistributedDataParallel", "DataParallel")
"""Wrappers that call it ``module``, a name that others use too."""

_WALKS = 100
"""How often a model is walked again for modules not known so far: some are made anew at each call."""


def roots_of(model: object) -> dict[str, nn.Module]:
    """The models to name, by prefix (empty for a single one). Raises OptionError for anything else."""
    if model is None:
        return {}
    if isinstance(model, nn.Module):
        return {"": model}
    wanted = "profile: model must be a torch.nn.Module or a dict of them by name"
    if not isinstance(model, Mapping):
        raise OptionError(f"{wanted}, not {type(model).__name__}")
    roots: dict[str, nn.Module] = {}
    for key, value in model.items():
        if not isinstance(key, str) or not key or not isinstance(value, nn.Module):
            raise OptionError(f"{wanted}; {key!r} is {type(value).__name__}")
        roots[key] = value
    return roots


def holds_wrapped(module: nn.Module) -> str | None:
    """The name of the child that a wrapper stands for; None for a module that is no wrapper.

    A wrapper shares its path with what it wraps and is no layer of its own.
    """
    children = {name for name, _ in module._modules.items()}  # a scripted module's are no dict
    if wrapped := children & _WRAPPED:
        return str(min(wrapped))
    if type(module).__name__ in _REPLICATING and "module" in children:
        return "module"
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    if compiler is not None and isinstance(module, getattr(compiler, "OptimizedModule", ())):
        return "_orig_mod"
    return None


class PathBook:
    """Paths by module identity. Without models the outermost module met first is the root, with path ""."""

    def __init__(self, roots: Mapping[str, nn.Module]) -> None:
        self._roots = dict(roots)
        self._known: dict[int, tuple[weakref.ref[nn.Module], list[str]]] = {}
        self._by_hooks: dict[int, weakref.ref[nn.Module]] = {}
        self._owner: dict[str, weakref.ref[nn.Module]] = {}
        self._walks_left = _WALKS
        self._walk_roots()

    def paths(self, module: nn.Module, enclosing: str | None) -> tuple[str, ...]:
        """The module's path and, after it, its other ones (shared modules).

        One unknown so far is looked for in the models again, for it may have been made since. Else it is
        named by its class, below the layer that encloses the call (None where none does).
        """
        module = self.original(module)
        found = self._lookup(module)
        if found is None and self._roots and self._walks_left:
            self._walks_left -= 1
            self._walk_roots()
            found = self._lookup(module)
        if found is None:
            if not self._roots:
                self._roots[""] = module
                name = ""
            else:
                name = self._free(_below(enclosing or "", type(module).__name__))
            self._walk(name, module)
            found = self._lookup(module) or [name]
        return tuple(found)

    def adopt(self, wrapper: nn.Module) -> None:
        """Takes a wrapper that is called first, where no model was given, as the root."""
        if not self._roots:
            self._roots[""] = wrapper
            self._walk("", wrapper)

    def original(self, module: nn.Module) -> nn.Module:
        """The module that a replica of DataParallel is a copy of; any other is itself.

        A replica is a shallow copy without parameters, and shares the table of its hooks with the original.
        """
        if getattr(module, "_is_replica", False):
            reference = self._by_hooks.get(id(module._forward_hooks))
            original = reference() if reference is not None else None
            if original is not None and original._forward_hooks is module._forward_hooks:
                return original
        return module

    def _lookup(self, module: nn.Module) -> list[str] | None:
        entry = self._known.get(id(module))
        return entry[1] if entry is not None and entry[0]() is module else None

    def _walk_roots(self) -> None:
        for prefix, root in self._roots.items():
            self._walk(prefix, root)

    def _walk(self, prefix: str, root: nn.Module) -> None:
        for path, module in _named(root, prefix, frozenset()):
            paths = self._lookup(module)
            if paths is not None:
                if path not in paths:
                    paths.append(path)
                continue
            reference = weakref.ref(module)
            if not holds_wrapped(module):
                path = self._free(path)
                self._owner[path] = reference
            self._known[id(module)] = (reference, [path])
            self._by_hooks[id(getattr(module, "_forward_hooks", None))] = reference

    def _free(self, name: str) -> str:
        """The name, with a number where another living module has it: one made anew at each call keeps it."""
        number, free = 1, name
        while (owner := self._owner.get(free)) is not None and owner() is not None:
            number += 1
            free = f"{name}_{number}"
        return free


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _named(module: nn.Module, path: str, above: frozenset[int]) -> Iterator[tuple[str, nn.Module]]:
    """Every module below with its path, shared ones each time; a module inside itself ends the walk."""
    yield path, module
    inside = above | {id(module)}
    wrapped = holds_wrapped(module)
    for name, child in list(module._modules.items()):
        if child is None or id(child) in inside:
            continue
        yield from _named(child, path if name == wrapped else _below(path, name), inside)

"""Global module hooks: a scope in the trace around every layer call, and what a trace cannot hold.

A hook runs in the user's forward pass, so it must be quick (a few µs), must not touch what it is shown, and
must not raise: what goes wrong becomes a note.
"""

from __future__ import annotations

import re
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator, Mapping
from functools import partial
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from torchroof.capture.compiled import CompileWatch
from torchroof.capture.paths import PathBook, holds_wrapped
from torchroof.capture.shapes import Found, parameter_facts, shape_fact, tensors_in
from torchroof.capture.torch_private import Scope, hook_after_calls, private_api
from torchroof.trace.metadata import SCOPE_PREFIX, CallColumns, LayerFact, ShapeFact

_SHAPES_PER_LAYER = 64
_COMPILE_WARNING = r"Using `torch\.compile\(module\)` when there are global hooks"

_UNFIT = re.compile(r'[\\"\x00-\x1f\x7f\ud800-\udfff]')


class _Thread:
    """The layer calls of one thread."""

    __slots__ = ("after", "before", "cut", "layer", "native_id", "recompute", "stack")

    def __init__(self) -> None:
        self.native_id = threading.get_native_id()
        self.layer: list[int] = []
        self.before: list[int] = []
        self.after: list[int] = []
        self.recompute: list[int] = []
        self.cut: list[int] = []
        self.stack: list[_Frame] = []


class _Layer:
    """What is known of one path."""

    __slots__ = ("aliases", "index", "last", "parameters", "path", "scope_name", "seen", "shapes", "type")

    def __init__(self, index: int, paths: tuple[str, ...], type_name: str) -> None:
        self.index = index
        self.path, *aliases = paths
        self.aliases = tuple(aliases)
        self.type = type_name
        self.scope_name = SCOPE_PREFIX + self.path
        self.parameters: tuple[Any, ...] = ()
        self.shapes: list[ShapeFact] = []
        self.seen: set[tuple[Found, Found]] = set()
        self.last: _Pair | None = None


_Frame = tuple[nn.Module, _Layer, int, Scope, BaseException | None]
"""An open call: its module and layer, its position in the thread's columns, its scope, the exception being handled."""
_Pair = tuple[tuple[int, ...], torch.dtype, tuple[int, ...], torch.dtype]
"""Shape and element type of the one tensor that came in, and of the one that went out."""


def _as_last(last: _Pair, args: tuple[Any, ...], output: Any) -> bool:
    """Whether a call had the shapes of the layer's last one: asked first, for a new signature takes longer."""
    if len(args) != 1 or type(output) is not torch.Tensor or type(args[0]) is not torch.Tensor:
        return False
    given = args[0]
    return given.shape == last[0] and output.shape == last[2] and given.dtype is last[1] and output.dtype is last[3]


def _pair(inputs: Found, outputs: Found) -> _Pair | None:
    return (*inputs[0], *outputs[0]) if len(inputs) == len(outputs) == 1 else None


def _forget(known: dict[int, Any], key: int, _: object) -> None:
    """A module is gone, and its id free for another."""
    known.pop(key, None)


def _fit(path: str) -> str:
    """A path as a trace can carry it: torch writes names into the file as they are, so quotes would break it."""
    return _UNFIT.sub("_", path)


class ModuleScopes:
    """The hooks, while they are installed, and what they have seen.

    Instances are used once: `install`, `remove`, then `layers` and `calls`.
    """

    def __init__(self, roots: Mapping[str, nn.Module]) -> None:
        self._book = PathBook(roots)
        self._layers: list[_Layer] = []
        self._by_path: dict[tuple[str, str], _Layer] = {}
        self._taken: set[str] = set()
        self._by_id: dict[int, tuple[weakref.ref[nn.Module], _Layer | None]] = {}
        self._local = threading.local()
        self._threads: list[_Thread] = []
        self._handles: list[Any] = []
        self._filter: Any = None
        self._api = private_api()
        self._compiler = CompileWatch(self._take_out, self._put_in, (type(self)._enter, type(self)._leave))
        self.thread = threading.get_native_id()
        """The thread that made this, as the trace writes it."""
        self.faults: dict[str, int] = {}
        """What went wrong inside the hooks, and how often."""

    @property
    def count(self) -> int:
        """Layer calls so far."""
        return sum(len(t.layer) for t in self._threads)

    @property
    def compilations(self) -> int:
        """How often torch.compile has compiled something since `install`."""
        self._compiler.attach()
        return self._compiler.count

    def install(self) -> None:
        """Adds the hooks to all modules of the process."""
        self._silence_compile_warning()
        self._put_in()
        self._compiler.attach()

    def remove(self) -> None:
        """Takes the hooks away and closes the scopes left open on this thread."""
        self._compiler.detach()
        self._take_out()
        self._restore_compile_warning()
        here = getattr(self._local, "thread", None)
        for thread in self._threads:
            while thread.stack:
                self._close(thread, cut=True, end_scope=thread is here)

    def _put_in(self) -> None:
        if not self._handles:
            self._handles = [
                register_module_forward_pre_hook(self._enter),
                hook_after_calls(self._leave),
            ]

    def _take_out(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def drop_stale(self) -> None:
        """Closes calls on this thread that are over though no hook said so: a KeyboardInterrupt skips them."""
        thread = getattr(self._local, "thread", None)
        if thread is None or not thread.stack:
            return
        running: set[int] = set()
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            if frame.f_code.co_name == "_call_impl":
                running.add(id(frame.f_locals.get("self")))
            frame = frame.f_back
        while thread.stack and id(thread.stack[-1][0]) not in running:
            self._close(thread, cut=True)

    def layers(self) -> tuple[LayerFact, ...]:
        parameters = [x.parameters for x in self._layers]
        for index, module in self._uncalled():
            parameters[index] += parameter_facts(module)
        return tuple(
            LayerFact(x.path, x.type, x.aliases, held, tuple(x.shapes))
            for x, held in zip(self._layers, parameters, strict=True)
        )

    def calls(self) -> tuple[CallColumns, ...]:
        return tuple(
            CallColumns(t.native_id, t.layer, t.before, t.after, t.recompute, sorted(t.cut))
            for t in self._threads
            if t.layer
        )

    def parameter_owners(self) -> dict[int, int]:
        """The layer (by index) that owns each parameter (by id), of the layers that ran."""
        owners: dict[int, int] = {}
        for index, module in (*self._called(), *self._uncalled()):
            for parameter in module._parameters.values():
                if parameter is not None:
                    owners.setdefault(id(parameter), index)
        return owners

    def _called(self) -> list[tuple[int, nn.Module]]:
        """The modules that ran and still live, with the layer (by index) that each is."""
        called = ((layer, reference()) for reference, layer in list(self._by_id.values()))
        return [(layer.index, module) for layer, module in called if layer is not None and module is not None]

    def _uncalled(self) -> Iterator[tuple[int, nn.Module]]:
        """Modules below a layer that were not called, with the layer: what is done with their parameters, it does
        (attention with its output projection, a parent that calls ``forward`` itself)."""
        called = self._called()
        known = {id(module) for _, module in called}
        for index, module in called:
            below = list(module._modules.values())
            while below:
                child = below.pop()
                if child is not None and id(child) not in known:
                    known.add(id(child))
                    below += child._modules.values()
                    yield index, child

    def unseen_calls(self) -> int:
        """Forward calls on threads that the profiler does not record: where torch cannot, all but its own."""
        if "profile_all_threads" in self._api.options:
            return 0
        others = (t for t in self._threads if t.native_id != self.thread)
        return sum(len(t.layer) - len(t.recompute) for t in others)

    def _enter(self, module: nn.Module, args: Any) -> None:
        api = self._api
        if not self._compiler.attached and api.is_compiling():
            return
        try:
            known = self._by_id.get(id(module))
            layer = self._meet(module) if known is None else known[1]
            if layer is None:
                return
            try:
                thread: _Thread = self._local.thread
            except AttributeError:
                thread = self._new_thread()
            position = len(thread.layer)
            thread.layer.append(layer.index)
            thread.before.append(api.sequence_number())
            thread.after.append(-1)
            if api.graph_task() != -1:
                thread.recompute.append(position)
            scope = api.scope(layer.scope_name)
            thread.stack.append((module, layer, position, scope, sys.exception()))
            scope.__enter__()
        except Exception as fault:
            self._note(fault)

    def _leave(self, module: nn.Module, args: Any, *rest: Any) -> None:
        """``rest`` is what was given by name, where torch tells it, and the output."""
        api, output = self._api, rest[-1]
        if not self._compiler.attached and api.is_compiling():
            return
        try:
            try:
                thread: _Thread = self._local.thread
            except AttributeError:
                return
            stack = thread.stack
            if not stack or (stack[-1][0] is not module and not self._unwind_to(thread, module)):
                return
            _, layer, position, scope, before = stack.pop()
            thread.after[position] = api.sequence_number()
            scope.__exit__(None, None, None)
            if output is None:
                raised = sys.exception()
                if raised is not None and raised is not before:
                    thread.cut.append(position)
                    return
            by_name = rest[0] if len(rest) > 1 else None
            if api.is_tracing() or (layer.last is not None and not by_name and _as_last(layer.last, args, output)):
                return
        except Exception as fault:
            self._note(fault)
            return
        try:
            if not api.is_compiling():
                self._see_shapes(layer, module, (args, by_name), output)
        except Exception as fault:
            self._note(fault, "the shapes of a layer call")

    def _unwind_to(self, thread: _Thread, module: nn.Module) -> bool:
        """Closes what lies above the module's open call; False where it has none (it is no layer)."""
        if not any(frame[0] is module for frame in thread.stack):
            return False
        while thread.stack[-1][0] is not module:
            self._close(thread, cut=True)
        return True

    def _close(self, thread: _Thread, cut: bool, end_scope: bool = True) -> None:
        _, _, position, scope, _ = thread.stack.pop()
        thread.after[position] = self._api.sequence_number() if end_scope else -1
        if cut:
            thread.cut.append(position)
        if end_scope:
            scope.__exit__(None, None, None)

    def _meet(self, module: nn.Module) -> _Layer | None:
        """A module seen for the first time; None for one that is no layer."""
        self._compiler.attach()
        layer = None
        if holds_wrapped(module) is None:
            layer = self._layer_at(self._book.paths(module, self._enclosing()), type(module).__name__)
        else:
            self._book.adopt(module)
        for one in (self._book.original(module), module):
            self._by_id[id(one)] = (weakref.ref(one, partial(_forget, self._by_id, id(one))), layer)
        return layer

    def _layer_at(self, paths: tuple[str, ...], type_name: str) -> _Layer:
        """The layer of a path and class. Another class at the same path (a module replaced) is another layer, and
        its path gets a number."""
        fit = tuple(_fit(path) for path in paths)
        known = self._by_path.get((paths[0], type_name))
        if known is None:
            path, number = fit[0], 1
            while path in self._taken:
                number += 1
                path = f"{fit[0]}_{number}"
            self._taken.add(path)
            known = self._by_path[paths[0], type_name] = _Layer(len(self._layers), (path, *fit[1:]), type_name)
            self._layers.append(known)
        return known

    def _enclosing(self) -> str | None:
        thread: _Thread | None = getattr(self._local, "thread", None)
        if thread is None or not thread.stack:
            return None
        return thread.stack[-1][1].path

    def _new_thread(self) -> _Thread:
        thread = self._local.thread = _Thread()
        self._threads.append(thread)
        return thread

    def _see_shapes(self, layer: _Layer, module: nn.Module, given: tuple[Any, Any], output: Any) -> None:
        """``given``: what the call was given by place and by name."""
        args, by_name = given
        signature = (tensors_in(args) + tensors_in(by_name), tensors_in(output))
        layer.last = _pair(*signature)
        if signature in layer.seen or len(layer.seen) >= _SHAPES_PER_LAYER:
            return
        if not layer.seen:
            layer.parameters = parameter_facts(self._book.original(module))
        layer.seen.add(signature)
        fact = shape_fact(*signature)
        if fact not in layer.shapes:
            layer.shapes.append(fact)

    def _note(self, fault: Exception, what: str = "a layer call") -> None:
        text = f"{what} could not be recorded: {type(fault).__name__}: {fault}"
        self.faults[text] = self.faults.get(text, 0) + 1

    def _silence_compile_warning(self) -> None:
        """Calling a compiled module warns of global hooks at the user's line; ours do no harm there."""
        warnings.filterwarnings("ignore", message=_COMPILE_WARNING, category=UserWarning)
        self._filter = warnings.filters[0]

    def _restore_compile_warning(self) -> None:
        if self._filter in warnings.filters:
            warnings.filters.remove(self._filter)  # type: ignore[attr-defined]
        self._filter = None

"""The one adapter for torch's private API.

Every name that torch may move is looked up here, once, by asking whether it is there. What is missing costs
a part of the record and leaves a note; it never fails a run.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import torch
from torch.nn.modules.module import register_module_forward_hook
from torch.profiler import ProfilerActivity

EVENTS_PER_BLOCK = 512
"""torch's recording queue takes memory for so many events at once, and counts the blocks."""
_BLOCK_COUNTER = (
    "_ZZN5torch8profiler4impl19ThreadLocalSubqueue14TorchOpStorage10EventBlock"
    "INS1_21KinetoObserverContext5EventELm512EEC4EvE8counter_"
)


class Scope(Protocol):
    """A range in the trace, opened and closed by hand."""

    def __enter__(self) -> Any: ...

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any, /) -> Any: ...


@dataclass(frozen=True)
class PrivateApi:
    """What this torch offers. The three functions are called in the hooks, so they are bare callables."""

    scope: Callable[[str], Scope]
    sequence_number: Callable[[], int]
    """The next autograd sequence number of this thread; -1 where torch does not tell."""
    graph_task: Callable[[], int]
    """-1 outside a backward pass."""
    is_compiling: Callable[[], bool]
    is_tracing: Callable[[], object]
    """True in some form while torch.jit.trace runs: then even asking a shape is written into the graph."""
    event_blocks: Callable[[], int] | None
    """How many blocks of EVENTS_PER_BLOCK events torch has recorded since the process began, rounded up per
    thread; None where the build does not show it."""
    options: Mapping[str, bool]
    """What torch's profiler is made with, of the options that it knows."""
    missing: tuple[str, ...]
    """A sentence for each thing that is not there."""


@cache
def private_api() -> PrivateApi:
    """Probes this torch once."""
    missing: list[str] = []
    scope = getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", None)
    if scope is None:
        missing.append("this torch has no fast profiler scope; layer scopes cost about 12 µs each")
        scope = torch.profiler.record_function
    sequence = getattr(torch.autograd, "_get_sequence_nr", None)
    if sequence is None:
        missing.append("this torch tells no autograd sequence numbers; some backward work may lack its layer")
        sequence = _absent
    task = getattr(torch._C, "_current_graph_task_id", None)
    if task is None:
        missing.append("this torch does not tell whether a backward pass runs; recomputation counts as forward")
        task = _absent
    blocks = _event_blocks()
    if blocks is None:
        missing.append("this build of torch does not show how many events it has recorded; the event limit is off")
    options = _profiler_options()
    if "profile_all_threads" not in options:
        missing.append("this torch records only the thread that profiles, and backward's own; others' work is missing")
    if not hasattr(getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None), "set_code_exec_strategy"):
        missing.append(
            "this torch's compiler cannot be kept from the layer scopes; what torch.compile compiles inside the block "
            "may fail or be compiled again (from torch 2.9 on it is not)"
        )
    tracing = getattr(torch._C, "_get_tracing_state", None) or torch.jit.is_tracing
    return PrivateApi(scope, sequence, task, _is_compiling(), tracing, blocks, options, tuple(missing))


def _absent() -> int:
    return -1


def _is_compiling() -> Callable[[], bool]:
    compiler = getattr(torch, "compiler", None)
    found: Callable[[], bool] | None = getattr(compiler, "is_compiling", None)
    return found or (lambda: False)


def _profiler_options() -> dict[str, bool]:
    config = getattr(getattr(torch._C, "_profiler", None), "_ExperimentalConfig", None)
    found: dict[str, bool] = {}
    for option in ("trace_only", "profile_all_threads"):
        with suppress(TypeError):
            if config is not None:
                config(**{option: True})
                found[option] = True
    return found


def _event_blocks() -> Callable[[], int] | None:
    """Reads the counter by which torch numbers its events; the symbol is there in Linux builds."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        counter = ctypes.c_uint64.in_dll(library, _BLOCK_COUNTER)
    except (OSError, ValueError):
        return None
    return lambda: counter.value


def profiler_running() -> bool:
    """Whether a torch profiler records in this process."""
    return _records_this_thread() or bool(getattr(torch.autograd.profiler, "_is_profiler_enabled", False))


def recording_lost() -> bool:
    """Whether another torch profiler took over since ours was started: to stop or export ours would then crash.

    Ours records the process where torch can, so one that records this thread alone is another's.
    """
    if "profile_all_threads" in private_api().options and _records_this_thread():
        return True
    return not getattr(torch.autograd.profiler, "_is_profiler_enabled", True)


def _records_this_thread() -> bool:
    enabled = getattr(torch.autograd, "_profiler_enabled", None)
    return enabled is not None and bool(enabled())


def device_type() -> str:
    """``cuda`` (ROCm too), ``xpu`` or ``cpu``: the accelerator that torch can use here."""
    if torch.cuda.is_available():
        return "cuda"
    xpu = getattr(torch, "xpu", None)
    return "xpu" if xpu is not None and xpu.is_available() else "cpu"


def same_devices() -> tuple[int, ...]:
    """Indices of the visible accelerators that are the same kind as the one in use."""
    module = getattr(torch, device_type())
    used = module.get_device_name(module.current_device())
    return tuple(i for i in range(module.device_count()) if module.get_device_name(i) == used)


def activities() -> list[Any]:
    """The host, and the accelerator that is there."""
    wanted = {"cuda": "CUDA", "xpu": "XPU"}.get(device_type())
    accelerator = getattr(ProfilerActivity, wanted, None) if wanted else None
    return [ProfilerActivity.CPU] + ([accelerator] if accelerator is not None else [])


def new_profiler(record_shapes: bool) -> Any:
    """A stopped profiler of all threads; its Python event objects are left out where torch can (we read the
    exported file)."""
    options = private_api().options
    return torch.profiler.profile(
        activities=activities(),
        record_shapes=record_shapes,
        experimental_config=torch._C._profiler._ExperimentalConfig(**options) if options else None,
    )


def pause(profiler: Any) -> bool:
    """Stops collecting on this thread without closing the window; False where torch cannot."""
    toggle = getattr(profiler, "toggle_collection_dynamic", None)
    if toggle is None:
        return False
    toggle(False, activities())
    return True


class _AfterCalls:
    """A hook after every module call. torch forgets to take out of its notes that the hook wants what was given by
    name, and then takes the slow way into every module for good."""

    def __init__(self, hook: Callable[..., None], notes: dict[int, bool] | None) -> None:
        self._notes = notes
        by_name = {} if notes is None else {"with_kwargs": True}
        self._handle = register_module_forward_hook(hook, always_call=True, **by_name)

    def remove(self) -> None:
        self._handle.remove()
        if self._notes is not None:
            self._notes.pop(self._handle.id, None)


def hook_after_calls(hook: Callable[..., None]) -> _AfterCalls:
    """Has ``hook(module, args, kwargs, output)`` called after every module call of the process, ``hook(module, args,
    output)`` after an exception and where torch's notes cannot be put in order afterwards. The result has `remove`."""
    return _AfterCalls(hook, getattr(torch.nn.modules.module, "_global_forward_hooks_with_kwargs", None))


def compile_callbacks() -> Any:
    """Where dynamo calls those who ask before and after it compiles; None where it is not loaded or has no such
    place. Importing it (a second) is left to the user's own torch.compile."""
    return getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)


def keep_from_compiling(*functions: Callable[..., object]) -> None:
    """Has dynamo, which is loaded, run these functions and all that they call as they are."""
    frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    types = sys.modules.get("torch._dynamo.types")
    set_strategy = getattr(frames, "set_code_exec_strategy", None)
    strategy, action = getattr(types, "FrameExecStrategy", None), getattr(types, "FrameAction", None)
    if set_strategy is not None and strategy is not None and action is not None:
        for function in functions:
            set_strategy(function.__code__, strategy(action.SKIP, action.SKIP))


def call_in_main_thread(function: Callable[[], None]) -> Callable[[], None] | None:
    """Something which, called on any thread, has the main thread run ``function`` between two bytecodes.

    It is CPython's own queue of pending calls. None on another interpreter. The result must stay
    referenced until the call has run.
    """
    add = getattr(getattr(ctypes, "pythonapi", None), "Py_AddPendingCall", None)
    if add is None:
        return None

    def run(_: Any) -> int:
        function()
        return 0

    callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(run)

    def request(_keep: Any = callback) -> None:
        add(callback, None)

    return request

"""How profilers of different years and vendors name things, as tables.

Nothing here looks at a version: a trace file has no usable one. Every table is keyed by what the file says.
"""

from __future__ import annotations

import re

from torchroof.tensors import DType, dtype_named
from torchroof.trace.metadata import SCOPE_PREFIX, STEP_PREFIX
from torchroof.trace.table import DeviceKind, HostKind

HOST_CATEGORIES: dict[str, HostKind] = {
    "cpu_op": HostKind.OP,
    "operator": HostKind.OP,
    "user_annotation": HostKind.ANNOTATION,
    "python_function": HostKind.MODULE,
    "runtime": HostKind.LAUNCH,
    "cuda_runtime": HostKind.LAUNCH,
    "cuda_driver": HostKind.LAUNCH,
    "hip_runtime": HostKind.LAUNCH,
    "xpu_runtime": HostKind.LAUNCH,
    "xpu_driver": HostKind.LAUNCH,
    "mtia_runtime": HostKind.LAUNCH,
    "mlu_runtime": HostKind.LAUNCH,
    "glow_runtime": HostKind.LAUNCH,
    "privateuse1_runtime": HostKind.LAUNCH,
    "privateuse1_driver": HostKind.LAUNCH,
}
"""By category in lower case. ``python_function`` is kept for modules only."""

DEVICE_CATEGORIES: dict[str, DeviceKind] = {
    "kernel": DeviceKind.KERNEL,
    "mtia_ccp_events": DeviceKind.KERNEL,
    "gpu_memcpy": DeviceKind.MEMCPY,
    "memcpy": DeviceKind.MEMCPY,
    "gpu_memset": DeviceKind.MEMSET,
    "memset": DeviceKind.MEMSET,
}
"""By category in lower case. Others (``gpu_user_annotation``, ``cuda_sync``, ``overhead``) are no work."""

FLOW_CATEGORY = "fwdbwd"
FLOW_NAMES = frozenset({"fwdbwd", "forward_backward"})
"""Arrows from a forward op to its backward node; older files tell them by name only."""

MODULE_PREFIX = "nn.Module: "

REGION_PREFIXES = (
    STEP_PREFIX,
    "Optimizer.",
    "enumerate(DataLoader)#",
    "## ",
    "nccl:",
    "DistributedDataParallel.",
    "Torch-Compiled Region",
    "TorchDynamo ",
    "Pregraph bytecode",
    "AOTDispatcher ",
)
"""Names of ranges that files of 2020-21 and compiled regions file under the category of ops."""


COMPILED_GRAPH = "CompiledFxGraph"
"""What the ops are called, before the first letters of the graph's hash, that stand for compiled code."""

_COMPILED_GRAPH = re.compile(r"## Call CompiledFxGraph (\w{1,8})\w* ##")
"""Inductor's range around the code of one graph. Its fused loops have no event of their own on a CPU."""


def host_kind(category: HostKind, name: str) -> tuple[HostKind, str] | None:
    """What a host event of a category is, and the name it goes by; None where it is of no interest."""
    if category is HostKind.MODULE:
        return (HostKind.MODULE, name) if name.startswith(MODULE_PREFIX) else None
    if category is HostKind.LAUNCH:
        return HostKind.LAUNCH, name
    if name.startswith(SCOPE_PREFIX):
        return HostKind.SCOPE, name.removeprefix(SCOPE_PREFIX)
    if graph := _COMPILED_GRAPH.fullmatch(name):
        return HostKind.OP, f"{COMPILED_GRAPH} {graph[1]}"
    if category is HostKind.OP and name.startswith(REGION_PREFIXES):
        return HostKind.ANNOTATION, name
    return category, name


EVALUATE_PREFIX = "autograd::engine::evaluate_function: "
"""The outer of the two events that each backward node makes since 2021."""

ACCUMULATE_GRAD = "torch::autograd::AccumulateGrad"
"""The node that adds to a parameter's gradient; it has no sequence number."""

OPTIMIZER_STEP = "Optimizer.step#"
"""What torch's range around an optimizer's step begins with."""

GRADIENT_SUMS = frozenset({"aten::add", "aten::add_"})
"""Ops by which the engine itself sums the gradients of a tensor that was used several times."""

_NODE = re.compile(r"(?:\w+::)*\w*Backward\d*|torch::autograd::(?:AccumulateGrad|CppNode<.*>|\w+Backward\w*)")


def is_autograd_wrapper(name: str) -> bool:
    """Whether an op's name is that of an autograd node, which only calls the ops that do the work."""
    return name.startswith(EVALUATE_PREFIX) or _NODE.fullmatch(name) is not None


_COLLECTIVE = re.compile(r"(?:nccl|rccl|msccl|oneccl)", re.IGNORECASE)


def is_collective(kernel_name: str) -> bool:
    """Whether a kernel is one of a communication library, which spins while it waits for other devices."""
    return _COLLECTIVE.match(kernel_name.removeprefix("void ").lstrip()) is not None


_GRAPH_LAUNCH = re.compile(r"(?:cuda|hip|cu)GraphLaunch(?:_ptsz|_v\d+)*")


def is_graph_launch(runtime_name: str) -> bool:
    """Whether a runtime call replays a captured graph."""
    return _GRAPH_LAUNCH.fullmatch(runtime_name) is not None


_SYNCHRONISING = re.compile(
    r"(?:cuda|hip)(?:Device|Stream|Event)Synchronize(?:_ptsz|_v\d+)*"
    r"|(?:cu(?:Ctx|Stream|Event))Synchronize(?:_ptsz|_v\d+)*"
    r"|(?:cuda|hip)Memcpy(?:2D|3D|WithStream|(?:To|From)(?:Symbol|Array))?(?:_ptds|_v\d+)*"
    r"|(?:cu|hip)Memcpy(?:HtoD|DtoH)(?:_v\d+)*"
    r"|(?:cuda|hip)Free(?:Host|Array)?|ur(?:Queue|Event)(?:Finish|Wait)|cnrt?(?:Queue|Notifier)?Sync\w*"
)


def is_synchronising(runtime_name: str) -> bool:
    """Whether a runtime call holds the host until the device is done.

    A copy without Async in its name does; `cudaStreamWaitEvent` makes a stream wait, never the host.
    """
    return _SYNCHRONISING.fullmatch(runtime_name) is not None


def is_step(annotation: str) -> bool:
    """Whether a range is one step of the profiler's schedule."""
    return annotation.startswith(STEP_PREFIX)


def is_dataloader_next(annotation: str) -> bool:
    """Whether a range is the wait for a DataLoader's next batch."""
    return annotation.startswith("enumerate(DataLoader)#")


def is_optimizer(annotation: str) -> bool:
    """Whether a range is a step or the zeroing of gradients of an optimizer."""
    return annotation.startswith((OPTIMIZER_STEP, "Optimizer.zero_grad#"))


_TF32 = re.compile(r"tf32|s1688(?:gemm|fprop|dgrad|wgrad)", re.IGNORECASE)
_NOT_TF32 = re.compile(r"(?:3x|x3_?)tf32|tf32_?x3|bf16x\d", re.IGNORECASE)
_HALF = re.compile(r"(?<![0-9a-z])b?fp?16(?![0-9])|h1688", re.IGNORECASE)


def matrix_precision(kernel_name: str) -> str | None:
    """``tf32`` where a kernel's name shows that it multiplies float32 operands on TF32 matrix units.

    Such a name says ``tf32`` or has the instruction's shape, ``s1688gemm``, without a 16-bit type next to it.
    Emulation of float32 by three TF32 products is not TF32 speed. None: not shown.
    """
    if _NOT_TF32.search(kernel_name) or not _TF32.search(kernel_name):
        return None
    return "tf32" if "tf32" in kernel_name.lower() or not _HALF.search(kernel_name) else None


_FUNCTOR = re.compile(r"Functor\w*<\s*((?:unsigned |signed |long |short )*[\w:]+(?:<[\w:]+>)?)\s*[,>]")


def functor_dtype(kernel_name: str) -> DType | None:
    """The element type spelled in the functor of a fused optimizer's or foreach kernel's name."""
    for spelled in _FUNCTOR.findall(kernel_name):
        dtype = dtype_named(spelled.strip())
        if dtype is not None:
            return dtype
    return None


# -- what a file says of the software that made it --------------------------------------------------------------

VERSION_KEYS = (
    "record_shapes",
    "with_stack",
    "with_modules",
    "profile_memory",
    "cupti_version",
    "cuda_runtime_version",
    "cuda_driver_version",
    "hip_runtime_version",
    "hip_driver_version",
    "roctracer_version",
    "rocprofiler-sdk_version",
)
"""Top-level keys that name versions and what was recorded."""

ENVIRONMENT_KEYS = (
    "torch",
    "python",
    "cuda",
    "rocm",
    "driver",
    "threads",
    "allow_tf32_matmul",
    "allow_tf32_cudnn",
    "float32_matmul_precision",
    "cudnn_benchmark",
    "world_size",
    "rank",
)
"""What every report's environment has, None where the file does not say."""

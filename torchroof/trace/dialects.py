"""How profilers of different years and vendors name things, as tables.

Nothing here looks at a version: a trace file has no usable one. Every table is keyed by what the file says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from torchroof.tensors import DType, dtype_named, opaque
from torchroof.trace.metadata import SCOPE_PREFIX, STEP_PREFIX
from torchroof.trace.table import DeviceKind, HostKind


@dataclass(frozen=True)
class Vendor:
    """What the traces of one kind of device call things: categories in lower case, names as patterns."""

    name: str
    launches: tuple[str, ...] = ()
    """Categories of runtime and driver calls."""
    kernels: tuple[str, ...] = ()
    """Categories of kernels, beside the common ``kernel``."""
    replays: tuple[str, ...] = ()
    """Calls that replay a captured graph."""
    waits: tuple[str, ...] = ()
    """Calls that hold the host until the device is done: a copy without Async in its name is one, a call that
    makes a stream wait is none."""
    collectives: tuple[str, ...] = ()
    """How kernels of its communication libraries begin: they spin while they wait for other devices."""


VENDORS = (
    Vendor(
        "CUDA",
        launches=("runtime", "cuda_runtime", "cuda_driver"),
        replays=(r"cu(?:da)?GraphLaunch(?:_ptsz|_v\d+)*",),
        waits=(
            r"cuda(?:Device|Stream|Event)Synchronize(?:_ptsz|_v\d+)*",
            r"cu(?:Ctx|Stream|Event)Synchronize(?:_ptsz|_v\d+)*",
            r"cudaMemcpy(?:2D|3D|(?:To|From)(?:Symbol|Array))?(?:_ptds|_v\d+)*",
            r"cuMemcpy(?:HtoD|DtoH)(?:_v\d+)*",
            r"cudaFree(?:Host|Array)?",
        ),
        collectives=(r"nccl", r"deep_ep::", r"dpsk::ep::", r"nvshmem", r"(?:vllm|sglang)::cross_device_reduce"),
    ),
    Vendor(
        "ROCm",
        launches=("hip_runtime",),
        replays=(r"hipGraphLaunch(?:_spt)?",),
        waits=(
            r"hip(?:Device|Stream|Event)Synchronize(?:_spt)?",
            r"hipMemcpy(?:2D|3D|WithStream|(?:To|From)(?:Symbol|Array))?(?:_spt)?",
            r"hipMemcpy(?:HtoD|DtoH)",
            r"hipFree(?:Host|Array)?",
        ),
        collectives=(r"rccl", r"msccl", r"aiter::(?:cross_device_reduce|\w*allreduce\w*)"),
    ),
    Vendor(
        "XPU",
        launches=("xpu_runtime", "xpu_driver"),
        replays=(r"ur(?:CommandBufferEnqueue|EnqueueCommandBuffer)Exp",),
        waits=(r"ur(?:Queue|Event)(?:Finish|Wait)", r"ze(?:CommandQueue|EventHost|Fence\w*)Synchronize"),
        collectives=(r"oneccl",),
    ),
    Vendor("MTIA", launches=("mtia_runtime",), kernels=("mtia_ccp_events",)),
    Vendor("MLU", launches=("mlu_runtime",), waits=(r"cnrt?(?:Queue|Notifier)?Sync\w*",), collectives=(r"cncl",)),
    Vendor("HPU", launches=("hpu_op",)),
    Vendor("Glow", launches=("glow_runtime",)),
    Vendor("PrivateUse1", launches=("privateuse1_runtime", "privateuse1_driver")),
)
"""One row per kind of device. Files of ROCm write ``cuda_runtime`` over hip calls, so no row is chosen: all hold."""

OTHER_LAUNCHES = re.compile(r"\w+_(?:runtime|driver)")
"""Categories of the calls of a backend that took a name of its own for PrivateUse1."""

HOST_CATEGORIES: dict[str, HostKind] = {
    "cpu_op": HostKind.OP,
    "operator": HostKind.OP,
    "user_annotation": HostKind.ANNOTATION,
    "python_function": HostKind.MODULE,
    **{category: HostKind.LAUNCH for vendor in VENDORS for category in vendor.launches},
}
"""By category in lower case. ``python_function`` is kept for modules only."""

DEVICE_CATEGORIES: dict[str, DeviceKind] = {
    "kernel": DeviceKind.KERNEL,
    "gpu_memcpy": DeviceKind.MEMCPY,
    "memcpy": DeviceKind.MEMCPY,
    "gpu_memset": DeviceKind.MEMSET,
    "memset": DeviceKind.MEMSET,
    **{category: DeviceKind.KERNEL for vendor in VENDORS for category in vendor.kernels},
}
"""By category in lower case."""

COUNTER_CATEGORIES = frozenset({"cuda_profiler_range", "hardware_counters", "mtia_counters", "xpu_scope_profiler"})
"""Hardware counters of ranges. A profiler that records them replays kernels, and so records none."""

IDLE_CATEGORIES = COUNTER_CATEGORIES | {
    *("", "trace", "gpu_user_annotation", "overhead", "cpu_instant_event", "external_correlation", "ac2g", "fwdbwd"),
    *("async_cpu_to_gpu", "async_gpu", "async", "forward_backward", "cuda_sync", "cuda_event", "xpu_sync"),
    *("mtia_insight", "python"),
}
"""Categories that are no work of host or device, or that repeat what others tell. What is in no table is noted."""


def kind_of(category: str) -> HostKind | DeviceKind | None:
    """What events of a category (in lower case) are; None where they are left out."""
    kind = HOST_CATEGORIES.get(category, DEVICE_CATEGORIES.get(category))
    return HostKind.LAUNCH if kind is None and OTHER_LAUNCHES.fullmatch(category) else kind


FLOW_CATEGORY = "fwdbwd"
FLOW_NAMES = frozenset({"fwdbwd", "forward_backward"})
"""Arrows from a forward op to its backward node; older files tell them by name only."""

MODULE_PREFIX = "nn.Module: "
COLLECTIVE_PREFIX = "nccl:"
"""Ranges around collectives; they have the tensors that were given."""

REGION_PREFIXES = (
    STEP_PREFIX,
    "Optimizer.",
    "enumerate(DataLoader)#",
    "## ",
    COLLECTIVE_PREFIX,
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

PARAMETER_WORK = {
    "aten::_amp_foreach_non_finite_check_and_unscale_": "GradScaler",
    "aten::_amp_update_scale_": "GradScaler",
    "aten::_foreach_norm": "gradient norm",
    "aten::_foreach_lerp_": "averaging",
    "aten::_foreach_clamp_min_": "clipping",
    "aten::_foreach_clamp_max_": "clipping",
}
"""Ops that tell what a loop does with its parameters between backward pass and step."""

GRADIENT_SUMS = frozenset({"aten::add", "aten::add_"})
"""Ops by which the engine itself sums the gradients of a tensor that was used several times."""

SAVES_ITS_RESULT = frozenset(
    {
        "aten::_batch_norm_with_update", "aten::_cdist_forward", "aten::_ctc_loss", "aten::_embedding_bag",
        "aten::_euclidean_dist", "aten::_fused_rms_norm", "aten::_log_softmax", "aten::_native_batch_norm_legit",
        "aten::_safe_softmax", "aten::_softmax", "aten::_weight_norm_interface", "aten::adaptive_max_pool2d",
        "aten::adaptive_max_pool3d", "aten::amax", "aten::amin", "aten::celu_", "aten::cholesky", "aten::cumprod",
        "aten::dist", "aten::elu_", "aten::exp", "aten::exp2", "aten::expm1", "aten::fractional_max_pool2d",
        "aten::fractional_max_pool3d", "aten::hypot", "aten::leaky_relu_", "aten::linalg_vector_norm",
        "aten::logcumsumexp", "aten::logsumexp", "aten::max_pool2d_with_indices", "aten::max_pool3d_with_indices",
        "aten::median", "aten::native_batch_norm", "aten::native_dropout", "aten::native_group_norm",
        "aten::native_layer_norm", "aten::norm", "aten::prod", "aten::reciprocal", "aten::relu",
        "aten::rrelu_with_noise_", "aten::rsqrt", "aten::sgn", "aten::sigmoid", "aten::sqrt", "aten::std",
        "aten::tan", "aten::tanh",
    }
)  # fmt: skip
"""Ops whose derivative needs what they return (torch's derivatives.yaml), so that they have run before it is kept."""

KEEPS_A_TENSOR = frozenset({"aten::detach", "detach"})
"""What runs inside an op, before its work, where checkpointing keeps one of its operands."""

_NODE = re.compile(r"(?:\w+::)*\w*Backward\d*|torch::autograd::(?:AccumulateGrad|CppNode<.*>|\w+Backward\w*)")


def saves_its_result(op: str) -> bool:
    """Whether an op, or the op that it is the in-place form of, keeps its result for the backward pass."""
    return op in SAVES_ITS_RESULT or op.removesuffix("_") in SAVES_ITS_RESULT


def is_autograd_wrapper(name: str) -> bool:
    """Whether an op's name is that of an autograd node, which only calls the ops that do the work."""
    return name.startswith(EVALUATE_PREFIX) or _NODE.fullmatch(name) is not None


def _any(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_COLLECTIVE = _any(pattern for vendor in VENDORS for pattern in vendor.collectives)
_REPLAY = _any(pattern for vendor in VENDORS for pattern in vendor.replays)
_WAIT = _any(pattern for vendor in VENDORS for pattern in vendor.waits)


def is_collective(kernel_name: str) -> bool:
    """Whether a kernel is one of a communication library, which spins while it waits for other devices."""
    return _COLLECTIVE.match(kernel_name.removeprefix("void ").lstrip()) is not None


def is_graph_launch(runtime_name: str) -> bool:
    """Whether a runtime call replays a captured graph."""
    return _REPLAY.fullmatch(runtime_name) is not None


def is_synchronising(runtime_name: str) -> bool:
    """Whether a runtime call holds the host until the device is done."""
    return _WAIT.fullmatch(runtime_name) is not None


def is_step(annotation: str) -> bool:
    """Whether a range is one step of the profiler's schedule."""
    return annotation.startswith(STEP_PREFIX)


def is_dataloader_next(annotation: str) -> bool:
    """Whether a range is the wait for a DataLoader's next batch."""
    return annotation.startswith("enumerate(DataLoader)#")


def is_optimizer(annotation: str) -> bool:
    """Whether a range is a step or the zeroing of gradients of an optimizer."""
    return annotation.startswith((OPTIMIZER_STEP, "Optimizer.zero_grad#"))


def parameter_work(op: str) -> str | None:
    """What an op that works on lists of parameters or gradients does, outside of optimizers; None for other ops."""
    return PARAMETER_WORK.get(op) or ("work on parameters" if op.startswith("aten::_foreach_") else None)


@dataclass(frozen=True, slots=True)
class KernelMath:
    """What a kernel's name shows of its arithmetic. ``sign`` is the part of the name that shows it.

    ``precision`` is that of matrix units on float32 operands, ``pipe`` ``vector`` where no matrix units are used,
    ``narrow_sums`` whether float16 products are added up in float16.
    """

    sign: str
    precision: str | None = None
    pipe: str | None = None
    narrow_sums: bool = False


_EMULATED = re.compile(r"(?:3x|x3_?)tf32|tf32_?x3|bf16x\d", re.IGNORECASE)
"""float32 by several products of narrower numbers: neither's speed."""
_FAST = re.compile(r"s\d+(bf16|f16)(?:gemm|fprop|dgrad|wgrad)")
_TF32 = re.compile(r"tf32|s1688(?:gemm|fprop|dgrad|wgrad)", re.IGNORECASE)
_HALF = re.compile(r"(?<![0-9a-z])b?fp?16(?![0-9])|h1688", re.IGNORECASE)
_NARROW_SUMS = re.compile(r"(?<![a-z0-9])h\d+(?:gemm|fprop|dgrad|wgrad)")
_VECTOR_MATH = re.compile(
    r"(?<![a-z0-9])[sdh]gemm|simt_|gemv\w*|gemmk1|gemmSN|convolve_[sdh]gemm|scudnn|conv2d_grouped_direct"
    r"|conv_depthwise\dd|[dw]grad2d_grouped_direct|(?<![a-z])dot_kernel"
)


def kernel_math(kernel_name: str) -> KernelMath | None:
    """What a kernel's name shows of the units that it multiplies on; None: nothing.

    TF32 says ``tf32`` or has the instruction's shape, ``s1688gemm``, without a 16-bit type next to it: with one, as
    in ``ampere_bf16_s1688gemm_bf16``, the same shape is that of 16-bit numbers. ``s1688bf16gemm`` rounds float32
    operands to bfloat16. A letter right before ``gemm`` (``sgemm``), ``simt`` and products by a vector use no matrix
    units.
    """
    if _EMULATED.search(kernel_name):
        return None
    fast = _FAST.search(kernel_name)
    if fast:
        return KernelMath(fast[0], "bfloat16" if fast[1] == "bf16" else "float16")
    tf32 = _TF32.search(kernel_name)
    if tf32 and ("tf32" in kernel_name.lower() or not _HALF.search(kernel_name)):
        return KernelMath("tf32" if "tf32" in kernel_name.lower() else tf32[0], "tf32")
    vector = _VECTOR_MATH.search(kernel_name)
    if vector:
        return KernelMath(vector[0].rstrip("_"), pipe="vector")
    narrow = _NARROW_SUMS.search(kernel_name)
    return KernelMath(narrow[0], narrow_sums=True) if narrow else None


_TYPE = r"((?:unsigned |signed |long |short )*[\w:]+(?:<[\w:]+>)?)"
_KERNEL_TYPES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"Functor\w*<\s*{_TYPE}\s*[,>]",
        rf"CatArray\w*<\s*{_TYPE}\s*[,>]",
        rf"copy_kernel.*\{{lambda\({_TYPE}\)#\d+\}}",
    )
)
_OPAQUE = re.compile(r"OpaqueType<(\d+)u?>")


def kernel_dtype(kernel_name: str) -> DType | None:
    """The element type of a list of tensors, spelled in the name of the kernel that goes through it.

    Functors of fused optimizers and foreach ops, kernels that join tensors or copy them one by one. Where a kernel
    only moves elements its name may tell no more than how wide they are: then the type has that width and no sort.
    """
    for pattern in _KERNEL_TYPES:
        for spelled in pattern.findall(kernel_name):
            dtype = dtype_named(spelled.strip())
            if dtype is not None:
                return dtype
    width = _OPAQUE.search(kernel_name)
    return opaque(8 * int(width[1])) if width else None


_QUICK = re.compile(r"(winograd)|(?<![a-z])(c?fft\d?d?|fft_tiling)(?![a-z])", re.IGNORECASE)


def quick_algorithm(kernel_name: str) -> str | None:
    """``Winograd`` or ``FFT`` where a kernel's name tells that it does fewer FLOPs than the op amounts to."""
    found = _QUICK.search(kernel_name)
    return None if found is None else "Winograd" if found[1] else "FFT"


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

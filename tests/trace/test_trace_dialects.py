"""Names and categories of all years."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchroof.tensors import DTYPES
from torchroof.trace import dialects
from torchroof.trace.table import HostKind

OP, SCOPE, MODULE, ANNOTATION, LAUNCH = HostKind


@pytest.mark.parametrize(
    ("category", "name", "found"),
    [
        (OP, "aten::mm", (OP, "aten::mm")),
        (OP, "CompiledFunctionBackward", (OP, "CompiledFunctionBackward")),
        (OP, "CompiledFunction", (OP, "CompiledFunction")),
        (OP, "torchroof: encoder.layer.0", (SCOPE, "encoder.layer.0")),
        (OP, "torchroof: ", (SCOPE, "")),
        (ANNOTATION, "torchroof: fc", (SCOPE, "fc")),
        (OP, "ProfilerStep#3", (ANNOTATION, "ProfilerStep#3")),
        (OP, "Optimizer.step#SGD.step", (ANNOTATION, "Optimizer.step#SGD.step")),
        (OP, "enumerate(DataLoader)#_X.__next__", (ANNOTATION, "enumerate(DataLoader)#_X.__next__")),
        (OP, "Torch-Compiled Region: 0/0", (ANNOTATION, "Torch-Compiled Region: 0/0")),
        (OP, "## Call CompiledFxGraph f0123456789 ##", (OP, "CompiledFxGraph f0123456")),
        (OP, "TorchDynamo Cache Lookup", (ANNOTATION, "TorchDynamo Cache Lookup")),
        (ANNOTATION, "aten::mm", (ANNOTATION, "aten::mm")),
        (MODULE, "nn.Module: Linear_0", (MODULE, "nn.Module: Linear_0")),
        (MODULE, "torch/nn/modules/module.py(1): _call_impl", None),
        (LAUNCH, "cudaLaunchKernel", (LAUNCH, "cudaLaunchKernel")),
    ],
)
def test_host_events(category: HostKind, name: str, found: tuple[HostKind, str] | None) -> None:
    assert dialects.host_kind(category, name) == found


@pytest.mark.parametrize(
    ("name", "is_node"),
    [
        ("autograd::engine::evaluate_function: AddmmBackward0", True),
        ("AddmmBackward0", True),
        ("MmBackward", True),
        ("MeanBackward12", True),
        ("CompiledFunctionBackward", True),
        ("torch::autograd::AccumulateGrad", True),
        ("torch::autograd::CppNode<fbgemm_gpu::Lookup>", True),
        ("All2All_Pooled_WaitBackward", True),
        ("aten::convolution_backward", False),
        ("aten::_softmax_backward_data", False),
        ("aten::mm", False),
        ("BackwardHook", False),
    ],
)
def test_autograd_nodes(name: str, is_node: bool) -> None:
    assert dialects.is_autograd_wrapper(name) is is_node


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", True),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", True),
        ("void ncclKernel_X", True),
        ("rcclGenericKernel", True),
        ("void deep_ep::internode::combine<__nv_bfloat16>(int4*)", True),
        ("void vllm::cross_device_reduce_1stage<float, 8>(int)", True),
        ("ampere_sgemm_128x64_tn", False),
        ("void my_kernel<ncclComm>(int)", False),
    ],
)
def test_collectives(name: str, is_one: bool) -> None:
    assert dialects.is_collective(name) is is_one


def test_graph_launches() -> None:
    assert all(
        map(dialects.is_graph_launch, ["cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch", "cuGraphLaunch_ptsz"])
    )
    assert not any(map(dialects.is_graph_launch, ["cudaLaunchKernel", "cudaGraphInstantiate", "cudaGraphLaunchX"]))


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("cudaDeviceSynchronize", True),
        ("cudaStreamSynchronize", True),
        ("cudaEventSynchronize", True),
        ("hipDeviceSynchronize", True),
        ("hipStreamSynchronize", True),
        ("cuStreamSynchronize", True),
        ("cudaMemcpy", True),
        ("cuMemcpyDtoH_v2", True),
        ("urEventWait", True),
        ("cnrtQueueSync", True),
        ("hipMemcpyWithStream", True),
        ("cudaMemcpyAsync", False),
        ("hipMemcpyAsync", False),
        ("cudaStreamWaitEvent", False),
        ("cudaEventQuery", False),
        ("cudaLaunchKernel", False),
        ("cudaMemsetAsync", False),
    ],
)
def test_calls_that_hold_the_host(name: str, waits: bool) -> None:
    assert dialects.is_synchronising(name) is waits


def test_annotations() -> None:
    assert dialects.is_dataloader_next("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    assert not dialects.is_dataloader_next("DataLoader")
    assert dialects.is_optimizer("Optimizer.step#Adam.step") and dialects.is_optimizer("Optimizer.zero_grad#X")
    assert not dialects.is_optimizer("## optimizer ##")
    assert dialects.is_step("ProfilerStep#12") and not dialects.is_step("Profiler")


@pytest.mark.parametrize(
    ("kernel", "precision"),
    [
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_stage3", "tf32"),
        ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw", "tf32"),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align4>(...)", "tf32"),
        ("cutlass_80_tensorop_s1688tf32gemm_256x128_16x3_tn_align4", "tf32"),
        ("ampere_fp16_s1688gemm_fp16_128x128_ldg8_relu_f2f_stages_32x1_tn", None),
        ("cutlass_75_tensorop_f16_s1688gemm_f16_256x128_tn_align8", None),
        ("cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn", None),
        ("ampere_sgemm_128x64_tn", None),
        ("volta_sgemm_32x32_sliced1x4_tn", None),
        ("sm80_xmma_gemm_3xtf32_f32f32", None),
        ("void at::native::vectorized_elementwise_kernel<4>", None),
    ],
)
def test_tf32_is_told_by_the_kernels_name(kernel: str, precision: str | None) -> None:
    shown = dialects.kernel_math(kernel)
    assert (shown.precision if shown else None) == precision


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        (
            "multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<float, 2, 2, 0>, float>",
            "float32",
        ),
        ("multi_tensor_apply_kernel<M<4>, FusedAdamMathFunctor<c10::BFloat16, 4, (ADAM_MODE)0>, float>", "bfloat16"),
        ("multi_tensor_apply_kernel<M<1>, UnaryOpFunctor<c10::complex<float>, 1, 1, 0>, Sqrt>", "complex64"),
        ("vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half>, Array>", "float16"),
        ("multi_tensor_apply_kernel<M<1>, ScaleFunctor<unsigned char, 1>>", "uint8"),
        ("multi_tensor_apply_kernel<M<1>, ScaleFunctor<T, 1>>", None),
        ("ampere_sgemm_128x64_tn", None),
    ],
)
def test_the_functors_element_type(kernel: str, dtype: str | None) -> None:
    assert dialects.kernel_dtype(kernel) == (DTYPES[dtype] if dtype else None)


@pytest.mark.parametrize(
    ("kernel", "pipe"),
    [
        ("ampere_sgemm_128x64_tn", "vector"),
        ("volta_dgemm_64x64_nn", "vector"),
        ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x64_8x5_nt_align1>(...)", "vector"),
        ("void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, float, 128, 16, 4, 4, false>(...)", "vector"),
        ("void gemmSN_NN_kernel<float, 128, 2, 4, 8, 5, 4, false, cublasGemv...>(...)", "vector"),
        ("void gemmk1_kernel<float, 256, 5, false>(...)", "vector"),
        ("void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, false, true, true>(...)", "vector"),
        ("void cudnn::cnn::conv2d_grouped_direct_kernel<false, true, __half>(...)", "vector"),
        ("void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float, int>(...)", "vector"),
        ("volta_scudnn_128x64_relu_interior_nn_v1", "vector"),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_nn", None),
        ("cutlass_80_tensorop_d884gemm_64x64_16x4_nt_align1", None),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", None),
        ("Cijk_Ailk_Bljk_BBS_BH_MT128x128x64_MI32x32x8x1_SN_1LDSB0", None),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNN", None),
    ],
)
def test_kernels_that_use_no_matrix_units(kernel: str, pipe: str | None) -> None:
    shown = dialects.kernel_math(kernel)
    assert (shown.pipe if shown else None) == pipe


def test_the_same_instruction_shape_is_tf32_only_without_a_narrow_type() -> None:
    """m16n8k8 is the shape of TF32 and, with fewer bits, of float16 and bfloat16."""
    assert dialects.kernel_math("cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4").precision == "tf32"
    for kernel in ("ampere_bf16_s1688gemm_bf16_128x64_ldg8_f2f_tn", "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn"):
        assert dialects.kernel_math(kernel) is None
    rounded = dialects.kernel_math("cutlass_80_tensorop_s1688bf16gemm_128x128_16x4_nn_align4")
    assert (rounded.precision, rounded.sign) == ("bfloat16", "s1688bf16gemm")


def test_sums_in_float16() -> None:
    assert dialects.kernel_math("volta_h884gemm_256x64_ldg8_nn").narrow_sums
    assert not dialects.kernel_math("turing_fp16_s884gemm_fp16_64x64_nn")


def test_ops_that_keep_their_result_are_those_of_torchs_own_formulas() -> None:
    """A witness: derivatives.yaml, as it comes with torch. A formula that reads ``result`` keeps it."""
    import torch
    import torchgen

    formulas = Path(torchgen.__file__).parent / "packaged" / "autograd" / "derivatives.yaml"
    keeps = set()
    for entry in re.split(r"^- name: ", formulas.read_text(encoding="utf-8"), flags=re.M)[1:]:
        gradients = [x for x in entry.splitlines()[1:] if not x.strip().startswith(("result:", "#", "output_diff"))]
        if re.search(r"\bresult\d*\b", "\n".join(gradients)):
            keeps.add("aten::" + entry.split("(")[0].split(".")[0].strip())
    here = {name for name in dialects.SAVES_ITS_RESULT if hasattr(torch.ops.aten, name.removeprefix("aten::"))}
    assert keeps >= here and len(here) > 0.9 * len(dialects.SAVES_ITS_RESULT)  # releases of torch drop some
    for name in ("aten::tanh", "aten::relu_", "aten::native_layer_norm"):
        assert dialects.saves_its_result(name)
    for name in ("aten::addmm", "aten::mul", "aten::gelu", "aten::convolution"):
        assert not dialects.saves_its_result(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void cudnn::winograd::winograd3x3Kernel<float, float, int, 8>(...)", "Winograd"),
        ("sm80_xmma_fprop_implicit_gemm_f16f16_winograd_tilesize", "Winograd"),
        ("miopenSp3AsmConv_v30_2_6_gfx9_fp32_f3x2_stride1", None),
        ("void fft2d_r2c_32x32<float, false, 1u, false>(...)", "FFT"),
        ("void cudnn::cgemm_fft_tiling<float>(...)", "FFT"),
        ("void at::native::lerp_after_shift(...)", None),
        ("ampere_sgemm_128x64_nn", None),
    ],
)
def test_algorithms_that_need_fewer_flops(name, expected):
    assert dialects.quick_algorithm(name) == expected

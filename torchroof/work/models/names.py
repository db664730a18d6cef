"""Ops without a formula, by what they are: those that only call others, and those that do nothing.

An op that falls through is composite: all its work is done by ops below it, and those are counted. One with
no op below it (dropout in evaluation, `to` of the type it has) did nothing. A free op only makes a view,
allocates, or asks something. An op in neither list and without a model is *unmodelled*.
"""

from __future__ import annotations


def _aten(names: str) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in names.split())


_LAYERS = _aten("""
    linear bilinear conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
    max_pool2d max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
    adaptive_max_pool1d avg_pool1d
    layer_norm rms_norm batch_norm _batch_norm_impl_index group_norm instance_norm
    dropout dropout_ feature_dropout alpha_dropout feature_alpha_dropout
    embedding_bag embedding_backward embedding_renorm_ prelu rrelu
    lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
    _pack_padded_sequence _pack_padded_sequence_backward _pad_packed_sequence
    grid_sampler affine_grid_generator_backward _weight_norm
    pad _pad_circular _pad_enum affine_grid_generator one_hot
    pairwise_distance cosine_similarity
""")
_PRODUCTS = _aten("""
    matmul matmul_backward einsum tensordot inner chain_matmul linalg_multi_dot
    _trilinear cdist _euclidean_dist pdist
    linalg_matmul linalg_vecdot kron linalg_norm linalg_matrix_norm linalg_vander
""")
_LOSSES = _aten("""
    cross_entropy_loss nll_loss nll_loss_nd nll_loss2d softmax log_softmax
    special_softmax special_log_softmax
    l1_loss kl_div binary_cross_entropy_with_logits poisson_nll_loss hinge_embedding_loss
    multilabel_margin_loss
    margin_ranking_loss triplet_margin_loss cosine_embedding_loss ctc_loss
""")
_COPIES = _aten("""
    reshape contiguous to type_as _to_cpu cpu cuda flatten ravel _reshape_copy reshape_as
    repeat tile hstack vstack dstack column_stack row_stack concat concatenate block_diag
    meshgrid combinations cartesian_prod rot90 fliplr flipud
    take_along_dim gather_backward index_put slice_backward select_backward diagonal_backward as_strided_scatter
    slice_scatter select_scatter diagonal_scatter index_select_backward masked_select_backward
    sum_to_size expand_copy pin_memory
    _autocast_to_full_precision _autocast_to_reduced_precision
    flatten_dense_tensors unflatten_dense_tensors pad_sequence
    trapezoid diag diagflat trace_backward
""")
_MAKERS = _aten("""
    zeros zeros_like new_zeros ones ones_like new_ones full full_like new_full
    rand rand_like randn randn_like randint randint_like

""")
_ARITHMETIC = _aten("""
    float_power float_power_ divide divide_ multiply multiply_ subtract subtract_ true_divide true_divide_
    negative negative_ absolute absolute_ arccos arcsin arctan arctan2 arccosh arcsinh arctanh fix fix_
    clip clip_ special_expit special_logit special_erf special_expm1 special_log1p special_xlogy
    special_logsumexp greater greater_ greater_equal less less_ less_equal not_equal
    __and__ __or__ __xor__ __iand__ __ior__ __ixor__
    isclose allclose is_nonzero item
    cov corrcoef diff gradient msort quantile nanquantile nanmean
    ldexp ldexp_
""")
_TRANSFORMS = _aten("""
    fft_fft fft_fft2 fft_fftn fft_ifft fft_ifft2 fft_ifftn fft_rfft fft_rfft2 fft_rfftn fft_irfft fft_irfft2
    fft_irfftn fft_hfft fft_hfft2 fft_hfftn fft_ihfft fft_ihfft2 fft_ihfftn fft_fftshift fft_ifftshift stft istft
""")
_INSIDE = _aten("""
    linear_backward mkldnn_linear_backward embedding_renorm norm_except_dim frobenius_norm dist det logdet slogdet
    _transformer_encoder_layer_fwd _native_multi_head_attention
    _convolution_mode _convolution_double_backward _embedding_bag_backward
    infinitely_differentiable_gelu_backward _batch_norm_impl_index_backward
    _thnn_differentiable_lstm_cell_backward _thnn_differentiable_gru_cell_backward
    _thnn_fused_lstm_cell_backward _weight_norm_differentiable_backward
""")
FALLS_THROUGH: frozenset[str] = _LAYERS | _PRODUCTS | _LOSSES | _COPIES | _MAKERS | _ARITHMETIC | _TRANSFORMS | _INSIDE

_VIEWS = _aten("""
    view as_strided as_strided_ t t_ transpose transpose_ permute numpy_T matrix_H mT mH adjoint
    swapaxes swapaxes_ swapdims movedim moveaxis expand expand_as broadcast_to broadcast_tensors
    select slice narrow unsqueeze unsqueeze_ squeeze squeeze_ atleast_1d atleast_2d atleast_3d
    detach detach_ alias unbind split split_with_sizes tensor_split chunk unsafe_chunk unsafe_split
    unsafe_split_with_sizes hsplit vsplit dsplit _unsafe_view _reshape_alias view_as view_as_real
    view_as_complex unflatten diagonal linalg_diagonal unfold real imag conj _conj resolve_conj resolve_neg
    _neg_view _fw_primal _make_dual _unpack_dual positive
    values indices _values _indices crow_indices col_indices lift lift_fresh
    _nested_view_from_buffer _nested_view_from_jagged
""")
_ALLOCATIONS = _aten("""
    empty empty_like empty_strided empty_permuted new_empty new_empty_strided empty_quantized
    _efficientzerotensor resize_ resize_as_ _resize_output_ set_ set_data
""")
_QUESTIONS = _aten("""
    result_type can_cast promote_types is_floating_point is_complex is_signed is_inference is_pinned
    is_leaf is_conj is_neg is_same_size is_set_to size stride numel dim sym_size sym_stride sym_numel
    sym_storage_offset storage_offset data output_nr _version requires_grad_ retain_grad retains_grad
    _has_compatible_shallow_copy_type
    record_stream _has_same_storage_numel is_distributed _debug_has_internal_overlap
    _is_zerotensor is_contiguous __is__ __contains__ _assert_tensor_metadata _nested_tensor_size
    _use_cudnn_ctc_loss _use_cudnn_rnn_flatten_weight cudnn_is_acceptable _fused_sdp_choice
    _backward dense_dim sparse_dim is_coalesced
""")
_WAITING = frozenset({"_c10d_functional::wait_tensor", "c10d::barrier", "c10d::monitored_barrier_"})
FREE: frozenset[str] = _VIEWS | _ALLOCATIONS | _QUESTIONS | _WAITING | frozenset({"detach", "detach_"})
"""Views, allocations, questions and waiting for others. ``detach`` without a prefix is how autograd records its own."""

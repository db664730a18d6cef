"""Scaled dot-product attention in all of its backends, forward and backward.

FLOPs are those of the products alone: 2 per multiply-add and (query, key) pair that may attend. Softmax,
scale, mask and dropout count none. The headline counts the pairs that a causal or window mask leaves,
`flops_full` all of them. A mask given as a tensor hides nothing from the count: its values are not known.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from torchroof.tensors import OpCall, TensorSpec
from torchroof.work.algebra import Work
from torchroof.work.models.operands import agree, operand, statistics_type
from torchroof.work.registry import Formula, Model


def allowed_pairs(queries: int, keys: int, shift: int, left: int | None, right: int | None) -> int:
    """Pairs in which query i sees the keys from i + shift − left to i + shift + right; None is no limit."""
    above = queries * keys if right is None else _ramp(queries, shift + right + 1, keys)
    below = 0 if left is None else _ramp(queries, shift - left, keys)
    return above - below


def _ramp(count: int, start: int, top: int) -> int:
    """Sum of clamp(start + i, 0, top) over i below count."""
    return _clamped_sum(start + count, top) - _clamped_sum(start, top)


def _clamped_sum(end: int, top: int) -> int:
    """Sum of clamp(y, 0, top) over all y below end."""
    if end <= top:
        return end * (end - 1) // 2 if end > 0 else 0
    return top * (top - 1) // 2 + top * (end - top)


class _Order(NamedTuple):
    """Where an op has its operands. None: the op has no such operand."""

    causal: int | None
    first: int = 0
    """The query; key and value follow. 1 where an output gradient comes before."""
    mask: int | None = None
    lengths: int | None = None
    """Offsets of packed sequences: when given, the lengths are data on the device."""
    lse_flag: int | None = None
    """A flag that asks for the log-sum-exp."""
    lse: bool = False
    """The log-sum-exp is always written."""
    saved: tuple[int, ...] = ()
    """Backward: output and log-sum-exp."""
    mask_gradient: tuple[int, int | None] | None = None
    """Backward: operand, and place in its list, that asks for the gradient of the mask."""
    mask_type: int | None = None
    """A number instead of a flag: 1 is causal from the upper left corner, 2 from the lower right."""
    lower_right: bool = False
    """The causal mask is aligned with the last query and the last key."""
    windows: tuple[int, int] | None = None
    used: tuple[int, ...] = ()
    """Other operands that, when given, make lengths data on the device."""
    heads_inside: bool = False
    """Layout batch, tokens, heads, features instead of batch, heads, tokens, features."""
    weights: bool = False
    """The attention weights are an output."""


class _Sizes(NamedTuple):
    """One attention: ``groups`` is batch × query heads."""

    groups: int
    queries: int
    keys: int
    width: int
    value_width: int


def _sizes(call: OpCall, order: _Order) -> _Sizes:
    q, k, v = (call.tensor(order.first + i) for i in range(3))
    rank = len(q.shape)
    agree(call, rank == len(k.shape) == len(v.shape), "query, key and value have different axes")
    agree(call, rank >= (4 if order.heads_inside else 2), "axes of the query")
    tokens = -3 if order.heads_inside else -2
    agree(call, q.shape[-1] == k.shape[-1], "features of query and key")
    agree(call, k.shape[tokens] == v.shape[tokens], "tokens of key and value")
    outer = [i for i in range(rank - 1) if i != rank + tokens]
    groups = prod(0 if 0 in (q.shape[i], k.shape[i]) else max(q.shape[i], k.shape[i]) for i in outer)
    return _Sizes(groups, q.shape[tokens], k.shape[tokens], q.shape[-1], v.shape[-1])


def _packed(call: OpCall, order: _Order) -> bool:
    """Whether sequences are packed, so that their lengths are data on the device."""
    places = [*order.used] if order.lengths is None else [order.lengths, order.lengths + 1, *order.used]
    found = (call.optional_tensor(i) for i in places)
    return any(t is not None and t.numel > 0 for t in found)


def _known_lengths(call: OpCall, order: _Order) -> _Sizes | None:
    """Packed sequences whose lengths follow from shapes: a single one, or all as long as the longest.

    Offsets have one element more than there are sequences; the longest lengths are two operands further.
    """
    if order.lengths is None or any(call.optional_tensor(i) is not None for i in order.used):
        return None
    q, k, v = (call.tensor(order.first + i) for i in range(3))
    ends, key_ends = call.optional_tensor(order.lengths), call.optional_tensor(order.lengths + 1)
    if ends is None or key_ends is None or ends.numel != key_ends.numel or ends.numel < 2 or len(q.shape) < 3:
        return None
    sequences, queries, keys = ends.numel - 1, prod(q.shape[:-2]), prod(k.shape[:-2])
    if sequences > 1:
        longest = operand(call, order.lengths + 2), operand(call, order.lengths + 3)
        if longest != (queries / sequences, keys / sequences):
            return None
    sizes = (queries // sequences, keys // sequences)
    return _Sizes(sequences * q.shape[-2], *sizes, q.shape[-1], v.shape[-1])


def _limit(call: OpCall, index: int) -> int | None:
    """A window's reach; absent or negative is no limit."""
    if operand(call, index) is None and call.scalars_known:
        return None
    reach = call.integer(index)
    return reach if reach >= 0 else None


def _pairs(call: OpCall, order: _Order, sizes: _Sizes) -> int:
    """(query, key) pairs of one head that causal and window masks leave."""
    left = right = None
    aligned = order.lower_right
    if order.mask_type is not None:
        kind = call.integer(order.mask_type)
        agree(call, kind in (0, 1, 2), "the mask type is 0, 1 or 2")
        causal, aligned = kind > 0, kind == 2
    else:
        causal = order.causal is not None and call.flag(order.causal, False)
    if order.windows is not None:
        left, right = _limit(call, order.windows[0]), _limit(call, order.windows[1])
        aligned = True
    if causal:
        right = 0
    shift = sizes.keys - sizes.queries if aligned else 0
    return allowed_pairs(sizes.queries, sizes.keys, shift, left, right)


def _flops(call: OpCall, order: _Order, widths: int, sizes: _Sizes) -> tuple[int | None, int | None]:
    """Headline and full FLOPs of products of this summed width; None where lengths are not recorded."""
    if _packed(call, order) and _known_lengths(call, order) is None:
        return None, None
    each = 2 * sizes.groups * widths
    return each * _pairs(call, order, sizes), each * sizes.queries * sizes.keys


def _rows(call: OpCall, order: _Order) -> tuple[int, ...]:
    """Shape of one number per query and head."""
    return call.tensor(order.first).shape[:-1]


def _widths(call: OpCall, order: _Order) -> _Sizes:
    if not _packed(call, order):
        return _sizes(call, order)
    known = _known_lengths(call, order)
    if known is not None:
        return known
    q, v = call.tensor(order.first), call.tensor(order.first + 2)
    agree(call, bool(q.shape and v.shape), "features of query and value")
    return _Sizes(0, 0, 0, q.shape[-1], v.shape[-1])


def _forward(order: _Order) -> Formula:
    def work(call: OpCall) -> Work:
        order_now = _quantized(call, order)
        sizes = _widths(call, order_now)
        flops, full = _flops(call, order_now, sizes.width + sizes.value_width, sizes)
        q, k, v = (call.tensor(i) for i in range(3))
        rows = _rows(call, order_now)
        writes: list[TensorSpec | None] = [q.dense((*rows, sizes.value_width))]
        wanted = order.lse or (order.lse_flag is not None and call.flag(order.lse_flag, False))
        if wanted:
            writes.append(q.dense(rows, statistics_type(q.dtype)))
        if order.weights:
            writes.append(q.dense((*rows, sizes.keys)))
        mask = None if order.mask is None else call.optional_tensor(order.mask)
        return Work.of(flops, [q, k, v, mask], writes, full)

    return work


def _quantized(call: OpCall, order: _Order) -> _Order:
    """Flash attention has an overload with three more operands, the scales, before its dropout or window."""
    if call.name == "aten::_scaled_dot_product_flash_attention" and len(call.operands) == 10:
        return order._replace(causal=7)
    if call.name == "aten::_flash_attention_forward" and len(call.operands) == 18:
        return order._replace(windows=(14, 15), used=(16,))
    return order


def _backward(order: _Order) -> Formula:
    def work(call: OpCall) -> Work:
        sizes = _widths(call, order)
        flops, full = _flops(call, order, 3 * sizes.width + 2 * sizes.value_width, sizes)
        gradient, q, k, v = (call.tensor(i) for i in range(4))
        saved = [call.tensor(i) for i in order.saved]
        mask = None if order.mask is None else call.optional_tensor(order.mask)
        writes: list[TensorSpec | None] = [q.dense(), k.dense(), v.dense()]
        if mask is not None and order.mask_gradient is not None and _wants(call, *order.mask_gradient):
            writes.append(mask.dense())
        return Work.of(flops, [gradient, q, k, v, *saved, mask], writes, full)

    return work


def _wants(call: OpCall, index: int, place: int | None) -> bool:
    if place is None:
        return call.flag(index)
    flags = call.flags(index)
    agree(call, len(flags) > place, "gradients that are asked for")
    return flags[place]


def _split_heads(call: OpCall) -> Work:
    """The fast path's step between projection and product: (batch, tokens, 3·width) to three of heads."""
    packed, bias = call.tensor(0), call.tensor(1)
    agree(call, len(packed.shape) == 3 and packed.shape[-1] % 3 == 0, "queries, keys and values side by side")
    return Work.of(packed.numel + packed.numel // 3, [packed, bias], [packed.dense()])


_FORWARD = {
    "scaled_dot_product_attention": _Order(causal=5, mask=3),
    "_scaled_dot_product_attention_math": _Order(causal=5, mask=3, weights=True),
    "_scaled_dot_product_attention_math_for_mps": _Order(causal=5, mask=3, weights=True),
    "_scaled_dot_product_flash_attention": _Order(causal=4, lse=True, lower_right=True),
    "_scaled_dot_product_efficient_attention": _Order(causal=6, mask=3, lse_flag=4),
    "_scaled_dot_product_cudnn_attention": _Order(causal=6, mask=3, lse_flag=4),
    "_scaled_dot_product_fused_attention_overrideable": _Order(causal=5, mask=3, lse=True),
    "_scaled_dot_product_flash_attention_for_cpu": _Order(causal=4, mask=5, lse=True),
    "_flash_attention_forward": _Order(
        causal=8, lengths=3, lse=True, lower_right=True, windows=(11, 12), used=(13, 15), heads_inside=True
    ),
    "_efficient_attention_forward": _Order(
        causal=None, mask=3, lengths=4, lse_flag=10, mask_type=9, used=(12,), heads_inside=True
    ),
    "_cudnn_attention_forward": _Order(causal=10, mask=3, lengths=4, lse_flag=8),
}
_BACKWARD = {
    "_scaled_dot_product_flash_attention_backward": _Order(
        causal=11, first=1, lengths=6, saved=(4, 5), lower_right=True
    ),
    "_scaled_dot_product_efficient_attention_backward": _Order(
        causal=11, first=1, mask=4, saved=(5, 6), mask_gradient=(10, 3)
    ),
    "_scaled_dot_product_cudnn_attention_backward": _Order(causal=14, first=1, mask=8, lengths=9, saved=(4, 5)),
    "_scaled_dot_product_fused_attention_overrideable_backward": _Order(
        causal=13, first=1, mask=4, lengths=8, saved=(6, 7), mask_gradient=(5, 3)
    ),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _Order(causal=7, first=1, mask=8, saved=(4, 5)),
    "_flash_attention_backward": _Order(
        causal=11, first=1, lengths=6, saved=(4, 5), lower_right=True, windows=(15, 16), heads_inside=True
    ),
    "_efficient_attention_backward": _Order(
        causal=None,
        first=1,
        mask=4,
        lengths=6,
        saved=(5, 10),
        mask_type=14,
        mask_gradient=(15, None),
        heads_inside=True,
    ),
    "_cudnn_attention_backward": _Order(causal=14, first=1, mask=8, lengths=9, saved=(4, 5)),
}

_LIBRARY_FORWARD = {
    "_flash_attn_forward": _Order(causal=5, lse=True, lower_right=True, windows=(6, 7), heads_inside=True),
    "_flash_attn_varlen_forward": _Order(
        causal=9, lengths=3, lse=True, lower_right=True, windows=(10, 11), used=(15, 16, 17), heads_inside=True
    ),
}
_LIBRARY_BACKWARD = {
    "_flash_attn_backward": _Order(
        causal=11, first=1, saved=(4, 5), lower_right=True, windows=(12, 13), heads_inside=True
    ),
    "_flash_attn_varlen_backward": _Order(
        causal=15, first=1, lengths=9, saved=(4, 5), lower_right=True, windows=(16, 17), heads_inside=True
    ),
}
"""The flash-attn package's ops, with the operands of its releases since 2.7."""

_FORWARD_WORDS = (
    "2·(Dqk + Dv) FLOPs per batch, query head and pair of query and key that may attend (flops_full: every "
    "pair), softmax counts none. Reads query, key, value and mask; writes the output"
)
_BACKWARD_WORDS = (
    "2·(3·Dqk + 2·Dv) FLOPs per batch, query head and pair that may attend: the scores again and four "
    "gradient products. Reads the output gradient, query, key, value, output, log-sum-exp and mask; writes "
    "the gradients of query, key and value, and of the mask where asked for."
)


def _words(order: _Order) -> str:
    more = " and the attention weights" if order.weights else ""
    if order.lse or order.lse_flag is not None:
        more = " and the log-sum-exp" + ("" if order.lse else " where asked for")
    corner = " Causal from the lower right corner." if order.lower_right else ""
    return _FORWARD_WORDS + more + "." + corner


MODELS: tuple[Model, ...] = (
    *(Model(f"aten::{op}", "attention", _forward(at), _words(at)) for op, at in _FORWARD.items()),
    *(Model(f"aten::{op}", "attention", _backward(at), _BACKWARD_WORDS) for op, at in _BACKWARD.items()),
    *(
        Model(f"flash_attn::{op}", "attention", _forward(at), _words(at), "the flash-attn package, 2.7 and later")
        for op, at in _LIBRARY_FORWARD.items()
    ),
    *(
        Model(f"flash_attn::{op}", "attention", _backward(at), _BACKWARD_WORDS, "the flash-attn package, 2.7 and later")
        for op, at in _LIBRARY_BACKWARD.items()
    ),
    Model(
        "aten::_transform_bias_rescale_qkv",
        "pointwise",
        _split_heads,
        "1 add per element, and 1 product for those of the query. Reads the packed projection and its bias, "
        "writes query, key and value.",
    ),
)

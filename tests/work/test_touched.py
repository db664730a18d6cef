"""Bytes against the addresses that a real call touches, whatever the layout: sliced, transposed, expanded, in place.

The witness takes each element's address from its tensor's storage and strides, and knows nothing of a formula.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from schema_calls import call_of  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from torchroof.work.standard import STANDARD  # noqa: E402


def addresses(tensor: torch.Tensor) -> set[int]:
    """Where the elements lie; those of an expanded axis lie in one place."""
    places = np.full((1,) * tensor.dim(), tensor.data_ptr(), dtype=np.int64)
    for axis, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        shape = [1] * tensor.dim()
        shape[axis] = size
        places = places + (np.arange(size, dtype=np.int64) * stride * tensor.element_size()).reshape(shape)
    return set(places.ravel().tolist())


def tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item)


class Touched(TorchDispatchMode):
    """Of the one op that reaches a kernel: its call, and the bytes read and written."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Any, int, int]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        arguments = func._schema.arguments
        given = [*zip(arguments, args, strict=False), *((a, kwargs[a.name]) for a in arguments if a.name in kwargs)]
        overwritten = WRITES_ONLY.get(func._schema.name)
        read = written = 0
        for argument, value in given:
            target = argument.alias_info is not None and argument.alias_info.is_write
            for tensor in tensors(value):
                size = len(addresses(tensor)) * tensor.element_size()
                read += 0 if target and (overwritten or argument.is_out) else size
                written += size if target else 0
        call = call_of(func, *args, **kwargs)
        result = func(*args, **kwargs)
        if not any(a.alias_info is not None and a.alias_info.is_write for a, _ in given):
            written = sum(len(addresses(t)) * t.element_size() for t in tensors(result))
        self.found.append((call, read, written))
        return result


WRITES_ONLY = {"aten::copy_": True, "aten::fill_": True, "aten::zero_": True}
"""In place, but what was there before is not read."""


@st.composite
def layouts(draw: st.DrawFn, dtype: torch.dtype) -> Callable[[tuple[int, ...]], torch.Tensor]:
    """How a tensor of a shape lies in memory."""
    way = draw(st.sampled_from(["dense", "transposed", "sliced", "expanded", "channels last", "every other"]))

    def make(shape: tuple[int, ...]) -> torch.Tensor:
        if way == "transposed":
            return torch.ones(shape[::-1]).to(dtype).permute(*reversed(range(len(shape))))
        if way == "sliced":
            return torch.ones([n + 2 for n in shape]).to(dtype)[tuple(slice(1, n + 1) for n in shape)]
        if way == "expanded":
            return torch.ones((1, *shape[1:])).to(dtype).expand(shape)
        if way == "channels last" and len(shape) == 4:
            return torch.ones(shape).to(dtype).contiguous(memory_format=torch.channels_last)
        if way == "every other":
            return torch.ones((*shape[:-1], 2 * shape[-1])).to(dtype)[..., ::2]
        return torch.ones(shape).to(dtype)

    return make


UNARY = [torch.relu, torch.exp, torch.neg, torch.sigmoid, torch.nn.functional.gelu, torch.clone, torch.abs, torch.isnan]
BINARY = [torch.add, torch.mul, torch.maximum, torch.lt, torch.div, torch.where, torch.atan2]
MOVED = [
    lambda x: torch.cat([x, x.clone()]),
    lambda x: torch.stack([x, x.clone()]),
    lambda x: torch.roll(x, 1),
    lambda x: torch.flip(x, [0]),
    lambda x: torch.nn.functional.pad(x, (1, 2)),
    lambda x: x.to(torch.float16),
    lambda x: torch.masked_fill(x, x > 5, 0.0),
]
IN_PLACE = [
    lambda x, y: x.add_(y),
    lambda x, y: x.mul_(2.0),
    lambda x, y: x.copy_(y),
    lambda x, y: x.fill_(1.0),
    lambda x, y: x.zero_(),
    lambda x, y: torch.relu_(x),
    lambda x, y: x.masked_fill_(y > 5, 0.0),
]
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
DTYPES = st.sampled_from([torch.float32, torch.bfloat16, torch.float64])


def check(run: Callable[[], Any]) -> int:
    with Touched() as seen:
        run()
    compared = 0
    for call, read, written in seen.found:
        priced = STANDARD.price(call)
        if priced.work.bytes_read is None or priced.reason is not None:
            continue
        assert (priced.work.bytes_read, priced.work.bytes_written) == (read, written), call
        compared += 1
    return compared


@given(st.data(), st.sampled_from(UNARY + MOVED), SHAPES, DTYPES)
def test_one_operand(data: Any, op: Any, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = data.draw(layouts(dtype))(shape)
    assert check(lambda: op(x))


@given(st.data(), st.sampled_from(BINARY), SHAPES, DTYPES)
def test_two_operands_that_broadcast(data: Any, op: Any, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = data.draw(layouts(dtype))(shape)
    kept = data.draw(st.integers(0, len(shape)))
    y = data.draw(layouts(dtype))(tuple(n if data.draw(st.booleans()) else 1 for n in shape)[kept:] or (1,))
    mask = data.draw(layouts(torch.bool))(shape)
    assert check((lambda: torch.where(mask, x, y)) if op is torch.where else (lambda: op(x, y)))


@given(st.data(), st.sampled_from(IN_PLACE), SHAPES, DTYPES)
def test_in_place(data: Any, op: Any, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, y = data.draw(layouts(dtype))(shape), data.draw(layouts(dtype))(shape)
    assume(len(addresses(x)) == x.numel())  # torch writes through no expanded tensor
    assert check(lambda: op(x, y))


@given(st.data(), st.sampled_from([torch.add, torch.mul]), SHAPES, DTYPES)
def test_into_a_given_tensor(data: Any, op: Any, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, y = data.draw(layouts(dtype))(shape), data.draw(layouts(dtype))(shape)
    out = torch.empty(shape, dtype=dtype)
    assert check(lambda: op(x, y, out=out))

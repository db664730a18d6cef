"""Movement: worked examples, and the bytes of real calls against the storages they touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torchroof.tensors import DTYPES, OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.models.movement import MODELS

FORMULAS = {model.op: model.formula for model in MODELS}
F32 = DTYPES["float32"]
X = TensorSpec((4, 8), F32)
INDEX = TensorSpec((2,), DTYPES["int64"])


def work(name: str, *operands: object) -> Work:
    return FORMULAS[f"aten::{name}"](OpCall(f"aten::{name}", operands))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        ("copy_", (X, TensorSpec((4, 8), DTYPES["float64"]), False), Work(0, 256, 128)),
        ("copy_", (X, TensorSpec((4, 8), F32, (0, 1)), False), Work(0, 32, 128)),  # one stored row
        ("_to_copy", (X, 5, None, None, None, False, None), Work(0, 128, 64)),
        ("fill_", (X, 0.0), Work(0, 0, 128)),
        ("cat", ((X, X), 0), Work(0, 256, 256)),
        ("cat", ((X, TensorSpec((1, 8), DTYPES["float64"])), 0), Work(0, 128 + 64, 40 * 8)),
        ("cat", ((TensorSpec((4, 8), None),), 0), Work(0, None, None)),
        ("index", (X, (INDEX,)), Work(0, 16 + 64, 64)),
        ("gather", (X, 1, TensorSpec((4, 2), DTYPES["int64"]), False), Work(0, 64 + 32, 32)),
        ("scatter_add_", (X, 0, TensorSpec((2, 8), DTYPES["int64"]), X), Work(16, 128 + 64 + 64, 64)),
        ("index_add_", (X, 0, INDEX, TensorSpec((2, 8), F32), 1), Work(16, 16 + 64 + 64, 64)),
        ("index_put_", (X, None, TensorSpec((2, 8), F32), True), Work(16, 128, 64)),
        ("constant_pad_nd", (X, (1, 1), 0.0), Work(0, 128, 4 * 10 * 4)),
        ("constant_pad_nd", (X, (-2, 0), 0.0), Work(0, 4 * 6 * 4, 4 * 6 * 4)),
        ("upsample_nearest2d", (TensorSpec((1, 1, 4, 8), F32), None, (2.0, 2.0)), Work(0, 128, 512)),
        ("upsample_bilinear2d", (TensorSpec((1, 1, 4, 8), F32), (8, 16), False, None, None), Work(896, 128, 512)),
        (
            "upsample_bilinear2d_backward",
            (TensorSpec((1, 1, 8, 16), F32), (8, 16), (1, 1, 4, 8), False, None, None),
            Work(8 * 128, 512, 128),
        ),
        # 3×3 windows of a padded 4×4 image: 16 of them, 9 values each
        ("im2col", (TensorSpec((1, 2, 4, 4), F32), (3, 3), (1, 1), (1, 1), (1, 1)), Work(0, 128, 2 * 9 * 16 * 4)),
        ("arange", (5, None, None, None, False), Work(0, 0, 40)),
        ("arange", (0, 1.0, 0.25, TensorSpec((0,), F32)), Work(0, 0, 16)),
        ("eye", (3, None, None, None, False), Work(0, 0, 36)),
        ("_local_scalar_dense", (X,), Work(0, 4, 0)),
    ],
)
def test_worked_examples(name: str, operands: tuple[object, ...], expected: Work) -> None:
    assert work(name, *operands) == expected


def test_sizes_that_depend_on_values_are_unknown() -> None:
    for name, operands in (
        ("index", (X, None)),
        ("index", (X, (TensorSpec((4, 8), DTYPES["bool"]),))),
        ("index_put_", (X, None, TensorSpec((), F32), False)),
        ("repeat_interleave", (X, INDEX, 0, None)),
        ("arange", (0, float("inf"), 1, TensorSpec((0,), F32))),
    ):
        with pytest.raises(Unknown):
            work(name, *operands)


def _out(tensors: object) -> list[Any]:
    return list(tensors) if isinstance(tensors, tuple) else [tensors]


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "aten::add": lambda x, y: x + y,
    "aten::mul": lambda x, y: x * y,
    "aten::lt": lambda x, y: x < y,
    "aten::exp": lambda x, y: x.exp(),
    "aten::tanh": lambda x, y: x.tanh(),
    "aten::lerp": lambda x, y: x.lerp(y, 0.5),
    "aten::roll": lambda x, y: x.roll(1, 0),
    "aten::flip": lambda x, y: x.flip(0),
    "aten::clone": lambda x, y: x.clone(),
    "aten::sum": lambda x, y: x.sum(0),
    "aten::mean": lambda x, y: x.mean(1, True),
    "aten::max": lambda x, y: x.max(1),
    "aten::sort": lambda x, y: x.sort(),
    "aten::topk": lambda x, y: x.topk(3),
    "aten::cumsum": lambda x, y: x.cumsum(0),
    "aten::argmax": lambda x, y: x.argmax(0),
    "aten::var": lambda x, y: x.var(1),
    "aten::logsumexp": lambda x, y: x.logsumexp(1),
    "aten::linalg_vector_norm": lambda x, y: x.norm(),
}
BINARY = ("aten::add", "aten::mul", "aten::lt", "aten::lerp")


@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_bytes_are_those_of_the_storages_that_a_real_call_touches(name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    from recorded import everything, recorded

    from torchroof.work.standard import STANDARD

    x, y = (torch.randn(6, 10).to(getattr(torch, dtype)) for _ in range(2))
    results: list[Any] = []
    roots = recorded(lambda: results.extend(_out(CALLS[name](x, y))))
    calls = [e.call for e in everything(roots) if e.name == name]
    priced = STANDARD.price(calls[0])
    inputs = [x, y] if name in BINARY else [x]
    assert priced.work.bytes_read == sum(t.untyped_storage().nbytes() for t in inputs)
    assert priced.work.bytes_written == sum(t.untyped_storage().nbytes() for t in results)

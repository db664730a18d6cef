"""One visible row for every way to train: each product is on its layer and phase, and what is special has a row.

The counts are by hand. A linear layer multiplies once forward and twice backward (for its input and for its weight),
once where its input needs no gradient.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import laws
import pytest
import torch
from ways import BATCH, HIDDEN, OUT, WAYS, WIDE

import torchroof
from torchroof.report.model import ReportData, Row

PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::_addmm_activation", "quantized::linear_dynamic"}
FORWARD, BACKWARD, AGAIN = "forward", "backward", "recompute"


def two(first: str = "first", last: str = "last", times: int = 1) -> dict[tuple[str, str], int]:
    """Two linear layers, of which the first needs no gradient of its input."""
    return {
        (first, FORWARD): times,
        (first, BACKWARD): times,
        (last, FORWARD): times,
        (last, BACKWARD): 2 * times,
    }


EXPECTED: dict[str, dict[tuple[str, str], int]] = {
    # The first call's input needs no gradient, the second one's does.
    "a layer called twice and under two names": {("first", FORWARD): 2, ("first", BACKWARD): 1 + 2},
    "tied weights": {("head", FORWARD): 1, ("head", BACKWARD): 2},
    # Input and state in each of three steps; the first state needs no gradient.
    "a recurrent cell": {("", FORWARD): 3 * 2, ("", BACKWARD): 3 * 2 + 2},
    "maths of the parents own": two("inner", ""),
    "forward called directly": {("0", FORWARD): 1, ("0", BACKWARD): 1},
    "activations in place": two("0", "2"),
    "outputs that are no tensor": two("tuple.inner", "dict.inner")
    | {("none.inner", FORWARD): 1, ("none.inner", BACKWARD): 2},
    "modules made and replaced while training": two("0", "1"),
    "hooks of the users own": two(),
    # The judge sees made, real and made again; only the last time its input needs a gradient.
    "two models of a gan": two("maker.first", "maker.last")
    | {("judge.first", FORWARD): 3, ("judge.first", BACKWARD): 1 + 1 + 2}
    | {("judge.last", FORWARD): 3, ("judge.last", BACKWARD): 3 * 2},
    "a model inside a plain object": two(),
    "evaluation between steps": two("0", "3") | {("0", FORWARD): 2, ("3", FORWARD): 2},
    # Four tokens: in-projection, two products of attention, out-projection.
    "generation token by token": {("attend", FORWARD): 4 * (1 + 2 + 1), ("head", FORWARD): 4},
    "backward twice over one graph": two() | {("first", BACKWARD): 2, ("last", BACKWARD): 4},
    # 0: the gradient of x (1); of that product (2); of the forward pass, whose input is a leaf (2).
    # 2: the gradient of its input (1); of that product, where the other side is constant (1).
    "a gradient penalty": {("0", FORWARD): 1, ("0", BACKWARD): 5, ("2", FORWARD): 1, ("2", BACKWARD): 2},
    "a custom function": two("0", "1"),
    # Frozen layers have no product for their weight, and none at all where the input needs no gradient.
    "adapters on frozen layers": two("0.down", "0.up")
    | {("0.base", FORWARD): 1, ("2.base", FORWARD): 1, ("2.base", BACKWARD): 1}
    | {("2.down", FORWARD): 1, ("2.down", BACKWARD): 2, ("2.up", FORWARD): 1, ("2.up", BACKWARD): 2},
    "backward on a thread": two(),
    "forward on several threads": two("left.first", "left.last") | two("right.first", "right.last"),
    "replicas of data parallel": two("0", "2", times=2),
    "accumulation over micro steps": two(times=3),
    "checkpointing": two("first", "block.2")
    | {("block.0", FORWARD): 1, ("block.0", BACKWARD): 2, ("block.0", AGAIN): 1, ("block.2", AGAIN): 1},
    "checkpointing reentrant": two("first", "block.2")
    | {("block.0", FORWARD): 1, ("block.0", BACKWARD): 2, ("block.0", AGAIN): 1, ("block.2", AGAIN): 1},
    "a plain optimizer": two(),
    "a foreach optimizer": two(),
    "a fused optimizer": two(),
    "an optimizer with a closure": two(times=3),
    "optimizers stepped inside backward": two(),
    "clipping scaling and averaging": two(),
    "a data loader": two(),
    "autocast": two("0", "2"),
    "a scripted module": two("0", "1"),
    "a quantized module": {("first", FORWARD): 1, ("last", FORWARD): 1},
    # In-projection, two of attention, out-projection; nobody wants the gradient of the input.
    "attention": {("", FORWARD): 4, ("", BACKWARD): 1 + 4 + 2},
    "the fast path of a transformer": {("layers.0", FORWARD): 6, ("layers.1", FORWARD): 6},
    "nested tensors": {("", FORWARD): 1, ("", BACKWARD): 1},
    "sparse tensors": {("", FORWARD): 2, ("", BACKWARD): 3},
    "a compiled model": {("", FORWARD): 2, ("", BACKWARD): 3},
    "copies of a model": two() | {("Net.first", FORWARD): 1, ("Net.last", FORWARD): 1},
}


@cache
def report(name: str) -> ReportData:
    """The second of two steps."""
    torch.manual_seed(0)
    model, step = WAYS[name]()
    with torchroof.profile(model, schedule=torchroof.schedule(warmup=1, active=1), measure=False) as prof:
        for _ in range(2):
            step()
            prof.step()
    data = prof.report.data
    laws.check(data)
    return data


def rows(name: str, **wanted: str | None) -> list[Row]:
    found = [r for r in report(name).rows if all(getattr(r, key) == value for key, value in wanted.items())]
    assert found, (name, wanted)
    return found


@pytest.mark.parametrize("name", WAYS)
def test_products_are_where_they_belong(name: str) -> None:
    found: Counter[tuple[str | None, str]] = Counter()
    for row in report(name).rows:
        if row.op in PRODUCTS:
            found[row.path, row.phase] += row.calls
    assert found == EXPECTED[name]


def test_other_names_of_a_layer_are_listed() -> None:
    layers = {layer.path: layer for layer in report("a layer called twice and under two names").layers}
    assert layers["first"].aliases == ("again",) and layers["first"].calls == 2
    # Its two gradients are summed for it.
    assert rows("a layer called twice and under two names", path="first", phase="grad_accumulate", op="aten::add")


def test_a_loop_s_phases_by_hand() -> None:
    """Four parameters; the first of three micro-steps keeps its gradients, two add theirs."""
    name = "accumulation over micro steps"
    summed = rows(name, phase="grad_accumulate", op="aten::add_")
    assert sum(r.calls for r in summed) == 2 * 4
    parameters = WIDE * HIDDEN + HIDDEN + HIDDEN * OUT + OUT
    assert sum(r.flops or 0 for r in summed) == 2 * parameters
    assert {r.path for r in rows(name, phase="optimizer")} == {"first", "last"}


@pytest.mark.parametrize(("name", "ran"), [("checkpointing", 0), ("checkpointing reentrant", 1)])
def test_what_a_recomputation_did(name: str, ran: int) -> None:
    (last,) = rows(name, path="block.2", phase="recompute", op="aten::addmm")
    assert last.flops == ran * 2 * BATCH * HIDDEN * OUT
    (first,) = rows(name, path="block.0", phase="recompute", op="aten::addmm")
    assert first.flops == 2 * BATCH * HIDDEN * HIDDEN
    assert rows(name, path="block.1", phase="recompute", op="aten::bernoulli_")  # dropout draws again


def test_a_hook_of_the_users_on_a_layer_runs_in_it() -> None:
    assert rows("hooks of the users own", path="first", phase="forward", op="aten::mul")
    assert rows("hooks of the users own", path="last", phase="forward", op="BackwardHookFunction")
    assert rows("hooks of the users own", path="last", phase="grad_accumulate", op="aten::mul")


def test_one_made_anew_each_time_keeps_its_name() -> None:
    assert rows("modules made and replaced while training", path="Dropout", phase="forward", op="aten::bernoulli_")


def test_the_optimizer_by_parts() -> None:
    for name, op in (("a plain optimizer", "aten::lerp_"), ("a foreach optimizer", "aten::_foreach_lerp_")):
        found = rows(name, phase="optimizer", op=op)
        assert {(r.path, r.shared) for r in found} == {("first", "AdamW.step"), ("last", "AdamW.step")}
    fused = rows("a fused optimizer", phase="optimizer", op="aten::_fused_adamw_")
    assert [r.path for r in fused] == ["first", "last"] and [r.kernels for r in fused] == [1, 0]


def test_a_closure_s_passes_are_forward_and_backward_and_the_search_is_the_optimizer_s() -> None:
    name = "an optimizer with a closure"
    assert rows(name, path=None, phase="forward", op="aten::mean")
    assert {r.shared for r in rows(name, phase="optimizer", op="aten::dot")} == {"LBFGS.step"}


def test_a_step_inside_backward_is_the_optimizer_s_on_the_layer_of_its_parameter() -> None:
    found = rows("optimizers stepped inside backward", phase="optimizer", op="aten::mul_")
    assert {(r.path, r.calls) for r in found} == {("first", 2), ("last", 2)}


def test_what_is_done_to_gradients_and_averages_is_named() -> None:
    name = "clipping scaling and averaging"
    named = {
        (r.op, r.shared) for r in rows(name, phase="optimizer") if (r.op and "foreach" in r.op) or r.op == "aten::zero_"
    }
    assert named == {
        ("aten::_amp_foreach_non_finite_check_and_unscale_", "GradScaler"),
        ("aten::_foreach_norm", "gradient norm"),
        ("aten::_foreach_mul_", "work on parameters"),
        ("aten::_foreach_lerp_", "averaging"),
        ("aten::zero_", "SGD.zero_grad"),
    }
    assert {r.path for r in rows(name, phase="optimizer", op="aten::_foreach_norm")} == {"first", "last"}


def test_loading_is_data() -> None:
    assert rows("a data loader", path=None, phase="data", op="aten::stack")


def test_autocast_shows_each_layer_s_casts_and_real_precision() -> None:
    (product,) = rows("autocast", path="0", phase="forward", op="aten::addmm")
    assert product.precision == "bfloat16"
    # Input, weight and bias; the second linear layer's input comes from a norm, in bfloat16 already or cast.
    assert sum(r.calls for r in rows("autocast", path="0", phase="forward", op="aten::_to_copy")) == 3


@pytest.mark.parametrize(
    ("name", "path", "op"),
    [
        ("sparse tensors", "", "aten::_sparse_mm"),
        ("sparse tensors", "lookup", "aten::embedding_sparse_backward"),
        ("a scripted module", "0", "<forward op>"),
        ("a scripted module", "0", "<backward op>"),
        ("a custom function", "1", "Times"),
    ],
)
def test_what_has_no_model_has_an_owner_and_says_so(name: str, path: str, op: str) -> None:
    for row in rows(name, path=path, op=op):
        assert row.flops is None and row.bytes_read is None and row.unknown and "no work model" in row.unknown

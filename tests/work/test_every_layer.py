"""Every layer of `torch.nn`, run forward and backward on the CPU: nothing is lost, and products count by hand."""

from __future__ import annotations

import warnings
from functools import cache
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

import laws
import pytest

torch = pytest.importorskip("torch")

from every_layer import ACTIVATIONS, BY_AXES, LAYERS, total  # noqa: E402
from torch import nn  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

from torchroof.report.build import analyse  # noqa: E402
from torchroof.report.model import ReportData  # noqa: E402
from torchroof.trace.reader import read  # noqa: E402
from torchroof.work.registry import MATRIX_FAMILIES  # noqa: E402
from torchroof.work.standard import STANDARD  # noqa: E402

WITHOUT_BYTES = {
    "aten::cat": "element types in lists are not recorded",
    "aten::stack": "element types in lists are not recorded",
    "aten::index": "lists with gaps are not recorded",
    "aten::nonzero": "depends on values",
}
WITHOUT_FLOPS = {
    "aten::index": "lists with gaps are not recorded",
    "aten::nonzero": "depends on values",
    "aten::multilabel_margin_loss_forward": "depends on values",
    "aten::multilabel_margin_loss_backward": "depends on values",
    "aten::_ctc_loss": "lengths in a tensor depend on values",
    "aten::_ctc_loss_backward": "lengths in a tensor depend on values",
}
"""The only ops of these layers whose work is not known, and why."""
WITHOUT_BYTES |= {op: WITHOUT_FLOPS[op] for op in WITHOUT_FLOPS if "ctc" in op}
IN_PYTHON = {"CrossMapLRN2d", "CrossMapLRN2dBackward"}
"""Functions written in Python: the time between the ops that they call."""


@pytest.fixture(autouse=True)
def one_thread():
    """The ops are too small for more, and waking threads takes longer than they do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@cache
def report(name: str) -> ReportData:
    """One forward and backward (evaluation: a forward without gradients) under the profiler."""
    layer = LAYERS[name]
    torch.manual_seed(0)
    with warnings.catch_warnings(action="ignore"), TemporaryDirectory() as folder:
        module, inputs = layer.make().train(layer.training), layer.inputs()
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            with torch.set_grad_enabled(layer.training):
                loss = total(module(*inputs))
            if layer.training and loss is not None:
                loss.backward()
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return analyse(read(path))


@pytest.mark.parametrize("name", LAYERS)
def test_all_kernel_time_has_flops_and_bytes(name):
    data = report(name)
    laws.check(data)
    assert (
        data.totals.kernels > 0 or name.startswith("Identity") or name == "Dropout(p=0.5, inplace=False) in evaluation"
    )
    for row in data.rows:
        if row.op in IN_PYTHON:
            continue
        if row.op not in WITHOUT_FLOPS:
            assert row.flops_known_ns == row.kernel_ns, (row.op, row.unknown)
        if row.op not in WITHOUT_BYTES:
            assert row.bytes_known_ns == row.kernel_ns, (row.op, row.unknown)


def test_the_list_has_every_layer_of_torch():
    with warnings.catch_warnings(action="ignore"):
        made = {type(part).__name__ for layer in LAYERS.values() for part in layer.make().modules()}
    made |= {layer.name.split("(")[0].split(" ")[0] for layer in LAYERS.values()}
    everything = {
        name
        for name, sort in vars(nn).items()
        if isinstance(sort, type) and issubclass(sort, nn.Module) and not name.startswith("Lazy")
    }
    apart = {
        *("Module", "Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList"),
        *("DataParallel", "NLLLoss2d", "RNNBase", "RNNCellBase"),
    }
    devices_only = {"SyncBatchNorm"}
    assert everything - apart - devices_only <= made
    assert {sort.__name__ for sort in ACTIVATIONS} <= made


def products(name: str) -> int:
    """FLOPs of the products in all that a layer ran."""
    rows = [row for row in report(name).rows if STANDARD.family(row.op or "") in MATRIX_FAMILIES]
    assert all(row.flops is not None for row in rows)
    return sum(row.flops or 0 for row in rows)


def named(kind: str) -> list[str]:
    return [name for name in LAYERS if name.startswith(kind)]


@pytest.mark.parametrize(("name", "rows"), list(zip(named("Linear("), (3, 3, 6), strict=True)))
def test_linear(name, rows):
    # (rows × 7) by (7 × 5), and as much for each of both gradients.
    assert products(name) == 3 * (2 * rows * 7 * 5)


def test_bilinear():
    # y[n, o] = Σ over i, j of x[n, i]·W[o, i, j]·z[n, j] on 3 rows, 7 by 6 to 5. Forward: x with W, 2·3·7·5·6, then
    # with z, 2·3·5·6. Each of the three gradients first scales one factor and then is such a product.
    assert products("Bilinear") == 4 * (2 * 3 * 7 * 5 * 6) + 2 * 3 * 5 * 6


def output_sizes(layer: nn.Module, sizes: tuple[int, ...]) -> list[int]:
    """Sizes of a convolution's output by counting places where the kernel fits."""
    found = []
    for n, k, s, p, d in zip(
        sizes,
        layer.kernel_size,
        layer.stride,
        layer._reversed_padding_repeated_twice[::-2],
        layer.dilation,
        strict=True,
    ):
        reach = d * (k - 1) + 1
        found.append(len(range(0, n + 2 * p - reach + 1, s)))
    return found


CONVOLUTIONS = [(axes, name) for axes in BY_AXES for name in named(f"Conv{axes}d")]


@pytest.mark.parametrize(("axes", "name"), CONVOLUTIONS)
def test_convolution(axes, name):
    # For each sample, output place and output channel: channels ÷ groups × kernel multiply-adds, 2 FLOPs each;
    # backward the same again for the input and for the weight, whatever the groups.
    layer = LAYERS[name].make()
    batch = () if name.endswith("'") else (2,)
    if "circular" in name:
        places = BY_AXES[axes][2:]
    else:
        places = output_sizes(layer, BY_AXES[axes][2:])
    each = layer.in_channels // layer.groups * prod(layer.kernel_size)
    assert products(name) == 3 * 2 * prod(batch) * prod(places) * layer.out_channels * each


@pytest.mark.parametrize(
    ("axes", "name"), [(axes, name) for axes in BY_AXES for name in named(f"ConvTranspose{axes}d")]
)
def test_transposed_convolution(axes, name):
    # Every input element meets every weight of its group: out channels ÷ groups × kernel multiply-adds.
    layer = LAYERS[name].make()
    each = layer.out_channels // layer.groups * prod(layer.kernel_size)
    assert products(name) == 3 * 2 * prod(BY_AXES[axes]) * each


STEPS, BATCH, INPUT, HIDDEN = 6, 3, 7, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def recurrent_pairs(width: int, rows: int = STEPS * BATCH, hidden: int = HIDDEN) -> tuple[int, int]:
    """Multiply-adds of one gate with the input and with the hidden state, over all steps, times 2."""
    return 2 * rows * width * HIDDEN, 2 * rows * hidden * HIDDEN


@pytest.mark.parametrize("kind", ["RNN", "GRU"])
def test_recurrent_layers_step_by_step(kind):
    # Forward: both products. Backward: both gradients of the input's product, the weight gradient of the hidden
    # one, and its other gradient in all steps but the first, whose state is given and needs none.
    x, h = recurrent_pairs(INPUT)
    assert products(f"{kind} in evaluation") == GATES[kind] * (x + h)
    assert products(kind) == GATES[kind] * (3 * x + 2 * h + h * (STEPS - 1) // STEPS)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_two_layers_both_ways(kind):
    # Two directions; the second layer takes in both directions of the first: 10 wide. LSTM is one op a layer and
    # direction, with 18 FLOPs per element of the state for its pointwise part.
    first, h = recurrent_pairs(INPUT)
    second, _ = recurrent_pairs(2 * HIDDEN)
    pointwise = 18 * STEPS * BATCH * HIDDEN * 4 if kind == "LSTM" else 0
    assert products(f"{kind}, two layers both ways in evaluation") == (
        2 * GATES[kind] * (first + second + 2 * h) + pointwise
    )


def test_lstm_as_one_op():
    # Forward 4 gates, backward both gradients of both products; pointwise 18 and 23 per element of the state.
    x, h = recurrent_pairs(INPUT)
    elements = STEPS * BATCH * HIDDEN
    assert products("LSTM in evaluation") == 4 * (x + h) + 18 * elements
    assert products("LSTM") == 3 * 4 * (x + h) + (18 + 23) * elements


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_packed_sequences_step_by_step(kind):
    # Lengths 6, 4 and 1: 11 rows in all.
    x, h = recurrent_pairs(INPUT, rows=11)
    assert products(f"{kind} of packed sequences in evaluation") == GATES[kind] * (x + h)


def test_lstm_with_projection():
    # The state is projected to 2, forward: gates 4·(7 + 2)·5 and 5·2 a row. No gradient of the first step's state.
    rows, first = STEPS * BATCH, BATCH
    gates, projection = 2 * rows * 4 * 5 * 7, 2 * rows * 5 * 2
    hidden = 2 * rows * 4 * 5 * 2
    assert products("LSTM, projected") == 3 * gates + 3 * projection + 3 * hidden - hidden * first // rows


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_cells(kind):
    # One step on 3 rows; the state is zeros, without a gradient.
    x, h = recurrent_pairs(INPUT, rows=3)
    assert products(f"{kind}Cell") == GATES[kind] * (3 * x + 2 * h)


def attention(queries: int, keys: int, width: int = 8, batch: int = 2) -> int:
    """FLOPs of projections in and out, scores and weighted values."""
    projections = 2 * batch * width * width * (queries + 2 * keys + queries)
    return projections + 2 * (2 * batch * queries * keys * width)


def test_attention():
    self_attention, across = attention(5, 5), attention(5, 6)
    assert products("MultiheadAttention in evaluation") == self_attention
    assert products("MultiheadAttention without weights in evaluation") == self_attention
    assert products("MultiheadAttention across in evaluation") == across
    # Each product has two gradients of its size.
    assert products("MultiheadAttention") == 3 * self_attention
    assert products("MultiheadAttention across") == 3 * across
    # The fused backward computes the scores once more: 2·B·pairs·width.
    assert products("MultiheadAttention without weights") == 3 * self_attention + 2 * 2 * 25 * 8


def test_transformer_layers():
    feed_forward = 2 * (2 * 2 * 5 * 8 * 16)
    assert products("TransformerEncoderLayer in evaluation") == attention(5, 5) + feed_forward
    assert products("TransformerDecoderLayer in evaluation") == attention(5, 5) + attention(5, 6) + feed_forward

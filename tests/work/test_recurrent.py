"""Recurrent layers as one op, and the fused parts of a cell: worked by hand, and against torch's own results."""

from __future__ import annotations

import pytest
import torch
from schema_calls import bytes_of, call_of, dense_spec, models

from torchroof.tensors import OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.models.recurrent import MODELS

WORK = {op: model.formula for op, model in models(MODELS).items()}
aten = torch.ops.aten
RELU, TANH, LSTM, GRU = range(4)


def price(op: str, *operands: object) -> Work:
    return WORK[op](OpCall(f"aten::{op}", operands))  # type: ignore[arg-type]


def cudnn(x, mode=LSTM, hidden=32, layers=1, both=False, sizes=(), train=False, dropout=0.0, projected=0, stride=4):
    out = projected or hidden
    sequences = max(sizes) if sizes else x.shape[1]
    state = dense_spec((layers * (1 + both), sequences, out))
    memory = dense_spec((layers * (1 + both), sequences, hidden)) if mode == LSTM else None
    weights = (TensorSpec((1,), None),)
    buffer = dense_spec((1,))
    return price(
        "_cudnn_rnn", x, weights, stride, buffer, state, memory, mode, hidden, projected, layers, False, dropout, train,
        both, sizes, None,
    )  # fmt: skip


X = dense_spec((10, 8, 16))  # 10 steps, 8 sequences, 16 features


def test_one_layer_by_hand():
    work = cudnn(X)
    # Products: 10·8 rows, 4 gates of 32, over 16 + 32. Pointwise: 18 per element of the state.
    assert work.flops == 2 * 80 * 4 * 32 * (16 + 32) + 18 * 80 * 32 == 1_029_120
    weights = 4 * 32 * (16 + 32) + 2 * 4 * 32
    assert work.bytes_read == 4 * (80 * 16 + weights + 2 * 8 * 32)
    assert work.bytes_written == 4 * (80 * 32 + 2 * 8 * 32)
    # Streamed, the weights are read nine times more, and both states go out and come back between ten steps.
    assert work.bytes_upper == work.bytes_moved + 4 * (9 * weights + 2 * 9 * 8 * 64)


@pytest.mark.parametrize(("mode", "gates", "pointwise"), [(RELU, 1, 0), (TANH, 1, 1), (LSTM, 4, 18), (GRU, 3, 14)])
def test_kinds_of_cells(mode, gates, pointwise):
    assert cudnn(X, mode).flops == 2 * 80 * gates * 32 * 48 + pointwise * 80 * 32


def test_layers_directions_dropout_and_projection():
    # Two directions; the second layer takes in 64.
    both = cudnn(X, layers=2, both=True)
    assert both.flops == 2 * (2 * 80 * 128 * (48 + 96) + 2 * 18 * 80 * 32)
    # A mask and a scale on what the first layer hands on, in training alone.
    dropped = cudnn(X, layers=2, both=True, train=True, dropout=0.5)
    assert dropped.flops == both.flops + 2 * 80 * 64
    assert dropped.bytes_moved == both.bytes_moved and dropped.bytes_upper > both.bytes_upper
    assert cudnn(X, layers=2, both=True, dropout=0.5).flops == both.flops
    # Projected to 8: gates over 16 + 8, then 32 to 8.
    assert cudnn(X, projected=8).flops == 2 * 80 * (128 * (16 + 8) + 8 * 32) + 18 * 80 * 32
    # Without biases a layer has two tensors: 2·128 numbers fewer.
    assert cudnn(X, stride=2).bytes_read == cudnn(X).bytes_read - 4 * 256


def test_packed_sequences_count_their_steps():
    # Lengths 3, 2 and 1: steps of 3, 2 and 1 rows.
    packed = cudnn(dense_spec((6, 16)), sizes=(3, 2, 1))
    assert packed.flops == 2 * 6 * 128 * 48 + 18 * 6 * 32
    assert packed.bytes_written == 4 * (6 * 32 + 2 * 3 * 32)
    with pytest.raises(Unknown, match="packed"):
        cudnn(dense_spec((7, 16)), sizes=(3, 2, 1))


@pytest.mark.parametrize("to_weights", [True, False])
def test_backward_by_hand(to_weights):
    y, state, reserve = dense_spec((10, 8, 32)), dense_spec((1, 8, 32)), dense_spec((999,), "uint8")
    work = price(
        "_cudnn_rnn_backward", X, (TensorSpec((1,), None),), 4, dense_spec((1,)), state, state, y, y, None, None, LSTM,
        32, 0, 1, False, 0.0, True, False, (), None, reserve, (True, True, True, to_weights),
    )  # fmt: skip
    product = 2 * 80 * 128 * 48
    assert work.flops == (1 + to_weights) * product + 23 * 80 * 32
    weights = 128 * 48 + 256
    assert work.bytes_written == 4 * (80 * 16 + 2 * 8 * 32 + weights * to_weights)
    # Weights, both states and their gradients, output and its gradient; the input for the weights' gradient.
    assert work.bytes_read == 4 * (weights + 4 * 8 * 32 + 2 * 80 * 32 + 80 * 16 * to_weights)


def test_miopen_counts_as_cudnn():
    state = dense_spec((2, 8, 32))
    work = price(
        "miopen_rnn", X, (TensorSpec((1,), None),), 4, state, None, GRU, 32, 2, False, 0.0, True, False, (), None
    )
    assert work == cudnn(X, GRU, layers=2, train=True)


@pytest.mark.parametrize("op", ["_cudnn_rnn", "miopen_rnn", "_cudnn_rnn_backward", "miopen_rnn_backward"])
def test_operands_are_where_the_schema_has_them(op):
    from torchroof.work.models import recurrent

    vendor = "_CUDNN" if "cudnn" in op else "_MIOPEN"
    order = getattr(recurrent, vendor + ("_BACK" if op.endswith("backward") else ""))
    names = [argument.name for argument in getattr(aten, op).default._schema.arguments]
    wanted = {
        "mode": order.mode,
        "hidden_size": order.hidden,
        "num_layers": order.layers,
        "batch_first": order.batch_first,
        "dropout": order.dropout,
        "train": order.train,
        "bidirectional": order.both_ways,
        "batch_sizes": order.sizes,
    }
    if order.projected is not None:
        wanted["proj_size"] = order.projected
    assert {name: names.index(name) for name in wanted} == wanted
    assert names[0] == "input" and names[2] == "weight_stride0"
    if op.endswith("backward"):
        assert names.index("output_mask") == {"_cudnn_rnn_backward": 21, "miopen_rnn_backward": 20}[op]


def test_onednn_writes_what_torch_returns():
    x, weights = (
        torch.randn(10, 8, 16),
        [torch.randn(128, 16), torch.randn(128, 32), torch.randn(128), torch.randn(128)],
    )
    state = torch.zeros(8, 32)
    args = (x, *weights, state, state, False, [], LSTM, 32, 2, True, True, False, True)
    work = WORK["mkldnn_rnn_layer"](call_of(aten.mkldnn_rnn_layer.default, *args))
    out = aten.mkldnn_rnn_layer.default(*args)
    assert work.bytes_written == bytes_of(out[:3])  # the fourth is a workspace
    assert work == cudnn(X, train=True)  # one layer and direction a call, whatever the whole network is
    more = (x, *weights, state, state, *out[:3], out[0], None, None, False, LSTM, 32, 2, True, True, True, [], False)
    back = WORK["mkldnn_rnn_layer_backward"](call_of(aten.mkldnn_rnn_layer_backward.default, *more, out[3]))
    gradients = aten.mkldnn_rnn_layer_backward.default(*more, out[3])
    assert back.bytes_written == bytes_of(gradients)
    assert back.flops == 2 * 2 * 80 * 128 * 48 + 23 * 80 * 32


def test_fused_cells_by_hand():
    gates, state, bias = dense_spec((8, 128)), dense_spec((8, 32)), dense_spec((128,))
    bare = price("_thnn_fused_lstm_cell", gates, gates, state, None, None)
    # Four sums of the gates and 18 per element; reads two sets of gates and the memory, writes two states, the gates.
    assert bare == Work(22 * 256, 4 * (2 * 1024 + 256), 4 * (2 * 256 + 1024))
    full = price("_thnn_fused_lstm_cell", gates, gates, state, bias, bias)
    assert (full.flops, full.bytes_read) == (30 * 256, bare.bytes_read + 2 * 4 * 128)
    back = price("_thnn_fused_lstm_cell_backward_impl", state, None, state, state, gates, True)
    assert back == Work(27 * 256, 4 * (3 * 256 + 1024), 4 * (1024 + 256 + 128))
    three, small = dense_spec((8, 96)), dense_spec((96,))
    gru = price("_thnn_fused_gru_cell", three, three, state, small, small)
    assert gru == Work(22 * 256, 4 * (2 * 768 + 256 + 2 * 96), 4 * (256 + 5 * 256))
    kept = dense_spec((8, 160))
    assert price("_thnn_fused_gru_cell_backward", state, kept, True) == Work(
        22 * 256, 4 * (256 + 5 * 256), 4 * (2 * 768 + 256 + 2 * 96)
    )


def test_what_does_not_fit_is_unknown():
    with pytest.raises(Unknown, match="no kind"):
        cudnn(X, mode=7)
    with pytest.raises(Unknown, match="gates"):
        price("_thnn_fused_gru_cell", dense_spec((8, 96)), dense_spec((8, 90)), dense_spec((8, 32)), None, None)
    with pytest.raises(Unknown):
        WORK["_cudnn_rnn"](OpCall("aten::_cudnn_rnn", (X,), scalars_known=False))

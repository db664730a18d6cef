"""Recurrent layers that run as one op (cuDNN, MIOpen, oneDNN), and the fused pointwise part of a cell.

Per row (a sequence in a step), layer and direction a cell multiplies its input and its hidden state by the
weights of its gates: 2 · (input + hidden) · gates · hidden FLOPs. What is pointwise is counted per element of
the cell's state. `lstm`, `gru`, `rnn_tanh` and the cells of `torch.nn` fall through to these ops, or to the
products of each step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from torchroof.tensors import OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.models.operands import agree, shaped
from torchroof.work.registry import Formula, Model


class _Cell(NamedTuple):
    """Pointwise FLOPs per element of the state, and what is kept."""

    gates: int
    forward: int
    backward: int
    states: int = 1
    """State tensors: hidden, and the memory of an LSTM."""


LSTM = _Cell(4, 3 * 4 + 1 + 3 + 1 + 1, 1 + 6 + 4 + 3 * 3 + 3, states=2)
"""Forward 18: three sigmoids 4 each, tanh 1, the new memory 3, its tanh 1, output 1. Backward 23: output gate 1,
memory 6 (its tanh 1, that one's derivative 2, two products, a sum), four products, three sigmoids' derivatives 3
each, tanh's 3."""
GRU = _Cell(3, 2 * 4 + 3 + 3, 5 + 1 + 5 + 1 + 4)
"""Forward 14: two sigmoids 4 each; candidate 3 (product, sum, tanh); blend 3. Backward 16: update gate 5, old state
1, candidate 5, its hidden part 1, reset gate 4."""
_CELLS = (_Cell(1, 0, 0), _Cell(1, 1, 3), LSTM, GRU)
"""By torch's number for a mode: RNN with relu (comparisons), RNN with tanh, LSTM, GRU."""


class _Net(NamedTuple):
    """A whole network: ``rows`` are the steps of all sequences, ``batch`` the sequences that start."""

    cell: _Cell
    steps: int
    batch: int
    rows: int
    inputs: int
    hidden: int
    out: int
    """Width of the hidden state: ``hidden``, or less where it is projected."""
    layers: int
    directions: int
    biased: bool

    def widths(self) -> list[int]:
        """What each layer takes in."""
        return [self.inputs, *[self.directions * self.out] * (self.layers - 1)]

    def weights(self) -> int:
        """Elements of all weights that multiply."""
        gates = self.cell.gates * self.hidden
        projected = self.out * self.hidden if self.out != self.hidden else 0
        return self.directions * sum(gates * (width + self.out) + projected for width in self.widths())

    def parameters(self) -> int:
        """Elements of weights and biases, of which each layer and direction has two."""
        biases = 2 * self.cell.gates * self.hidden if self.biased else 0
        return self.weights() + self.layers * self.directions * biases

    def states(self) -> int:
        """Elements of all states after a step of one sequence."""
        kept = self.out + (self.hidden if self.cell.states == 2 else 0)
        return self.layers * self.directions * kept

    def elements(self) -> int:
        """Elements of the hidden state over all rows, layers and directions."""
        return self.rows * self.layers * self.directions * self.hidden


def _cell(call: OpCall, index: int) -> _Cell:
    mode = call.integer(index)
    if not 0 <= mode < len(_CELLS):
        raise Unknown(f"operand {index} of {call.name} is no kind of recurrent layer")
    return _CELLS[mode]


def _whole(net: _Net, x: TensorSpec, products: int, beside: int, read: int, written: int, kept: bool) -> Work:
    """Work in elements of one type. Streamed, every step is a cell of its own that goes to memory for the
    weights and the states, layers hand on their output, and gates that are kept for the gradient move."""
    between = 2 * net.rows * (net.layers - 1) * net.directions * net.out
    states = 2 * max(0, net.rows - net.batch) * net.states()
    gates = net.elements() * (net.cell.gates + 1) if kept else 0
    streamed = read + written + max(0, net.steps - 1) * net.parameters() + between + states + gates
    work = Work.of(products + beside, [x.dense((read,))], [x.dense((written,))], streamed=[x.dense((streamed,))])
    return replace(work, flops_beside=beside)


def _forward(net: _Net, x: TensorSpec, dropped: bool, train: bool) -> Work:
    products, beside = 2 * net.rows * net.weights(), net.cell.forward * net.elements()
    if dropped:
        beside += 2 * net.rows * (net.layers - 1) * net.directions * net.out
    states = net.batch * net.states()
    out = net.rows * net.directions * net.out
    return _whole(net, x, products, beside, x.stored_elements + net.parameters() + states, out + states, train)


def _backward(net: _Net, x: TensorSpec, dropped: bool, to_weights: bool) -> Work:
    """Reads input, weights, states, output and as many gradients; writes gradients of input, states, weights."""
    products = 2 * net.rows * net.weights() * (1 + to_weights)
    beside = net.cell.backward * net.elements()
    if dropped:
        beside += 2 * net.rows * (net.layers - 1) * net.directions * net.out
    states, out = net.batch * net.states(), net.rows * net.directions * net.out
    read = net.parameters() + 2 * states + 2 * out + (x.stored_elements if to_weights else 0)
    written = x.numel + states + (net.parameters() if to_weights else 0)
    return _whole(net, x, products, beside, read, written, kept=True)


def _lengths(call: OpCall, x: TensorSpec, sizes_at: int, batch_first: bool) -> tuple[int, int, int]:
    """Steps, sequences and rows; packed sequences have the number of rows of each step on record."""
    sizes = call.integers(sizes_at, ())
    if sizes:
        agree(call, len(x.shape) == 2 and x.shape[0] == sum(sizes) and min(sizes) > 0, "rows of the packed sequences")
        return len(sizes), max(sizes), sum(sizes)
    agree(call, len(x.shape) == 3, "steps, sequences and features are needed")
    steps, batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
    return steps, batch, steps * batch


class _Order(NamedTuple):
    """Where the network of a vendor has its operands; input is 0, weights 1, tensors of one layer and way 2."""

    mode: int
    hidden: int
    layers: int
    batch_first: int
    projected: int | None = None

    @property
    def dropout(self) -> int:
        return self.batch_first + 1

    @property
    def train(self) -> int:
        return self.batch_first + 2

    @property
    def both_ways(self) -> int:
        return self.batch_first + 3

    @property
    def sizes(self) -> int:
        return self.batch_first + 4


def _net(call: OpCall, order: _Order, x: TensorSpec) -> _Net:
    hidden, layers = call.integer(order.hidden), call.integer(order.layers)
    projected = 0 if order.projected is None else call.integer(order.projected)
    agree(call, hidden > 0 and layers > 0 and projected >= 0 and bool(x.shape), "sizes of the network")
    steps, batch, rows = _lengths(call, x, order.sizes, call.flag(order.batch_first))
    directions = 1 + call.flag(order.both_ways)
    biased = call.integer(2) >= 4
    return _Net(
        _cell(call, order.mode),
        steps,
        batch,
        rows,
        x.shape[-1],
        hidden,
        projected or hidden,
        layers,
        directions,
        biased,
    )


def _vendor(order: _Order) -> Formula:
    def work(call: OpCall) -> Work:
        x = call.tensor(0)
        train = call.flag(order.train)
        return _forward(_net(call, order, x), x, train and call.number(order.dropout) > 0, train)

    return work


def _vendor_backward(order: _Order, mask_at: int) -> Formula:
    def work(call: OpCall) -> Work:
        x, wanted = call.tensor(0), call.flags(mask_at)
        agree(call, len(wanted) == 4, "four gradients are asked for or not")
        return _backward(_net(call, order, x), x, call.number(order.dropout) > 0, wanted[3])

    return work


def _layer(call: OpCall, mode_at: int, biased_at: int) -> _Net:
    """One layer, one way: oneDNN is called for each. Its input has the steps first whatever was asked for."""
    x, weight, state = shaped(call, 0, 3), shaped(call, 1, 2), call.tensor(5)
    cell, hidden = _cell(call, mode_at), call.integer(mode_at + 1)
    agree(call, weight.shape == (cell.gates * hidden, x.shape[2]), "input and weight")
    agree(call, hidden > 0 and state.numel == x.shape[1] * hidden, "sequences of the state")
    biased = call.flag(biased_at)
    return _Net(cell, x.shape[0], x.shape[1], x.shape[0] * x.shape[1], x.shape[2], hidden, hidden, 1, 1, biased)


def _onednn_forward(call: OpCall) -> Work:
    return _forward(_layer(call, 9, 12), call.tensor(0), dropped=False, train=call.flag(15))


def _onednn_backward(call: OpCall) -> Work:
    return _backward(_layer(call, 14, 17), call.tensor(0), dropped=False, to_weights=True)


def _gates(call: OpCall, cell: _Cell) -> tuple[TensorSpec, TensorSpec, int]:
    """Gates from the input, those from the hidden state, and elements of the state."""
    a, b = shaped(call, 0, 2), shaped(call, 1, 2)
    agree(call, a.shape == b.shape and a.shape[1] % cell.gates == 0, "gates of input and hidden state")
    return a, b, a.numel // cell.gates


def _lstm_cell(call: OpCall) -> Work:
    a, b, elements = _gates(call, LSTM)
    memory, biases = call.tensor(2), [call.optional_tensor(i) for i in (3, 4)]
    sums = 4 * (1 + sum(bias is not None for bias in biases))
    state = memory.dense()
    return Work.of((LSTM.forward + sums) * elements, [a, b, memory, *biases], [state, state, a.dense()])


def _lstm_cell_backward(call: OpCall) -> Work:
    memory, new, kept, biased = call.tensor(2), call.tensor(3), call.tensor(4), call.flag(5)
    agree(call, kept.numel == 4 * memory.numel and len(kept.shape) == 2, "gates and memory")
    flops = (LSTM.backward + 4 * biased) * memory.numel
    reads = [call.optional_tensor(0), call.optional_tensor(1), memory, new, kept]
    bias = kept.dense(kept.shape[1:]) if biased else None
    return Work.of(flops, reads, [kept.dense(), memory.dense(), bias])


def _gru_cell(call: OpCall) -> Work:
    a, b, elements = _gates(call, GRU)
    state, biases = call.tensor(2), [call.optional_tensor(i) for i in (3, 4)]
    sums = 2 + 3 * sum(bias is not None for bias in biases)
    kept = state.dense((5 * elements,))
    return Work.of((GRU.forward + sums) * elements, [a, b, state, *biases], [state.dense(), kept])


def _gru_cell_backward(call: OpCall) -> Work:
    gradient, kept, biased = shaped(call, 0, 2), call.tensor(1), call.flag(2)
    rows, hidden = gradient.shape
    agree(call, kept.numel == 5 * gradient.numel, "gates and gradient")
    gates = gradient.dense((rows, 3 * hidden))
    bias = gradient.dense((3 * hidden,)) if biased else None
    flops = (GRU.backward + 6 * biased) * gradient.numel
    return Work.of(flops, [gradient, kept], [gates, gates, gradient.dense(), bias, bias])


def _flattened(call: OpCall) -> Work:
    weights = call.tensor_list(0)
    return Work.of(0, weights, weights)


_PARTS = "pointwise per element of the state: LSTM 18, GRU 14, RNN 1 with tanh, none with relu"
_BACK_PARTS = "pointwise per element of the state: LSTM 23, GRU 16, RNN 3 with tanh, none with relu"
_WHOLE = (
    "2·rows·gates·hidden·(input + hidden) FLOPs a layer and direction, rows being the steps of all sequences, and "
    f"2·rows·hidden·projected where there is a projection; {_PARTS}; 2 per element that goes through dropout. Reads "
    "input, weights and states once, writes output and states (streamed: the weights again in each step, states, "
    "what one layer hands to the next, and in training the gates)."
)
_WHOLE_BACK = (
    "As many FLOPs in products as the forward for the gradients of input and states, and as many again for those of "
    f"the weights where asked for, bias gradients none; {_BACK_PARTS}. Reads input, weights, states, output and "
    "gradients of output and states; writes the gradients (streamed: as the forward)."
)
_CUDNN = _Order(mode=6, hidden=7, projected=8, layers=9, batch_first=10)
_CUDNN_BACK = _Order(mode=10, hidden=11, projected=12, layers=13, batch_first=14)
_MIOPEN = _Order(mode=5, hidden=6, layers=7, batch_first=8)
_MIOPEN_BACK = _Order(mode=10, hidden=11, layers=12, batch_first=13)

_TABLE: tuple[tuple[str, str, Formula, str], ...] = (
    ("_cudnn_rnn", "recurrent", _vendor(_CUDNN), _WHOLE),
    ("miopen_rnn", "recurrent", _vendor(_MIOPEN), _WHOLE),
    ("mkldnn_rnn_layer", "recurrent", _onednn_forward, _WHOLE),
    ("_cudnn_rnn_backward", "recurrent", _vendor_backward(_CUDNN_BACK, 21), _WHOLE_BACK),
    ("miopen_rnn_backward", "recurrent", _vendor_backward(_MIOPEN_BACK, 20), _WHOLE_BACK),
    ("mkldnn_rnn_layer_backward", "recurrent", _onednn_backward, _WHOLE_BACK),
    ("_cudnn_rnn_flatten_weight", "movement", _flattened, "0 FLOPs; reads every weight, writes them side by side."),
    (
        "_thnn_fused_lstm_cell",
        "pointwise",
        _lstm_cell,
        "18 FLOPs per element of the state (three sigmoids 4 each, two tanh, new memory 3, output 1) and 4 for each "
        "sum of the gates: of both products, and with each bias. Reads both, memory and biases; writes state, memory "
        "and the gates.",
    ),
    (
        "_thnn_fused_lstm_cell_backward_impl",
        "pointwise",
        _lstm_cell_backward,
        "23 FLOPs per element of the state (output gate 1, memory 6, four products, derivatives of three sigmoids 3 "
        "each and of tanh 3), 4 more for the bias gradient. Reads gradients, both memories and the gates; writes the "
        "gradients of gates, memory and bias.",
    ),
    (
        "_thnn_fused_gru_cell",
        "pointwise",
        _gru_cell,
        "14 FLOPs per element of the state (two sigmoids 4 each, candidate 3, blend 3), 2 for the sums of two gates, "
        "3 with each bias. Reads both products, state and biases; writes the state and five tensors of its size.",
    ),
    (
        "_thnn_fused_gru_cell_backward",
        "pointwise",
        _gru_cell_backward,
        "16 FLOPs per element of the state (update gate 5, old state 1, candidate 5, its hidden part 1, reset gate "
        "4), 6 more for bias gradients. Reads the gradient and what was kept; writes the gradients of both products, "
        "state and biases.",
    ),
)

MODELS: tuple[Model, ...] = tuple(Model(f"aten::{op}", family, formula, words) for op, family, formula, words in _TABLE)

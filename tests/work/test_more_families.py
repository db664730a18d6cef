"""Sampling, distances, losses of classes and sequences, norms in parts, unpooling, transforms: by hand and by torch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from schema_calls import bytes_of, call_of, dense_spec

from torchroof.tensors import DTYPES, OpCall, Unknown
from torchroof.work.algebra import Work
from torchroof.work.standard import STANDARD

aten = torch.ops.aten
LONG = "int64"


def price(op: str, *operands: object) -> Work:
    return STANDARD.models[f"aten::{op}"].formula(OpCall(f"aten::{op}", operands))  # type: ignore[arg-type]


X = dense_spec((2, 4, 9, 8))  # 576 elements
GRID = dense_spec((2, 3, 5, 2))  # 15 places a sample: 120 elements of result
G = dense_spec((2, 4, 3, 5))
S = dense_spec((2, 4, 3, 3))
C = dense_spec((4,))
LINES = dense_spec((6, 8))
P, Q = dense_spec((5, 7)), dense_spec((6, 7))  # 30 pairs of 7 coordinates
D = dense_spec((5, 6))
LOG = dense_spec((7, 2, 5))  # 7 steps, 2 sequences, 5 classes
CTC = ((7, 6), (3, 2))  # 7·(2·3 + 1) + 6·(2·2 + 1) = 79 places of the table
SCORES, CLASSES = dense_spec((8, 5)), dense_spec((8,), LONG)
ONE = dense_spec(())


HAND = [
    # four neighbours: four products and three sums; places 120·4 = 480 of the 576 elements at most
    ("grid_sampler_2d", (X, GRID, 0, 0, False), Work(7 * 120, 4 * (480 + 60), 4 * 120)),
    ("grid_sampler_2d", (X, GRID, 1, 0, False), Work(0, 4 * (120 + 60), 4 * 120)),
    ("grid_sampler_2d", (X, GRID, 2, 0, False),
     Work(31 * 120, 4 * (576 + 60), 4 * 120, None, 4 * (16 * 120 + 180))),
    ("cudnn_grid_sampler", (X, GRID), Work(7 * 120, 4 * (480 + 60), 4 * 120)),
    ("_upsample_bilinear2d_aa", (X, (9, 16), False, None, None), Work(7 * 1152, 4 * 576, 4 * 1152)),
    # to a third of the height and half the width: 6 by 4 neighbours
    ("_upsample_bilinear2d_aa", (X, (3, 4), False, None, None), Work(47 * 96, 4 * 576, 4 * 96)),
    ("_upsample_bilinear2d_aa_backward", (dense_spec((2, 4, 3, 4)), (3, 4), (2, 4, 9, 8), False, None, None),
     Work(48 * 96, 4 * 96, 4 * 576)),
    ("_cdist_forward", (P, Q, 2.0, None), Work(30 * (3 * 7 + 1), 4 * 77, 4 * 30)),
    ("_cdist_forward", (P, Q, 1.0, None), Work(30 * 2 * 7, 4 * 77, 4 * 30)),
    ("_cdist_forward", (P, Q, 2.0, 1), Work(30 * (2 * 7 + 4), 4 * 77, 4 * 30)),
    ("_cdist_backward", (D, P, Q, 2.0, D), Work(30 * (3 * 7 + 1), 4 * (30 + 77 + 30), 4 * 35)),
    ("_pdist_forward", (P, 2.0), Work(10 * (3 * 7 + 1), 4 * 35, 4 * 10)),
    ("_pdist_backward", (dense_spec((10,)), P, 2.0, dense_spec((10,))), Work(10 * (4 * 7 + 1), 4 * 55, 4 * 35)),
    # classes read: 7·min(5, 4) + 6·min(5, 3) = 46; table of 2·7·7
    ("_ctc_loss", (LOG, dense_spec((2, 3), LONG), *CTC, 0, False), Work(11 * 79, 4 * 46 + 8 * 5, 4 * (2 + 98))),
    ("_ctc_loss_backward", (dense_spec((2,)), LOG, dense_spec((2, 3), LONG), *CTC, dense_spec((2,)),
     dense_spec((2, 7, 7)), 0, False), Work(17 * 79 + 6 * 65, 4 * (2 + 70 + 2 + 98) + 8 * 5, 4 * 70)),
    ("_cudnn_ctc_loss", (LOG, dense_spec((5,), "int32"), *CTC, 0, False, False),
     Work(28 * 79 + 6 * 65, 4 * 70 + 4 * 5, 4 * (2 + 70))),
    ("multi_margin_loss", (SCORES, CLASSES, 1, 1, None, 1), Work(120, 160 + 64, 4)),
    ("multi_margin_loss", (SCORES, CLASSES, 2, 1, dense_spec((5,)), 0), Work(200, 160 + 64 + 20, 32)),
    ("multi_margin_loss_backward", (ONE, SCORES, CLASSES, 1, 1, None, 1), Work(120, 4 + 160 + 64, 160)),
    ("multilabel_margin_loss_forward", (SCORES, dense_spec((8, 5), LONG), 1), Work(None, 160 + 320, 4 + 160)),
    ("soft_margin_loss_backward", (ONE, SCORES, SCORES, 1), Work(280, 4 + 320, 160)),
    ("batch_norm_stats", (X, 1e-5), Work(4 * 576, 4 * 576, 4 * 8)),
    ("batch_norm_gather_stats_with_counts", (X, D, D, C, C, 0.1, 1e-5, dense_spec((5,))),
     Work(0, 4 * (60 + 8 + 5), 4 * 16)),
    ("batch_norm_elemt", (X, C, C, C, C, 1e-5), Work(4 * 576, 4 * (576 + 16), 4 * 576)),
    ("batch_norm_elemt", (X, None, None, C, C, 1e-5), Work(2 * 576, 4 * (576 + 8), 4 * 576)),
    ("batch_norm_backward_reduce", (X, X, C, C, C, True, True, True), Work(4 * 576, 4 * (1152 + 8), 4 * 16)),
    ("batch_norm_backward_reduce", (X, X, C, C, C, False, False, True), Work(576, 4 * 576, 4 * 4)),
    ("batch_norm_backward_elemt", (X, X, C, C, C, C, C, dense_spec((1,), "int32")),
     Work(5 * 576, 4 * (1152 + 20 + 1), 4 * 576)),
    ("_weight_norm_interface", (LINES, dense_spec((6, 1)), 0), Work(3 * 48, 4 * 54, 4 * 54)),
    ("_weight_norm_interface_backward", (LINES, LINES, dense_spec((6, 1)), dense_spec((6, 1)), 0),
     Work(5 * 48, 4 * (96 + 12), 4 * 54)),
    ("fractional_max_pool2d", (X, (2, 2), (3, 3), dense_spec((2, 4, 2))), Work(0, 4 * (576 + 16), 12 * 72)),
    ("fractional_max_pool2d_backward", (S, X, (2, 2), (3, 3), dense_spec((2, 4, 3, 3), LONG)),
     Work(72, 12 * 72, 4 * 576)),
    ("max_unpool2d", (G, dense_spec((2, 4, 3, 5), LONG), (6, 10)), Work(0, 12 * 120, 4 * 480)),
    # 6 transforms of 8 points: 5·8·3 each
    ("_fft_c2c", (dense_spec((6, 8), "complex64"), (1,), 0, True), Work(720, 8 * 48, 8 * 48)),
    ("_fft_r2c", (LINES, (1,), 0, True), Work(360, 4 * 48, 8 * 30)),
    ("_fft_c2r", (dense_spec((6, 5), "complex64"), (1,), 2, 8), Work(360, 8 * 30, 4 * 48)),
    ("rrelu_with_noise", (X, X, 0.1, 0.3, True, None), Work(576, 4 * 576, 8 * 576)),
    ("rrelu_with_noise", (X, X, 0.1, 0.3, False, None), Work(576, 4 * 576, 4 * 576)),
    ("rrelu_with_noise_backward", (X, X, X, 0.1, 0.3, True, False), Work(576, 8 * 576, 4 * 576)),
    ("_masked_softmax", (LINES, dense_spec((6, 8), "bool"), 1, None), Work(192, 4 * 48 + 48, 4 * 48)),
]  # fmt: skip


@pytest.mark.parametrize(("op", "operands", "expected"), HAND)
def test_by_hand(op, operands, expected):
    work = price(op, *operands)
    assert (work.flops, work.bytes_read, work.bytes_written) == (
        expected.flops,
        expected.bytes_read,
        expected.bytes_written,
    )
    assert expected.bytes_upper == expected.bytes_moved or work.bytes_upper == expected.bytes_upper
    assert work.bytes_upper >= work.bytes_moved


HIDDEN = dense_spec((1, 8, 32))
RECURRENT = [
    (
        "_cudnn_rnn",
        (dense_spec((10, 8, 16)), (C,), 4, C, HIDDEN, HIDDEN, 2, 32, 0, 1, False, 0.1, True, True, (), None),
    ),
    ("_cudnn_rnn", (dense_spec((6, 16)), (C,), 4, C, HIDDEN, None, 3, 32, 8, 2, False, 0.0, True, False, (3, 3), None)),
    ("miopen_rnn", (dense_spec((10, 8, 16)), (C,), 4, HIDDEN, HIDDEN, 2, 32, 1, True, 0.0, True, False, (), None)),
    ("_thnn_fused_lstm_cell_backward_impl", (LINES, LINES, LINES, LINES, dense_spec((6, 32)), True)),
    ("_thnn_fused_gru_cell", (dense_spec((6, 24)), dense_spec((6, 24)), LINES, None, None)),
    ("_thnn_fused_gru_cell_backward", (LINES, dense_spec((6, 40)), True)),
]
FAULTY = st.one_of(
    *(st.none(), st.booleans(), st.integers(-3, 9), st.floats(), st.just("mean")),
    st.lists(st.integers(-3, 9), max_size=4).map(tuple),
    st.builds(dense_spec, st.lists(st.integers(0, 5), max_size=5).map(tuple), st.sampled_from(sorted(DTYPES))),
    st.just((dense_spec((2, 2)),)),
)


@settings(max_examples=400)
@given(data=st.data())
def test_a_call_with_a_fault_gives_work_or_unknown(data):
    op, operands = data.draw(st.sampled_from([(op, operands) for op, operands, _ in HAND] + RECURRENT))
    assert isinstance(price(op, *operands), Work)
    faulty = list(operands)
    at = data.draw(st.integers(0, len(faulty) - 1))
    if data.draw(st.booleans()):
        faulty[at] = data.draw(FAULTY)
    else:
        del faulty[at:]
    try:
        work = STANDARD.models[f"aten::{op}"].formula(OpCall(f"aten::{op}", tuple(faulty), data.draw(st.booleans())))
    except Unknown:
        return
    figures = (work.flops, work.flops_full, work.bytes_read, work.bytes_written, work.bytes_upper)
    assert all(figure is None or (type(figure) is int and figure >= 0) for figure in figures), (op, faulty, work)
    assert work.bytes_upper is None or work.bytes_moved is None or work.bytes_upper >= work.bytes_moved


@pytest.mark.parametrize(
    ("mask", "flops", "read", "written"),
    [
        ((True, True), (8 + 24) * 120, 120 + 60 + 480, 576 + 60),  # 3 an axis and neighbour for the grid
        ((True, False), 8 * 120, 120 + 60, 576),
        ((False, True), 24 * 120, 120 + 60 + 480, 60),
        ((False, False), 0, 0, 0),
    ],
)
def test_gradients_of_sampling(mask, flops, read, written):
    work = price("grid_sampler_2d_backward", G, X, GRID, 0, 0, False, mask)
    assert (work.flops, work.bytes_read, work.bytes_written) == (flops, 4 * read, 4 * written)
    assert work.bytes_upper >= work.bytes_moved


def test_weights_of_a_bag():
    # 6 indices into 10 rows of 4: a dot product each
    work = price(
        "_embedding_bag_per_sample_weights_backward", dense_spec((2, 4)), dense_spec((10, 4)), dense_spec((6,), LONG),
        dense_spec((2,), LONG), dense_spec((6,), LONG), 0, -1,
    )  # fmt: skip
    assert (work.flops, work.bytes_read, work.bytes_written) == (48, 4 * (8 + 24) + 8 * 12, 4 * 6)


def results() -> list[tuple[object, tuple[object, ...]]]:
    x, grid, image = torch.randn(6, 8), torch.rand(2, 3, 5, 2), torch.randn(2, 4, 9, 8)
    log, labels = torch.randn(7, 2, 5).log_softmax(-1), torch.tensor([[1, 2, 3], [1, 2, 0]])
    return [
        (aten.grid_sampler_2d.default, (image, grid, 0, 0, False)),
        (aten.grid_sampler_2d_backward.default, (torch.randn(2, 4, 3, 5), image, grid, 0, 0, False, [True, True])),
        (aten._upsample_bicubic2d_aa.default, (image, [4, 5], False)),
        (aten._cdist_forward.default, (torch.randn(3, 5, 7), torch.randn(3, 6, 7), 2.0, None)),
        (aten._pdist_forward.default, (x,)),
        (aten._ctc_loss.default, (log, labels, [7, 6], [3, 2])),
        (aten.multi_margin_loss.default, (x, torch.zeros(6, dtype=torch.long))),
        (aten.multilabel_margin_loss_forward.default, (x, torch.zeros(6, 8, dtype=torch.long), 0)),
        (aten._weight_norm_interface.default, (x, torch.randn(6, 1))),
        (aten._weight_norm_interface_backward.default, (x, x, torch.rand(6, 1), torch.rand(6, 1), 0)),
        (aten.fractional_max_pool2d.default, (image, [2, 2], [3, 3], torch.rand(2, 4, 2))),
        (aten._fft_r2c.default, (x, [0, 1], 0, True)),
        (aten._fft_r2c.default, (x.double(), [1], 0, False)),
        (aten._fft_c2r.default, (torch.randn(6, 5, dtype=torch.complex64), [1], 0, 8)),
        (aten._fft_c2c.default, (torch.randn(6, 5, dtype=torch.complex128), [0], 0, True)),
        (aten.soft_margin_loss_backward.default, (torch.tensor(1.0), x, x, 1)),
        (aten._masked_softmax.default, (x, x > 0, 1, None)),
    ]


@pytest.mark.parametrize(("overload", "args"), results(), ids=lambda value: str(value) if callable(value) else "")
def test_writes_what_torch_returns(overload, args):
    call = call_of(overload, *args)
    assert STANDARD.price(call).work.bytes_written == bytes_of(overload(*args))


def test_work_that_depends_on_values_is_unknown_with_that_reason():
    priced = STANDARD.price(OpCall("aten::nonzero", (X,)))
    assert priced.reason == "how much aten::nonzero moves depends on values, which a trace does not record"
    assert priced.work == Work.unknown()
    lengths = dense_spec((2,), LONG)
    with pytest.raises(Unknown, match="lengths"):
        price("_ctc_loss", LOG, dense_spec((2, 3), LONG), lengths, lengths, 0, False)
    reason = STANDARD.price(OpCall("aten::multilabel_margin_loss_forward", (X, X, 1))).reason
    assert reason == "the FLOPs of aten::multilabel_margin_loss_forward cannot be told from its operands"

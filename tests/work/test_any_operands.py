"""Whatever the operands, a formula gives work or says that it is unknown; it never breaks and never goes negative."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchroof.tensors import DTYPES, OpCall, TensorSpec, Unknown
from torchroof.work.models import (
    communication,
    counting,
    data_dependent,
    distance,
    fourier,
    fused,
    losses,
    movement,
    pointwise,
    quantized,
    recurrent,
    reduction,
    sampling,
    softmax,
    sync_norm,
)

ROOMS = (
    movement,
    pointwise,
    reduction,
    softmax,
    recurrent,
    sampling,
    distance,
    losses,
    sync_norm,
    fourier,
    data_dependent,
    quantized,
    communication,
    counting,
    fused,
)
MODELS = [m for room in ROOMS for m in room.MODELS]
SPECS = st.builds(
    TensorSpec,
    st.lists(st.integers(0, 4), max_size=4).map(tuple),
    st.one_of(st.none(), st.sampled_from(list(DTYPES.values()))),
)
SCALARS = st.one_of(st.booleans(), st.integers(-3, 9), st.floats(-2, 9), st.sampled_from(["none", "mean", ""]))
OPERANDS = st.one_of(
    SPECS,
    SPECS,
    st.none(),
    SCALARS,
    st.lists(st.integers(-2, 9), max_size=5).map(tuple),
    st.lists(SPECS, max_size=3).map(tuple),
)


@pytest.mark.parametrize("part", range(8))
@settings(max_examples=60, deadline=None)
@given(data=st.data(), known=st.booleans())
def test_a_formula_gives_work_or_unknown(part: int, data: st.DataObject, known: bool) -> None:
    operands = tuple(data.draw(st.lists(OPERANDS, max_size=7)))
    for model in MODELS[part::8]:
        try:
            work = model.formula(OpCall(model.op, operands, known))
        except Unknown:
            continue
        for figure in (work.flops, work.bytes_read, work.bytes_written):
            assert figure is None or (isinstance(figure, int) and figure >= 0), (model.op, work)


def test_every_model_says_what_it_counts() -> None:
    for model in MODELS:
        assert "::" in model.op or model.op in ("triton_*", "record_param_comms"), model.op
        assert len(model.words) > 10, model.op
    assert len({m.op for m in MODELS}) == len(MODELS)

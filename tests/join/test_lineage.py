"""What a span inherits, against a walk up its parents."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from torchroof.join.lineage import NameKind, Phase, inherit
from torchroof.join.nesting import nearest
from torchroof.trace.table import NONE

WHAT = st.sampled_from(["op", "sum", "scope", "annotation"])
"""A sum of gradients is an op, too."""
SPAN = st.tuples(st.integers(0, 10**6), WHAT, st.sampled_from(NameKind))
NODES = (NameKind.AUTOGRAD_NODE, NameKind.EVALUATION, NameKind.ACCUMULATE_GRAD)
ANNOTATIONS = (NameKind.OPTIMIZER, NameKind.DATA)


def fitting(what, kind):
    """A name of the kind can be: ops are nodes or modelled, annotations optimizers or loaders, a sum no node."""
    not_allowed = {"op": ANNOTATIONS, "sum": (*ANNOTATIONS, *NODES), "scope": tuple(NameKind)}
    allowed = kind in ANNOTATIONS if what == "annotation" else kind not in not_allowed[what]
    return kind if allowed else NameKind.OTHER


def walked(parents, whats, kinds):
    rows = []
    for i, parent in enumerate(parents):
        claim, op, layer, owner, phase = rows[parent] if parent != NONE else (NONE, NONE, NONE, NONE, Phase.OUTSIDE)
        if whats[i] in ("op", "sum"):
            op = i
            if kinds[i] in NODES:
                owner = i
                phase = Phase.GRAD_ACCUMULATE if kinds[i] == NameKind.ACCUMULATE_GRAD else Phase.BACKWARD
            elif whats[i] == "sum":
                owner = i
                phase = Phase.GRAD_ACCUMULATE
            if kinds[i] == NameKind.MODELLED and claim == NONE:
                claim = i
        elif whats[i] == "scope":
            layer = owner = i
            again = phase in (Phase.BACKWARD, Phase.RECOMPUTE, Phase.GRAD_ACCUMULATE)
            phase = Phase.RECOMPUTE if again else Phase.FORWARD
        elif kinds[i] == NameKind.OPTIMIZER:
            phase = Phase.OPTIMIZER
        elif kinds[i] == NameKind.DATA:
            phase = Phase.DATA
        rows.append((claim, op, layer, owner, phase))
    return rows


@given(st.lists(SPAN, max_size=60))
def test_each_span_inherits_what_a_walk_finds(spans):
    parents = [draw % (i + 1) - 1 for i, (draw, _, _) in enumerate(spans)]
    whats = [what for _, what, _ in spans]
    kinds = [fitting(what, kind) for _, what, kind in spans]
    wanted = (("op", "sum"), ("scope",), ("sum",))
    is_op, is_scope, is_sum = (np.array([what in some for what in whats], dtype=bool) for some in wanted)
    columns = inherit(np.array(parents, dtype=np.int32), np.array(kinds, dtype=np.int8), is_op, is_scope, is_sum)
    assert list(zip(*(c.tolist() for c in columns), strict=True)) == walked(parents, whats, kinds)


def test_a_chain_of_100_000_is_walked_in_few_passes():
    parent = np.arange(-1, 99_999, dtype=np.int32)
    chosen = np.zeros(100_000, dtype=bool)
    assert nearest(parent, chosen).max() == NONE
    chosen[7] = True
    assert nearest(parent, chosen).tolist() == [NONE] * 7 + [7] * 99_993

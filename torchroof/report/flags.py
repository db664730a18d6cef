"""The layers of a report, and which of them are bottlenecks."""

from __future__ import annotations

from collections.abc import Sequence

from torchroof.join.attribute import Attribution
from torchroof.report.line import line_of
from torchroof.report.model import Layer, Row, Tensor
from torchroof.roofline.verdict import flagged, words
from torchroof.trace.metadata import TensorFact


def flag_layers(attribution: Attribution, rows: tuple[Row, ...], step_ns: int) -> tuple[Layer, ...]:
    """Every layer; flagged are those in the smallest set that holds half of all headroom, each 3 % of a step.

    What belongs to no layer takes part in the set by phase, but is no layer and so is not flagged.
    """
    by_owner: dict[tuple[str | None, str], list[Row]] = {}
    for row in rows:
        by_owner.setdefault((row.path, "" if row.path is not None else row.phase), []).append(row)
    owners = list(by_owner)
    headrooms = [sum(r.headroom_ns or 0 for r in by_owner[o]) for o in owners]
    chosen = {owners[i][0] for i in flagged(headrooms, step_ns)} - {None}
    layers = []
    for name, calls in zip(attribution.layers, attribution.layer_calls, strict=True):
        mine = by_owner.get((name.path, ""), [])
        fact = name.fact
        shapes = fact.shapes[0] if fact and fact.shapes else None
        layers.append(
            Layer(
                path=name.path,
                type=name.type,
                aliases=fact.aliases if fact else (),
                calls=calls,
                inputs=_tensors(shapes.inputs) if shapes else (),
                outputs=_tensors(shapes.outputs) if shapes else (),
                parameters=_tensors(fact.parameters) if fact else (),
                flagged=name.path in chosen,
                why=why(mine) if name.path in chosen else None,
            )
        )
    return tuple(layers)


def why(rows: Sequence[Row]) -> str:
    """The verdict in words of the op that could win back most, and which op in which phase it is.

    Rows of several layers are added up by op first. An op is named where the layer ran more than one.
    """
    groups: dict[tuple[str, str | None, str | None], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.phase, row.op, row.precision), []).append(row)
    lines = {key: line_of("", same) for key, same in groups.items()}
    (phase, op, _), worst = max(lines.items(), key=lambda item: item[1].headroom_ns or 0)
    said = words(worst.bound, worst.efficiency, host_ns=worst.host_ns, busy_ns=worst.busy_ns)
    return said if op is None or len(groups) == 1 else f"{said} in {op.removeprefix('aten::')}, {phase}"


def _tensors(facts: tuple[TensorFact, ...]) -> tuple[Tensor, ...]:
    return tuple(Tensor(f.shape, f.dtype) for f in facts)

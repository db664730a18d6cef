"""The layers of a report, and which of them are bottlenecks."""

from __future__ import annotations

from torchroof.join.attribute import Attribution
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


def why(rows: list[Row]) -> str:
    """The verdict in words of the row with the most headroom."""
    worst = max(rows, key=lambda r: r.headroom_ns or 0)
    return words(worst.bound, worst.efficiency, host_ns=worst.host_ns, busy_ns=worst.busy_ns)


def _tensors(facts: tuple[TensorFact, ...]) -> tuple[Tensor, ...]:
    return tuple(Tensor(f.shape, f.dtype) for f in facts)

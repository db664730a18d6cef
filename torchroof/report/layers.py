"""The layers of a report, as the hooks or the trace know them."""

from __future__ import annotations

from torchroof.join.attribute import Attribution
from torchroof.report.model import Layer, Tensor
from torchroof.trace.metadata import TensorFact


def list_layers(attribution: Attribution) -> tuple[Layer, ...]:
    """Every layer with its calls in the counted steps and its shapes; none is flagged yet."""
    layers = []
    for name, calls in zip(attribution.layers, attribution.layer_calls, strict=True):
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
            )
        )
    return tuple(layers)


def _tensors(facts: tuple[TensorFact, ...]) -> tuple[Tensor, ...]:
    return tuple(Tensor(f.shape, f.dtype) for f in facts)

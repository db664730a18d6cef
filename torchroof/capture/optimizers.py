"""Which optimizer each step was, and which parameters it steps: so that its time can be shared out to layers."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from torchroof.trace.metadata import OptimizerFact


class _Stepped:
    """An optimizer with the parameters that had a gradient: by id, shape and bytes."""

    def __init__(self, optimizer: Optimizer, parameters: list[nn.Parameter]) -> None:
        self.reference = weakref.ref(optimizer)
        self.type = type(optimizer).__name__
        self.ids = [id(p) for p in parameters]
        self.shapes = [tuple(p.shape) for p in parameters]
        self.bytes = [p.numel() * p.element_size() for p in parameters]


class OptimizerSteps:
    """A hook on every optimizer of the process, while it is installed. It runs inside torch's own range."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._known: list[_Stepped] = []
        self.steps: list[int] = []
        """For each step, which optimizer it was."""

    def install(self) -> None:
        self._handle = register_optimizer_step_pre_hook(self._before_step)

    def remove(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def facts(self, owners: Mapping[int, int]) -> tuple[OptimizerFact, ...]:
        """What the steps were of; ``owners`` is the layer of each parameter by its id."""
        return tuple(OptimizerFact(k.type, [owners.get(i, -1) for i in k.ids], k.shapes, k.bytes) for k in self._known)

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        try:
            self.steps.append(self._find(optimizer))
        except Exception:
            # A fault here must not cost the user a step; the time then stays with the optimizer as a whole.
            self.steps.append(-1)

    def _find(self, optimizer: Optimizer) -> int:
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        for index, known in enumerate(self._known):
            if known.reference() is optimizer and len(known.ids) == len(parameters):
                return index
        self._known.append(_Stepped(optimizer, parameters))
        return len(self._known) - 1

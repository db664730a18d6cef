"""The registry: one formula per op gives its FLOPs and its bytes.

`STANDARD` is a value without hidden state; `extended` makes another one. The tables of ops live in
`torchroof.work.models`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from torchroof.errors import RegistrationError
from torchroof.tensors import OpCall, Role, Unknown
from torchroof.work.algebra import Work

Formula = Callable[[OpCall], Work]


class OnComplex(Enum):
    """What a formula's FLOPs say of complex numbers, of which an operation is several of real ones."""

    UNKNOWN = "unknown, but for ops without arithmetic"
    COUNTED = "counted"
    HIDDEN = "unknown, though the same op of real numbers does no arithmetic"


@dataclass(frozen=True, slots=True)
class Model:
    """A formula and what a reader needs to check it.

    ``family`` names the kind of op (``matmul``, ``convolution``, ``attention``, ``norm``, ``pointwise``, …).
    ``words`` is the formula in words, ``source`` where it comes from or how it was derived.
    """

    op: str
    """The op's full name, or a prefix and ``*``."""
    family: str
    formula: Formula
    words: str
    source: str = "derived from the op's definition"
    precise: tuple[int, ...] = ()
    """Operands whose element types are what it computes in; none means all of them."""
    on_complex: OnComplex = OnComplex.UNKNOWN


def work_model(
    op: str, *, family: str, words: str, source: str = "registered by its user", precise: Sequence[int] = ()
) -> Callable[[Formula], Model]:
    """Makes a formula the `Model` of an op: a decorator for a function from `OpCall` to `Work`.

    ``op`` is the full name as traces have it (``mylib::fused_mlp``), or a prefix and ``*``. ``family`` decides on
    which pipe it is judged: ``matmul``, ``convolution``, ``attention`` and ``recurrent`` on matrix units, any other
    name on vector units. ``words`` says how FLOPs and bytes are counted, and ``precise`` which operands' element
    types it computes in (none: all of them). The formula raises `Unknown` where an operand that it needs is not
    recorded. Raises RegistrationError for a name or words that are empty.
    """
    for text, what in ((op, "the op's name"), (family, "the family"), (words, "the formula in words")):
        if not text.strip():
            raise RegistrationError(f"{what} is empty")

    def named(formula: Formula) -> Model:
        return Model(op, family, formula, words, source, tuple(precise))

    return named


_PACKING = ("aten::mkldnn_", "mkldnn::", "mkl::")
"""Ops of libraries that lay their operands out their own way: dense, and of the shape that is recorded."""

MATRIX_FAMILIES = frozenset({"matmul", "convolution", "attention", "recurrent"})
"""Families whose arithmetic runs on matrix pipes where a device has them, and which MFU counts."""


@dataclass(frozen=True, slots=True)
class Priced:
    """The work of one call. ``reason`` says why something in it is unknown, else None."""

    work: Work
    family: str | None
    reason: str | None = None


@dataclass(frozen=True)
class Registry:
    """Work models by the op's full name, and the names that only pass work on or do none.

    A model of the name ``prefix*`` is for every op of that prefix that is listed nowhere.
    """

    models: Mapping[str, Model] = field(default_factory=dict)
    falls_through: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset()

    def role(self, op: str) -> Role:
        """What an op is to the accounting."""
        if op in self.falls_through:
            return Role.FALLS_THROUGH
        if op in self.free:
            return Role.FREE
        return Role.UNMODELLED if self.model(op) is None else Role.MODELLED

    def model(self, op: str) -> Model | None:
        """The model of an op; None where it has none."""
        return self.models.get(op) or next((m for prefix, m in self._prefixes if op.startswith(prefix)), None)

    @cached_property
    def _prefixes(self) -> tuple[tuple[str, Model], ...]:
        """Models of whole groups of names, the longest prefix first."""
        groups = ((name[:-1], model) for name, model in self.models.items() if name.endswith("*"))
        return tuple(sorted(groups, key=lambda pair: -len(pair[0])))

    def family(self, op: str) -> str | None:
        model = self.model(op)
        return model.family if model else None

    def precision(self, call: OpCall) -> str | None:
        """The precision that a call computes in, by the operands that decide it."""
        model = self.model(call.name)
        return precision_of(call, model.precise if model else ())

    def price(self, call: OpCall) -> Priced:
        """The work of one call; unknown, with the reason, where the formula lacks an operand."""
        model = self.model(call.name)
        if model is None:
            return Priced(Work.unknown(), None, f"no work model for {call.name}")
        strided = all(tensor.strided for tensor in call.tensors())
        layout = f"a tensor of {call.name} has a sparse or packed layout"
        if not strided and not call.name.startswith(_PACKING):
            return Priced(Work.unknown(), model.family, layout)
        try:
            work = model.formula(call)
        except Unknown as why:
            return Priced(Work.unknown(), model.family, str(why))
        except Exception as why:  # a formula from outside must not take the report with it
            return Priced(
                Work.unknown(), model.family, f"the formula of {call.name} failed: {type(why).__name__}: {why}"
            )
        reason = None
        if work.flops is not None and not _counts(model, call, work.flops):
            work = replace(work, flops=None, flops_full=None)
            reason = f"{call.name} computes with complex numbers, whose FLOPs are counted in products only"
        if work.bytes_moved is None:
            reason = f"element type of a tensor of {call.name} is not recorded" if strided else layout
        elif work.flops is None and reason is None:
            reason = f"the FLOPs of {call.name} cannot be told from its operands"
        return Priced(work, model.family, reason)

    def extended(
        self, models: Iterable[Model] = (), *, falls_through: Iterable[str] = (), free: Iterable[str] = ()
    ) -> Registry:
        """A registry with more in it. Raises RegistrationError for a name that is already there."""
        merged = dict(self.models)
        through, nothing = set(self.falls_through), set(self.free)
        for model in formulas(models):
            if model.op in merged or model.op in through or model.op in nothing:
                raise RegistrationError(f"{model.op} is registered already; a second model would hide the first")
            merged[model.op] = model
        for names, target in ((falls_through, through), (free, nothing)):
            for name in names:
                if name in merged or name in through or name in nothing:
                    raise RegistrationError(f"{name} is registered already")
                target.add(name)
        return Registry(merged, frozenset(through), frozenset(nothing))


def formulas(given: object) -> tuple[Model, ...]:
    """What a user gave as formulas. Raises RegistrationError for what is none."""
    found = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    for model in found:
        if not isinstance(model, Model):
            raise RegistrationError(f"models are formulas that torchroof.work.work_model makes, and {model!r} is none")
    return found


def _counts(model: Model, call: OpCall, flops: int) -> bool:
    """Whether a formula's FLOPs hold for the call: those of most are of real numbers."""
    if model.on_complex is OnComplex.COUNTED or not (flops or model.on_complex is OnComplex.HIDDEN):
        return True
    return not any(tensor.dtype is not None and tensor.dtype.kind == "complex" for tensor in call.tensors())


_RANK = ("float64", "float32", "bfloat16", "float16")


def precision_of(call: OpCall, at: Sequence[int] = ()) -> str | None:
    """The precision that a call computes in, by its operands (or those at some places): torch's name of a type.

    The widest floating type among the tensors with dimensions (all tensors where none has any); without a
    floating type, that of the first tensor. None where no element type is known.
    """
    chosen = call.tensors() if not at else (t for i in at if (t := call.optional_tensor(i)) is not None)
    tensors = [t for t in chosen if t.dtype is not None and t.dtype.kind != "opaque"]
    types = [t.dtype.name for t in tensors if t.shape and t.dtype] or [t.dtype.name for t in tensors if t.dtype]
    for name in _RANK:
        if name in types:
            return name
    floating = [t.dtype.name for t in tensors if t.dtype and t.dtype.kind in ("float", "complex")]
    found = floating or types
    return found[0] if found else None

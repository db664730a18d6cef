"""Random module trees in which the sizes of every matrix tell whose it is.

Every edge of a tree has a width that no other edge has, so the two widths of a product name its layer, the shape of
a gradient names the owner of its parameter, and the width of an activation names the activation. Nothing here knows
torchroof: owners are read off the finished tree.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

BATCH = 2
"""Rows of every activation; no width is as small as this."""


class Product(torch.autograd.Function):
    """A product with a backward pass of its own: autograd records no op for it."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x.mm(weight.t())

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight = ctx.needs_input_grad
        return gradient.mm(weight) if needs_x else None, gradient.t().mm(x) if needs_weight else None


class Layer(nn.Module):
    """A layer with a matrix: ``sizes`` are its widths in and out, ``product`` says how it multiplies."""

    def __init__(self, product: str, sizes: tuple[int, int], act: str | None, part: int | None = None) -> None:
        super().__init__()
        self.product, self.sizes, self.act, self.part = product, sizes, act, part
        narrow, wide = sizes
        scale = narrow**-0.5
        shape = {"matmul": (narrow, wide), "convolution": (wide, narrow, 1)}.get(product, (wide, narrow))
        self.weight = nn.Parameter(torch.randn(shape) * scale)
        if product in ("biased", "convolution"):
            self.bias = nn.Parameter(torch.randn(wide) * scale)
        self.inplace = act == "relu_"

    def forward(self, x: Tensor) -> Tensor:
        if self.product == "biased":
            y = nn.functional.linear(x, self.weight, self.bias)
        elif self.product == "plain":
            y = nn.functional.linear(x, self.weight)
        elif self.product == "matmul":
            y = x @ self.weight
        elif self.product == "custom":
            y = Product.apply(x, self.weight)
        else:
            y = nn.functional.conv1d(x.unsqueeze(2), self.weight, self.bias).squeeze(2)
        if self.part is not None:
            # In place on a view: the node that autograd puts over the whole has no op of its own.
            y[:, : self.part].tanh_()
        return y if self.act is None else getattr(torch, self.act)(y)


PRODUCTS = ("biased", "plain", "matmul", "custom", "convolution")
ACTIVATIONS = ("relu", "relu_", "tanh", "sigmoid", None, None)
MODULES = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "relu_": lambda: nn.ReLU(inplace=True)}


class Activated(nn.Sequential):
    """A layer with its activation as a module of its own."""


class Chain(nn.Sequential):
    """One after the other; takes no part of its own."""


class Cycle(nn.Module):
    """Three layers that come back to the width they began with, called several times on their own result."""

    def __init__(self, layers: list[nn.Module], times: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*layers)
        self.alias = self.body
        self.times = times

    def forward(self, x: Tensor) -> Tensor:
        for n in range(self.times):
            x = (self.alias if n % 2 else self.body)(x)
        return x


class Residual(Cycle):
    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class Scaled(nn.Module):
    """Functional maths of a parent's own, with a parameter of a shape that no layer has."""

    def __init__(self, child: nn.Module, width: int) -> None:
        super().__init__()
        self.child = child
        self.scale = nn.Parameter(torch.ones(1, width))

    def forward(self, x: Tensor) -> Tensor:
        return self.child(x) * self.scale


class Tupled(nn.Module):
    """Hands its result on in a tuple, a dict or a list, with other things in it."""

    def __init__(self, child: nn.Module, kind: str) -> None:
        super().__init__()
        self.child, self.kind = child, kind

    def forward(self, x: Tensor) -> Any:
        y = self.child(x)
        return {"tuple": (None, y), "dict": {"y": y, "loss": None}, "list": [3, [y]]}[self.kind]


class Unpacks(nn.Module):
    def __init__(self, child: Tupled) -> None:
        super().__init__()
        self.child = child

    def forward(self, x: Tensor) -> Tensor:
        y = self.child(x)
        return y["y"] if isinstance(y, dict) else y[1] if isinstance(y, tuple) else y[1][0]


class Fork(nn.Module):
    def __init__(self, left: nn.Module, right: nn.Module) -> None:
        super().__init__()
        self.left, self.right = left, right

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((self.left(x), self.right(x)), 1)


class Checkpointed(nn.Module):
    def __init__(self, child: nn.Module, reentrant: bool) -> None:
        super().__init__()
        self.child, self.reentrant = child, reentrant

    def forward(self, x: Tensor) -> Tensor:
        x = x if x.requires_grad else x.detach().requires_grad_()
        return checkpoint(self.child, x, use_reentrant=self.reentrant)


class Direct(nn.Module):
    """Calls its child's ``forward`` directly: the child is no layer, the work is the parent's."""

    def __init__(self, child: nn.Module) -> None:
        super().__init__()
        self.child = child

    def forward(self, x: Tensor) -> Tensor:
        return self.child.forward(x)


class Hides(nn.Module):
    """Holds its child in a plain list, so that it is in no walk over the model."""

    def __init__(self, child: nn.Module) -> None:
        super().__init__()
        self.hidden = [child]

    def forward(self, x: Tensor) -> Tensor:
        return self.hidden[0](x)


class Borrows(nn.Module):
    """Uses its child's parameter for maths of its own, before the child does: its node completes the gradient."""

    def __init__(self, child: Layer) -> None:
        super().__init__()
        self.child = child

    def forward(self, x: Tensor) -> Tensor:
        return self.child(x * self.child.weight.mean().to(x.dtype))


class Aside(nn.Module):
    """Asks its child without gradients and adds nothing of it."""

    def __init__(self, child: nn.Module) -> None:
        super().__init__()
        self.child = child

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            aside = self.child(x).mean()
        return x + 0 * aside.to(x.dtype)


@dataclass(frozen=True)
class Traits:
    """What a tree may hold."""

    reentrant: bool = False
    """Which checkpointing it uses."""
    twice: bool = False
    """It will be differentiated twice: what reentrant checkpointing cannot, and where shapes say less."""


@dataclass
class Builder:
    """Grows a tree. ``free`` are the widths not used yet."""

    random: random.Random
    free: list[int]
    traits: Traits
    hidden: int = 0
    scaled: set[int] = field(default_factory=set)

    def tree(self, width: int, depth: int, inside: bool = False) -> tuple[nn.Module, int]:
        """A tree that takes ``width``, and the width that it gives. ``inside`` a checkpoint."""
        if depth == 0:
            return self.leaf(width, inside)
        kinds: list[Callable[[int, int, bool], tuple[nn.Module, int]]] = [
            self.chain,
            self.chain,
            self.unpacks,
            self.fork,
        ]
        kinds += [self.checkpointed, self.checkpointed, self.direct, self.hides, self.aside, self.scales]
        kinds += [self.borrows]
        if not (inside and self.traits.twice):
            kinds += [self.cycle, self.cycle]
        return self.random.choice(kinds)(width, depth, inside)

    def leaf(
        self, width: int, inside: bool, out: int | None = None, products: tuple[str, ...] = PRODUCTS
    ) -> tuple[nn.Module, int]:
        if inside and self.traits.twice:
            products = ("biased",)
        wide = out or self.free.pop()
        act = None if out else self.random.choice(ACTIVATIONS)
        layer = Layer(self.random.choice(products), (width, wide), None if self.random.random() < 0.5 else act)
        if act is None and not self.traits.twice:
            layer.part = self.narrower(wide)
        module: nn.Module = layer
        if act and layer.act is None:
            module = Activated(layer, MODULES[act]())
            module.act_width = wide
        if self.random.random() < 0.2:
            for parameter in layer.parameters():
                parameter.requires_grad_(False)
        return module, wide

    def narrower(self, width: int) -> int | None:
        """A width of its own that is under another one."""
        under = [w for w in self.free if w < width]
        if under:
            self.free.remove(under[0])
        return under[0] if under else None

    def chain(self, width: int, depth: int, inside: bool) -> tuple[nn.Module, int]:
        children = []
        for _ in range(self.random.randint(2, 3)):
            child, width = self.tree(width, depth - 1, inside)
            children.append(child)
        return Chain(*children), width

    def unpacks(self, width: int, depth: int, inside: bool) -> tuple[nn.Module, int]:
        child, width = self.tree(width, depth - 1, inside)
        return Unpacks(Tupled(child, self.random.choice(("tuple", "dict", "list")))), width

    def fork(self, width: int, depth: int, inside: bool) -> tuple[nn.Module, int]:
        left, one = self.tree(width, depth - 1, inside)
        right, two = self.tree(width, depth - 1, inside)
        if one + two in self.free:
            self.free.remove(one + two)
            return Fork(left, right), one + two
        return self.chain(width, depth, inside)

    def checkpointed(self, width: int, depth: int, inside: bool) -> tuple[nn.Module, int]:
        child, width = self.tree(width, depth - 1, True)
        return Checkpointed(child, self.traits.reentrant), width

    def direct(self, width: int, depth: int, inside: bool) -> tuple[nn.Module, int]:
        child, width = self.leaf(width, inside)
        return Direct(child), width

    def hides(self, width: int, depth: int, inside: bool) -> tuple[nn.Module, int]:
        self.hidden += 1
        wide = self.free.pop()
        kind = type(f"Hidden{self.hidden}", (Layer,), {})
        return Hides(kind("biased", (width, wide), "tanh")), wide

    def borrows(self, width: int, depth: int, inside: bool) -> tuple[nn.Module, int]:
        wide = self.free.pop()
        return Borrows(Layer("biased", (width, wide), "tanh")), wide

    def aside(self, width: int, depth: int, inside: bool) -> tuple[nn.Module, int]:
        child, _ = self.leaf(width, inside)
        return Aside(child), width

    def scales(self, width: int, depth: int, inside: bool) -> tuple[nn.Module, int]:
        child, width = self.tree(width, depth - 1, inside)
        if width in self.scaled:
            return child, width
        self.scaled.add(width)
        return Scaled(child, width), width

    def cycle(self, width: int, depth: int, inside: bool) -> tuple[nn.Module, int]:
        first, one = self.leaf(width, inside)
        second, two = self.leaf(one, inside)
        last, _ = self.leaf(two, inside, out=width, products=("plain", "matmul", "custom"))
        kind = self.random.choice((Cycle, Residual))
        return kind([first, second, last], self.random.randint(2, 3)), width


@dataclass
class Owners:
    """Whose a product, a parameter or an activation is, by its sizes."""

    products: dict[frozenset[int], tuple[str, int, int]] = field(default_factory=dict)
    """The layer, and its widths in and out."""
    parameters: dict[tuple[int, ...], str] = field(default_factory=dict)
    activations: dict[int, str] = field(default_factory=dict)
    biases: dict[int, str] = field(default_factory=dict)
    """Layers whose bias gradient is a sum of this width."""
    scaled: set[int] = field(default_factory=set)
    """Widths at which a parent's own maths sums gradients, too."""

    def read(self, prefix: str, model: nn.Module) -> None:
        """Adds the owners of a finished tree. A size that two have is an error of this fuzz."""
        direct = {name + ".child": name for name, module in model.named_modules() if isinstance(module, Direct)}
        for name, module in model.named_modules():
            name = name.removeprefix(".")
            self._own(_path(prefix, direct.get(_dotted(name), name).removeprefix(".")), module, _path(prefix, name))
            if isinstance(module, Hides):
                path = _path(prefix, name, type(module.hidden[0]).__name__)
                self._own(path, module.hidden[0], path)

    def _own(self, path: str, module: nn.Module, place: str) -> None:
        """``path`` is the layer that owns the module's work, ``place`` where the module is."""
        for parameter in module.parameters(recurse=False):
            self._put(self.parameters, tuple(parameter.shape), path)
        if isinstance(module, Layer):
            narrow, wide = module.sizes
            self._put(self.products, frozenset(module.sizes), (path, narrow, wide))
            if module.act:
                self._put(self.activations, wide, path)
            if module.part is not None:
                self._put(self.activations, module.part, path)
            if module.product == "biased":
                self._put(self.biases, wide, path)
        if isinstance(module, Activated):
            self._put(self.activations, module.act_width, _path(place, "1"))
        if isinstance(module, Scaled):
            self.scaled.add(module.scale.shape[1])
        if isinstance(module, Borrows):
            self.scaled.add(module.child.sizes[0])

    @staticmethod
    def _put(where: dict[Any, Any], key: Any, value: Any) -> None:
        assert where.setdefault(key, value) == value, f"{key} is of {where[key]} and of {value}"


def _path(*names: str) -> str:
    return ".".join(filter(None, names))


def _dotted(name: str) -> str:
    """A name as the walk of `Owners.read` writes a child's: the root's children begin with a dot."""
    return name if "." in name else f".{name}"

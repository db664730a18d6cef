"""Small instances of the layers of `torch.nn`, each with inputs that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Layer(NamedTuple):
    """A layer's name in the tests, how it is made, and the inputs of its forward."""

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Any, ...]]
    training: bool = True


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


def classes(count: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, count, shape)


def signs(*shape: int) -> torch.Tensor:
    return torch.randint(0, 2, shape) * 2.0 - 1


LINE, IMAGE, VOLUME = (2, 4, 12), (2, 4, 9, 8), (2, 4, 6, 5, 4)
BY_AXES = {1: LINE, 2: IMAGE, 3: VOLUME}


def _of(shape: tuple[int, ...], *modules: Callable[[], nn.Module]) -> Iterator[Layer]:
    """Layers of one input of this shape, called by what they print."""
    for make in modules:
        yield Layer(repr(make()).partition("\n")[0], make, lambda: (leaf(*shape),))


def _convolutions() -> Iterator[Layer]:
    for axes, shape in BY_AXES.items():
        conv, back = getattr(nn, f"Conv{axes}d"), getattr(nn, f"ConvTranspose{axes}d")
        yield from _of(
            shape,
            lambda conv=conv: conv(4, 6, 3),
            lambda conv=conv: conv(4, 6, 3, groups=2, stride=2, padding=1),
            lambda conv=conv: conv(4, 8, 3, groups=4, padding=1, bias=False),
            lambda conv=conv: conv(4, 6, 2, dilation=2, padding=1),
            lambda conv=conv: conv(4, 6, 3, padding="same", padding_mode="circular"),
            lambda back=back: back(4, 6, 3),
            lambda back=back: back(4, 6, 3, groups=2, stride=2, padding=1, output_padding=1),
            lambda back=back: back(4, 8, 2, groups=4, dilation=2, bias=False),
        )
    yield from _of(LINE[1:], lambda: nn.Conv1d(4, 6, 3))
    yield from _of(
        LINE,
        lambda: nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 6, 3)),
        lambda: nn.utils.parametrizations.spectral_norm(nn.Conv1d(4, 6, 3)),
    )


def _pooling() -> Iterator[Layer]:
    for axes, shape in BY_AXES.items():
        of = {name: getattr(nn, f"{name}{axes}d") for name in ("MaxPool", "AvgPool", "LPPool")}
        adaptive = {name: getattr(nn, f"Adaptive{name}Pool{axes}d") for name in ("Avg", "Max")}
        unpool = getattr(nn, f"MaxUnpool{axes}d")
        yield from _of(
            shape,
            lambda of=of: of["MaxPool"](2),
            lambda of=of: of["MaxPool"](3, 2, padding=1, ceil_mode=True),
            lambda of=of: of["AvgPool"](2),
            lambda of=of: of["LPPool"](2, 2),
            lambda of=of: of["LPPool"](3, 2, stride=1),
            lambda of=adaptive: of["Avg"](3),
            lambda of=adaptive: of["Avg"](1),
            lambda of=adaptive: of["Max"](3),
        )

        def pooled(axes: int = axes, shape: tuple[int, ...] = shape) -> tuple[Any, ...]:
            pool = getattr(nn.functional, f"max_pool{axes}d")
            even = tuple(n - n % 2 for n in shape)
            with torch.no_grad():
                out, indices = pool(torch.randn(even), 2, return_indices=True)
            return out.requires_grad_(), indices

        yield Layer(f"MaxUnpool{axes}d(2)", lambda unpool=unpool: unpool(2), pooled)
    yield from _of(IMAGE, lambda: nn.FractionalMaxPool2d(2, output_size=3))
    yield from _of(VOLUME, lambda: nn.FractionalMaxPool3d(2, output_size=2))


def _norms() -> Iterator[Layer]:
    for axes, shape in BY_AXES.items():
        batch, instance = getattr(nn, f"BatchNorm{axes}d"), getattr(nn, f"InstanceNorm{axes}d")
        yield from _of(
            shape,
            lambda batch=batch: batch(4),
            lambda batch=batch: batch(4, affine=False, track_running_stats=False),
            lambda instance=instance: instance(4),
            lambda instance=instance: instance(4, affine=True, track_running_stats=True),
            lambda: nn.GroupNorm(2, 4),
            lambda shape=shape: nn.LayerNorm(shape[-1]),
            lambda shape=shape: nn.RMSNorm(shape[-1]),
            lambda: nn.LocalResponseNorm(2),
        )
        for make in (lambda batch=batch: batch(4), lambda i=instance: i(4, affine=True, track_running_stats=True)):
            yield Layer(f"{make()} in evaluation", make, lambda shape=shape: (leaf(*shape),), training=False)
    yield from _of(LINE, lambda: nn.LayerNorm(12, elementwise_affine=False))
    yield from _of(IMAGE, lambda: nn.CrossMapLRN2d(2))


ACTIVATIONS = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Softplus, nn.PReLU),
    *(nn.Hardswish, nn.Hardsigmoid, nn.Hardtanh, nn.Hardshrink, nn.Softshrink, nn.Tanhshrink, nn.Softsign, nn.RReLU),
    *(nn.Sigmoid, nn.LogSigmoid, nn.Tanh, nn.GLU, nn.Dropout, nn.AlphaDropout, nn.FeatureAlphaDropout, nn.Identity),
)


def _activations() -> Iterator[Layer]:
    yield from _of(LINE, *ACTIVATIONS)
    yield from _of(
        LINE,
        *(lambda f=f: f(-1) for f in (nn.Softmax, nn.LogSoftmax, nn.Softmin)),
        lambda: nn.Threshold(0.1, 0.0),
        lambda: nn.GLU(1),
        lambda: nn.GELU("tanh"),
        lambda: nn.PReLU(4),
        lambda: nn.Dropout1d(),
        lambda: nn.Flatten(),
        lambda: nn.Unflatten(1, (2, 2)),
        lambda: nn.Sequential(nn.Hardtanh(), nn.ReLU(inplace=True)),
        lambda: nn.Sequential(nn.Hardswish(), nn.ELU(inplace=True)),
    )
    yield from _of(IMAGE, lambda: nn.Softmax2d(), lambda: nn.Dropout2d(), lambda: nn.ChannelShuffle(2))
    yield from _of(VOLUME, lambda: nn.Dropout3d())
    for make in (lambda: nn.RReLU(), lambda: nn.Dropout()):
        yield Layer(f"{make()} in evaluation", make, lambda: (leaf(*LINE),), training=False)


def _shapes() -> Iterator[Layer]:
    for axes, shape in BY_AXES.items():
        pads = [getattr(nn, f"{sort}Pad{axes}d") for sort in ("Zero", "Reflection", "Replication", "Circular")]
        constant = getattr(nn, f"ConstantPad{axes}d")
        linear = {1: "linear", 2: "bilinear", 3: "trilinear"}[axes]
        yield from _of(
            shape,
            *(lambda pad=pad: pad(1) for pad in pads),
            lambda constant=constant: constant(1, 0.5),
            *(
                lambda mode=mode: nn.Upsample(scale_factor=2, mode=mode)
                for mode in ("nearest", "nearest-exact", linear)
            ),
        )
    yield from _of(
        IMAGE,
        lambda: nn.Upsample(size=(12, 5), mode="bilinear", align_corners=True),
        lambda: nn.Upsample(scale_factor=2, mode="bicubic"),
        lambda: nn.UpsamplingNearest2d(scale_factor=2),
        lambda: nn.UpsamplingBilinear2d(scale_factor=2),
        lambda: nn.PixelShuffle(2),
        lambda: nn.Unfold(3),
        lambda: Function("interpolate", size=(4, 5), mode="bilinear", antialias=True),
        lambda: Function("interpolate", size=(4, 5), mode="bicubic", antialias=True),
        lambda: Function("interpolate", size=(4, 5), mode="area"),
    )
    yield from _of((2, 4, 8, 6), lambda: nn.PixelUnshuffle(2))
    yield from _of((2, 36, 42), lambda: nn.Fold((9, 8), 3))
    grid = {2: (IMAGE, (2, 3, 4, 2)), 3: (VOLUME, (2, 3, 4, 2, 3))}
    for axes, (image, places) in grid.items():
        sampled = lambda image=image, places=places: (leaf(*image), leaf(*places))  # noqa: E731
        make = lambda: Function("grid_sample", align_corners=False)  # noqa: E731
        yield Layer(f"grid_sample in {axes} dimensions", make, sampled)
    for size in ((2, 3, 5, 4), (2, 3, 5, 4, 3)):
        axes = len(size) - 2
        make = lambda size=size: Function("affine_grid", size=size, align_corners=False)  # noqa: E731
        yield Layer(f"affine_grid in {axes} dimensions", make, lambda n=axes: (leaf(2, n, n + 1),))


class Function(nn.Module):
    """A function of `torch.nn.functional` as a layer."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__()
        self.name, self.options = name, options

    def forward(self, *inputs: Any) -> Any:
        return getattr(nn.functional, self.name)(*inputs, **self.options)

    def extra_repr(self) -> str:
        return ", ".join((self.name, *map(str, self.options.values())))


def _losses() -> Iterator[Layer]:
    x, rows = (8, 5), 8

    def loss(make: Callable[[], nn.Module], *inputs: Callable[[], Any]) -> Layer:
        return Layer(str(make()), make, lambda: tuple(each() for each in inputs))

    def scores() -> torch.Tensor:
        return torch.rand(x, requires_grad=True)

    def wanted() -> torch.Tensor:
        return torch.rand(x)

    for make in (nn.L1Loss, nn.MSELoss, nn.SmoothL1Loss, nn.HuberLoss, nn.BCELoss, nn.BCEWithLogitsLoss, nn.KLDivLoss):
        yield loss(make, scores, wanted)
    yield loss(nn.PoissonNLLLoss, scores, wanted)
    yield loss(lambda: nn.PoissonNLLLoss(full=True, log_input=False), scores, wanted)
    yield loss(nn.GaussianNLLLoss, scores, wanted, scores)
    yield loss(lambda: nn.GaussianNLLLoss(full=True), scores, wanted, scores)
    yield loss(nn.HingeEmbeddingLoss, scores, lambda: signs(*x))
    yield loss(nn.SoftMarginLoss, scores, lambda: signs(*x))
    yield loss(nn.MarginRankingLoss, scores, scores, lambda: signs(*x))
    yield loss(nn.CosineEmbeddingLoss, scores, scores, lambda: signs(rows))
    yield loss(nn.TripletMarginLoss, scores, scores, scores)
    yield loss(lambda: nn.TripletMarginLoss(swap=True), scores, scores, scores)
    yield loss(nn.TripletMarginWithDistanceLoss, scores, scores, scores)
    yield loss(nn.MultiMarginLoss, scores, lambda: classes(5, rows))
    yield loss(lambda: nn.MultiMarginLoss(p=2, weight=torch.rand(5)), scores, lambda: classes(5, rows))
    yield loss(nn.MultiLabelMarginLoss, scores, lambda: classes(5, *x))
    yield loss(nn.MultiLabelSoftMarginLoss, scores, wanted)
    yield loss(nn.NLLLoss, scores, lambda: classes(5, rows))
    yield loss(nn.CrossEntropyLoss, scores, lambda: classes(5, rows))
    yield loss(lambda: nn.CrossEntropyLoss(label_smoothing=0.1), scores, lambda: classes(5, rows))
    yield loss(nn.CrossEntropyLoss, scores, wanted)
    yield loss(nn.CrossEntropyLoss, lambda: leaf(2, 5, 3, 4), lambda: classes(5, 2, 3, 4))
    for total in ("none", "sum", "mean"):
        yield Layer(
            f"CTCLoss({total})",
            lambda total=total: nn.CTCLoss(reduction=total),
            lambda: (leaf(7, 2, 5).log_softmax(-1), classes(4, 2, 3) + 1, (7, 6), (3, 2)),
        )
    lengths = torch.tensor([7, 6]), torch.tensor([3, 2])
    yield Layer(
        "CTCLoss of tensors", nn.CTCLoss, lambda: (leaf(7, 2, 5).log_softmax(-1), classes(4, 2, 3) + 1, *lengths)
    )
    adaptive = lambda: nn.AdaptiveLogSoftmaxWithLoss(12, 20, [5, 10])  # noqa: E731
    yield Layer("AdaptiveLogSoftmaxWithLoss", adaptive, lambda: (leaf(8, 12), classes(20, 8)))
    if hasattr(nn, "LinearCrossEntropyLoss"):
        fused = lambda: nn.LinearCrossEntropyLoss(12, 20)  # noqa: E731
        yield Layer("LinearCrossEntropyLoss", fused, lambda: (leaf(8, 12), classes(20, 8)))


def _distances() -> Iterator[Layer]:
    pair = lambda: (leaf(8, 5), leaf(8, 5))  # noqa: E731
    yield Layer("PairwiseDistance", nn.PairwiseDistance, pair)
    yield Layer("CosineSimilarity", nn.CosineSimilarity, pair)
    yield from _of((8, 5), lambda: Function("normalize"), lambda: Function("pdist"))
    for p in (1.0, 2.0):
        yield Layer(f"cdist of order {p:g}", lambda p=p: Cdist(p), lambda: (leaf(2, 8, 5), leaf(2, 6, 5)))
    yield Layer("cdist of many", lambda: Cdist(2.0), lambda: (leaf(2, 30, 5), leaf(2, 6, 5)))


class Cdist(nn.Module):
    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cdist(a, b, self.p)


def _products() -> Iterator[Layer]:
    yield from _of((3, 7), lambda: nn.Linear(7, 5), lambda: nn.Linear(7, 5, bias=False))
    yield from _of((2, 3, 7), lambda: nn.Linear(7, 5))
    yield Layer("Bilinear", lambda: nn.Bilinear(7, 6, 5), lambda: (leaf(3, 7), leaf(3, 6)))
    yield Layer("Embedding", lambda: nn.Embedding(10, 4), lambda: (classes(10, 2, 3),))
    yield Layer("Embedding with padding", lambda: nn.Embedding(10, 4, padding_idx=0), lambda: (classes(10, 2, 3),))
    yield Layer("Embedding, max_norm", lambda: nn.Embedding(10, 4, max_norm=1.0), lambda: (classes(10, 2, 3),))
    for mode in ("sum", "mean", "max"):
        make = lambda mode=mode: nn.EmbeddingBag(10, 4, mode=mode)  # noqa: E731
        yield Layer(f"EmbeddingBag of {mode}s", make, lambda: (classes(10, 2, 3),))
    yield Layer(
        "EmbeddingBag with weights",
        lambda: nn.EmbeddingBag(10, 4, mode="sum"),
        lambda: (classes(10, 6), torch.tensor([0, 2]), leaf(6)),
    )


def _recurrent() -> Iterator[Layer]:
    for sort, name in ((nn.RNN, "RNN"), (nn.GRU, "GRU"), (nn.LSTM, "LSTM")):
        for training in (True, False):
            when = "" if training else " in evaluation"
            yield Layer(f"{name}{when}", lambda sort=sort: sort(7, 5), lambda: (leaf(6, 3, 7),), training)
            yield Layer(
                f"{name}, two layers both ways{when}",
                lambda sort=sort: sort(7, 5, num_layers=2, bidirectional=True, batch_first=True),
                lambda: (leaf(3, 6, 7),),
                training,
            )
            yield Layer(
                f"{name} of packed sequences{when}",
                lambda sort=sort: sort(7, 5),
                lambda: (pack_padded_sequence(leaf(6, 3, 7), torch.tensor([6, 4, 1])),),
                training,
            )
        yield Layer(f"packing around {name}", lambda sort=sort: Packing(sort(7, 5)), lambda: (leaf(6, 3, 7),))
        cell = getattr(nn, f"{name}Cell")
        yield Layer(f"{name}Cell", lambda cell=cell: cell(7, 5), lambda: (leaf(3, 7),))
    yield Layer("RNN, relu", lambda: nn.RNN(7, 5, nonlinearity="relu", bias=False), lambda: (leaf(6, 3, 7),))
    yield Layer("LSTM, projected", lambda: nn.LSTM(7, 5, proj_size=2), lambda: (leaf(6, 3, 7),))


class Packing(nn.Module):
    """Packs padded sequences, runs a layer on them, and pads them again."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(x, torch.tensor([4, 6, 1]), enforce_sorted=False)
        return pad_packed_sequence(self.inner(packed)[0])[0]


def _attention() -> Iterator[Layer]:
    one = lambda: (leaf(2, 5, 8),)  # noqa: E731
    three = lambda: (leaf(2, 5, 8), leaf(2, 6, 8), leaf(2, 6, 8))  # noqa: E731
    self3 = lambda: (leaf(2, 5, 8),) * 3  # noqa: E731
    attention = lambda: nn.MultiheadAttention(8, 2, batch_first=True)  # noqa: E731
    plain = lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)  # noqa: E731
    decoder = lambda: nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)  # noqa: E731
    for training in (True, False):
        when = "" if training else " in evaluation"
        yield Layer(f"MultiheadAttention{when}", attention, self3, training)
        yield Layer(f"MultiheadAttention across{when}", attention, three, training)
        yield Layer(f"MultiheadAttention without weights{when}", lambda: Weightless(), self3, training)
        yield Layer(f"TransformerEncoderLayer{when}", plain, one, training)
        yield Layer(f"TransformerDecoderLayer{when}", decoder, lambda: (leaf(2, 5, 8), leaf(2, 6, 8)), training)
    yield Layer(
        "Transformer",
        lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True),
        lambda: (leaf(2, 5, 8), leaf(2, 6, 8)),
    )


class Weightless(nn.MultiheadAttention):
    """Attention that does not return its weights, as transformers use it."""

    def __init__(self) -> None:
        super().__init__(8, 2, batch_first=True)

    def forward(self, *inputs: Any, **options: Any) -> Any:
        return super().forward(*inputs, **{**options, "need_weights": False})


LAYERS: dict[str, Layer] = {}
for _layer in (
    *_products(),
    *_convolutions(),
    *_pooling(),
    *_norms(),
    *_activations(),
    *_shapes(),
    *_losses(),
    *_distances(),
    *_recurrent(),
    *_attention(),
):
    _name = _layer.name
    while _name in LAYERS:
        _name += "'"
    LAYERS[_name] = _layer._replace(name=_name)
"""The layers by name; one that prints like another has a prime."""


def total(value: Any) -> torch.Tensor | None:
    """The sum of all floating numbers in an output that have a gradient; None where there are none."""
    if isinstance(value, torch.Tensor):
        return value.sum() if value.requires_grad else None
    parts = [total(v) for v in value] if isinstance(value, tuple | list) else []
    found = [p for p in parts if p is not None]
    return sum(found[1:], found[0]) if found else None

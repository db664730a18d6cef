"""The lists of names against what torch really runs: who calls whom, and who does the work."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from recorded import Event, everything, recorded  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from torchroof.tensors import Role  # noqa: E402
from torchroof.work.models import data_dependent  # noqa: E402
from torchroof.work.models.names import FALLS_THROUGH, FREE  # noqa: E402
from torchroof.work.standard import STANDARD  # noqa: E402

KNOWN_UNMODELLED = {
    "aten::multinomial",
    "aten::tril_indices",
    "aten::_assert_async",
    "aten::equal",
}
"""They are rare."""


def _activations() -> None:
    x = torch.randn(8, 16, requires_grad=True)
    for module in (
        nn.ReLU(),
        nn.ReLU6(),
        nn.LeakyReLU(),
        nn.ELU(),
        nn.SELU(),
        nn.CELU(),
        nn.GELU(),
        nn.SiLU(),
        nn.Mish(),
        nn.Softplus(),
        nn.Hardswish(),
        nn.Hardsigmoid(),
        nn.LogSigmoid(),
        nn.PReLU(),
        nn.GLU(),
        nn.Threshold(0.1, 0),
        nn.Tanh(),
        nn.Sigmoid(),
        nn.Softmax(-1),
        nn.LogSoftmax(-1),
        nn.Dropout(0.5),
        nn.Dropout(0.5).eval(),
        nn.Hardtanh(),
        nn.Softshrink(),
        nn.Hardshrink(),
        nn.Tanhshrink(),
        nn.Softsign(),
    ):
        module(x).sum().backward()
    nn.Sequential(nn.Linear(16, 16), nn.ReLU(inplace=True))(x).mean().backward()


def _layers() -> None:
    image = torch.randn(2, 4, 8, 8, requires_grad=True)
    for module in (
        nn.Conv2d(4, 4, 3, padding=1),
        nn.ConvTranspose2d(4, 4, 2),
        nn.MaxPool2d(2),
        nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.AdaptiveAvgPool2d(2),
        nn.AdaptiveMaxPool2d(2),
        nn.BatchNorm2d(4),
        nn.GroupNorm(2, 4),
        nn.InstanceNorm2d(4),
        nn.LayerNorm(8),
        nn.Flatten(),
        nn.Upsample(scale_factor=2),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.PixelShuffle(2),
        nn.ZeroPad2d(1),
        nn.ReflectionPad2d(1),
        nn.ReplicationPad2d(1),
        nn.CircularPad2d(1),
        nn.Dropout2d(0.5),
        nn.Unfold(3),
        nn.RMSNorm(8),
        nn.Unflatten(1, (2, 2)),
    ):
        module(image).mean().backward()
    with torch.no_grad():
        nn.MaxPool2d(2)(image)
        nn.BatchNorm2d(4).eval()(image)
    nn.Embedding(10, 4)(torch.randint(0, 10, (2, 3))).sum().backward()
    nn.MultiheadAttention(8, 2, batch_first=True)(*[torch.randn(2, 5, 8)] * 3)[0].sum().backward()


def _losses() -> None:
    x, y = torch.rand(8, 4, requires_grad=True), torch.rand(8, 4)
    classes = torch.randint(0, 4, (8,))
    for loss in (
        nn.MSELoss(),
        nn.L1Loss(),
        nn.SmoothL1Loss(),
        nn.HuberLoss(),
        nn.BCELoss(),
        nn.BCEWithLogitsLoss(),
        nn.KLDivLoss(reduction="batchmean"),
        nn.PoissonNLLLoss(),
        nn.MSELoss(reduction="sum"),
    ):
        loss(x, y).backward()
    nn.CrossEntropyLoss(weight=torch.rand(4), label_smoothing=0.1)(x, classes).backward()
    F.cross_entropy(x, classes).backward()
    F.nll_loss(x, classes, reduction="none").sum().backward()
    F.cross_entropy(torch.randn(2, 3, 4, 4, requires_grad=True), torch.randint(0, 3, (2, 4, 4))).backward()


def _tensors() -> None:
    x, y = torch.randn(4, 6, requires_grad=True), torch.randn(4, 6)
    pieces = [
        x + y,
        x - 1,
        2 - x,
        x * y,
        x / 2,
        -x,
        x**2,
        x.square(),
        x.abs(),
        x.clamp(-1, 1),
        x.exp(),
        x.sigmoid(),
        torch.where(x > 0, x, y),
        x.masked_fill(y > 0, 0.0),
        torch.maximum(x, y),
        x.lerp(y, 0.5),
        torch.addcmul(x, y, y),
        x.expand(3, 4, 6),
        x.reshape(6, 4),
        x.t().reshape(-1),
        x.t().contiguous(),
        torch.cat([x, y]),
        torch.stack([x, y]),
        x[1],
        x[:, 1:3],
        x[y[:, 0] > 0],
        x[torch.tensor([0, 2])],
        x.gather(1, torch.zeros(4, 2, dtype=torch.long)),
        x.repeat(2, 2),
        x.roll(1, 0),
        x.flip(0),
        x.tril(),
        x.double(),
        x.half().float(),
        x.sum(0),
        x.mean(),
        x.mean(1, True),
        x.var(),
        x.std(1),
        x.norm(),
        x.max(),
        x.max(1).values,
        x.amax(0),
        x.cumsum(0),
        x.logsumexp(1),
        x.topk(2).values,
        x.sort().values,
        x.prod(),
        x.unsqueeze(0).squeeze(0),
        x.chunk(2)[0],
        x.split(3, 1)[1],
        x.narrow(0, 0, 2),
        x.diagonal(),
        x.unfold(1, 2, 1),
        x @ y.t(),
        torch.einsum("ij,kj->ik", x, y),
        x.index_select(0, torch.tensor([1])),
        F.pad(x, (1, 1)),
        x.scatter_add(0, torch.zeros(1, 6, dtype=torch.long), y),
        x.index_add(0, torch.tensor([0]), y[:1]),
        x.tile(2),
        x.permute(1, 0),
        x.movedim(0, 1),
        x.view(-1),
        torch.hstack([x, y]),
        x.type_as(y),
        x.ravel(),
        x.float_power(2).float(),
        x.masked_select(y > 0),
        x.sum_to_size(1, 6),
        x.hypot(y),
    ]
    torch.stack([p.sum() for p in pieces]).sum().backward()


def _plain() -> None:
    x = torch.rand(4, 6)
    torch.zeros(3), torch.ones_like(x), torch.full((2,), 3.0), torch.arange(5), torch.linspace(0, 1, 5), torch.eye(3)
    torch.randn(3), torch.rand_like(x), torch.randint(0, 5, (3,)), torch.randperm(5), x.bernoulli(), x.new_zeros(2)
    x.clone().add_(1).mul_(2).sub_(x).div_(2).relu_().clamp_(0, 1).zero_().fill_(2).normal_().uniform_()
    x[0, 0].item(), bool((x > 0).all()), x.argmax(1), x.any(), (x == 1).logical_not(), x.isnan().any()
    x.count_nonzero(), torch.std_mean(x), torch.isclose(x, x), torch.allclose(x, x), x.nonzero(), torch.equal(x, x)
    x.to(torch.float32), x.to(torch.int64), torch.tensor([1.0, 2.0])
    F.one_hot(torch.tensor([0, 1]), 3), torch.outer(x[0], x[0]), x.copy_(x.clone()), x.floor(), x.nan_to_num()
    x[0] = 0.0
    x[torch.tensor([0])] = 1.0
    x.is_floating_point(), torch.result_type(x, 1), x.detach_(), x.msort(), x.argsort(), torch.meshgrid(x[0], x[1])


RUNS: dict[str, Callable[[], None]] = {
    "activations": _activations,
    "layers": _layers,
    "losses": _losses,
    "tensors": _tensors,
    "plain": _plain,
}


@pytest.fixture(scope="module", params=list(RUNS))
def roots(request: pytest.FixtureRequest) -> list[Event]:
    torch.manual_seed(0)
    with warnings.catch_warnings(action="ignore"):  # torch's own, of no interest here
        return recorded(RUNS[request.param])


def _is_op(event: Event) -> bool:
    return event.name.startswith("aten::")


def test_every_op_has_a_role(roots: list[Event]) -> None:
    unclaimed = {e.name for e in _unclaimed(roots) if _is_op(e) and STANDARD.role(e.name) is Role.UNMODELLED}
    assert unclaimed <= KNOWN_UNMODELLED


def _unclaimed(roots: list[Event]) -> list[Event]:
    """Events outside every modelled op: what is inside one is claimed by it."""
    found: list[Event] = []
    waiting = list(roots)
    while waiting:
        event = waiting.pop()
        found.append(event)
        if STANDARD.role(event.name) is not Role.MODELLED:
            waiting.extend(event.children)
    return found


def test_views_and_allocations_run_no_work(roots: list[Event]) -> None:
    workers = {
        (event.name, below.name)
        for event in everything(roots)
        if event.name in FREE
        for below in event.below()
        if STANDARD.role(below.name) in (Role.MODELLED, Role.FALLS_THROUGH, Role.UNMODELLED) and _is_op(below)
    }
    assert workers == set()


MAY_DO_NOTHING = {
    "aten::to": "the tensor has that type already",
    "aten::contiguous": "the tensor is contiguous",
    "aten::type_as": "the tensor has that type already",
    "aten::dropout": "in evaluation",
    "aten::feature_dropout": "in evaluation",
    "aten::cpu": "it is there",
    "aten::flatten": "there is one dimension",
    "aten::reshape": "it has that shape",
    "aten::sum_to_size": "it has that size",
}


def test_what_falls_through_has_ops_below_that_work(roots: list[Event]) -> None:
    alone = {e.name for e in everything(roots) if e.name in FALLS_THROUGH and not e.children}
    assert alone <= set(MAY_DO_NOTHING)


def test_formulas_of_real_calls_are_known(roots: list[Event]) -> None:
    named = {model.op for model in data_dependent.MODELS}
    lists = ("aten::cat", "aten::stack", "aten::index", "aten::index_put_", "aten::_index_put_impl_")
    unknown = {}
    for event in _unclaimed(roots):
        if STANDARD.role(event.name) is Role.MODELLED and event.name not in named.union(lists):
            priced = STANDARD.price(event.call)
            if priced.reason is not None:
                unknown[event.name] = (priced.reason, event.call.operands)
    assert unknown == {}


def test_the_lists_share_no_name() -> None:
    assert frozenset() == FALLS_THROUGH & FREE
    assert not {op for op in STANDARD.models if op in FALLS_THROUGH | FREE}

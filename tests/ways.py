"""Ways to train and to run a model, each as people write it, as small as it can be.

A way is a function without arguments. It makes its models and gives back what to hand to the profiler (a module, a
dict of them, or None) and a function that does one step and returns the tensors to watch.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

Step = Callable[[], list[Tensor]]
Made = tuple[nn.Module | dict[str, nn.Module] | None, Step]
WAYS: dict[str, Callable[[], Made]] = {}

BATCH, WIDE, HIDDEN, OUT = 4, 6, 10, 3


def way(make: Callable[[], Made]) -> Callable[[], Made]:
    WAYS[make.__name__.replace("_", " ")] = make
    return make


class Net(nn.Module):
    def __init__(self, wide: int = WIDE, hidden: int = HIDDEN, out: int = OUT) -> None:
        super().__init__()
        self.first = nn.Linear(wide, hidden)
        self.last = nn.Linear(hidden, out)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.first(x)))


def batch(wide: int = WIDE) -> Tensor:
    return torch.randn(BATCH, wide)


def sgd(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    wanted = [p for p in model.parameters() if p.requires_grad]
    return torch.optim.SGD(wanted, lr=0.1, momentum=0.9, **options)


def trained(model: nn.Module, loss_of: Callable[[], Tensor], optimizer: torch.optim.Optimizer | None = None) -> Made:
    """The usual loop."""
    stepper = optimizer or sgd(model)

    def step() -> list[Tensor]:
        stepper.zero_grad()
        loss = loss_of()
        loss.backward()
        stepper.step()
        return [loss.detach()]

    return model, step


@way
def a_layer_called_twice_and_under_two_names() -> Made:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(WIDE, WIDE)
            self.again = self.first

        def forward(self, x: Tensor) -> Tensor:
            return self.again(torch.tanh(self.first(x)))

    model = Twice()
    return trained(model, lambda: model(batch()).square().mean())


@way
def tied_weights() -> Made:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(11, WIDE)
            self.head = nn.Linear(WIDE, 11, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, tokens: Tensor) -> Tensor:
            return self.head(self.embed(tokens))

    model = Tied()
    return trained(model, lambda: F.cross_entropy(model(torch.randint(11, (BATCH,))), torch.randint(11, (BATCH,))))


@way
def a_recurrent_cell() -> Made:
    cell = nn.GRUCell(WIDE, HIDDEN)

    def loss() -> Tensor:
        state = torch.zeros(BATCH, HIDDEN)
        for _ in range(3):
            state = cell(batch(), state)
        return state.square().mean()

    return trained(cell, loss)


@way
def maths_of_the_parents_own() -> Made:
    class Parent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(WIDE, HIDDEN)
            self.weight = nn.Parameter(torch.randn(HIDDEN, OUT))

        def forward(self, x: Tensor) -> Tensor:
            return F.gelu(self.inner(x)) @ self.weight

    model = Parent()
    return trained(model, lambda: model(batch()).square().mean())


@way
def forward_called_directly() -> Made:
    class Direct(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(WIDE, OUT)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner.forward(x)

    model = nn.Sequential(Direct())
    return trained(model, lambda: model(batch()).square().mean())


@way
def activations_in_place() -> Made:
    model = nn.Sequential(nn.Linear(WIDE, HIDDEN), nn.ReLU(inplace=True), nn.Linear(HIDDEN, OUT), nn.ELU(inplace=True))
    return trained(model, lambda: model(batch()).square().mean())


@way
def outputs_that_are_no_tensor() -> Made:
    class Returns(nn.Module):
        def __init__(self, kind: str) -> None:
            super().__init__()
            self.inner = nn.Linear(WIDE, WIDE)
            self.kind = kind

        def forward(self, x: Any) -> Any:
            y = self.inner(x)
            self.kept = y
            return {"tuple": (y, None), "dict": {"y": y}, "none": None}[self.kind]

    model = nn.ModuleDict({kind: Returns(kind) for kind in ("tuple", "dict", "none")})

    def loss() -> Tensor:
        x = model["dict"](model["tuple"](batch())[0])["y"]
        assert model["none"](x) is None
        return model["none"].kept.square().mean()

    return trained(model, loss)


@way
def modules_made_and_replaced_while_training() -> Made:
    model = nn.Sequential(nn.Linear(WIDE, HIDDEN), nn.Linear(HIDDEN, OUT))

    def step() -> list[Tensor]:
        model[1] = nn.Linear(HIDDEN, OUT)
        optimizer = sgd(model)
        loss = nn.Dropout(0.3)(model(batch())).square().mean()
        loss.backward()
        optimizer.step()
        return [loss.detach(), *(p.detach().clone() for p in model.parameters())]

    return model, step


@way
def hooks_of_the_users_own() -> Made:
    model = Net()
    model.first.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    model.first.register_forward_hook(lambda module, args, out: out + 1)
    model.last.register_full_backward_hook(lambda module, into, out: (into[0] * 3,))
    model.last.weight.register_hook(lambda gradient: gradient * 0.5)
    return trained(model, lambda: model(batch()).square().mean())


@way
def two_models_of_a_gan() -> Made:
    maker, judge = Net(2, 8, WIDE), Net(WIDE, 5, 1)
    for_maker, for_judge = sgd(maker), sgd(judge)

    def step() -> list[Tensor]:
        fake = maker(torch.randn(BATCH, 2))
        for_judge.zero_grad()
        judged = F.softplus(judge(fake.detach())).mean() + F.softplus(-judge(batch())).mean()
        judged.backward()
        for_judge.step()
        for_maker.zero_grad()
        fooled = F.softplus(-judge(fake)).mean()
        fooled.backward()
        for_maker.step()
        return [judged.detach(), fooled.detach()]

    return {"maker": maker, "judge": judge}, step


@way
def a_model_inside_a_plain_object() -> Made:
    class Trainer:
        def __init__(self) -> None:
            self.net = Net()
            self.optimizer = sgd(self.net)

        def step(self) -> list[Tensor]:
            loss = self.net(batch()).square().mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=False)
            return [loss.detach()]

    return None, Trainer().step


@way
def evaluation_between_steps() -> Made:
    model = nn.Sequential(nn.Linear(WIDE, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.Dropout(0.5), nn.Linear(HIDDEN, OUT))
    _, train = trained(model, lambda: model(batch()).square().mean())

    def step() -> list[Tensor]:
        seen = train()
        model.eval()
        with torch.no_grad():
            seen.append(model(batch()))
        model.train()
        return seen

    return model, step


@way
def generation_token_by_token() -> Made:
    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(13, WIDE)
            self.attend = nn.MultiheadAttention(WIDE, 2, batch_first=True)
            self.head = nn.Linear(WIDE, 13)

        def forward(self, tokens: Tensor) -> Tensor:
            x = self.embed(tokens)
            return self.head(self.attend(x, x, x, need_weights=False)[0][:, -1])

    model = Decoder().eval()

    @torch.inference_mode()
    def step() -> list[Tensor]:
        tokens = torch.randint(13, (2, 1))
        for _ in range(4):
            drawn = torch.multinomial(model(tokens).softmax(-1), 1)
            tokens = torch.cat((tokens, drawn), 1)
        return [tokens]

    return model, step


@way
def backward_twice_over_one_graph() -> Made:
    model = Net()

    def step() -> list[Tensor]:
        out = model(batch())
        out.square().mean().backward(retain_graph=True)
        out.abs().mean().backward()
        return [p.grad.clone() for p in model.parameters()]

    return model, step


@way
def a_gradient_penalty() -> Made:
    model = nn.Sequential(nn.Linear(WIDE, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1))

    def loss() -> Tensor:
        x = batch().requires_grad_()
        (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return (gradient.norm(dim=1) - 1).square().mean()

    return trained(model, loss)


class Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x.mm(weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return gradient.mm(weight.t()), x.t().mm(gradient)


@way
def a_custom_function() -> Made:
    class Custom(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(HIDDEN, OUT))

        def forward(self, x: Tensor) -> Tensor:
            return Times.apply(x, self.weight)

    model = nn.Sequential(nn.Linear(WIDE, HIDDEN), Custom())
    return trained(model, lambda: model(batch()).square().mean())


@way
def adapters_on_frozen_layers() -> Made:
    class Adapted(nn.Module):
        def __init__(self, wide: int, out: int) -> None:
            super().__init__()
            self.base = nn.Linear(wide, out).requires_grad_(False)
            self.down = nn.Linear(wide, 2, bias=False)
            self.up = nn.Linear(2, out, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.base(x) + self.up(self.down(x))

    model = nn.Sequential(Adapted(WIDE, HIDDEN), nn.ReLU(), Adapted(HIDDEN, OUT))
    return trained(model, lambda: model(batch()).square().mean())


@way
def backward_on_a_thread() -> Made:
    model = Net()
    optimizer = sgd(model)

    def step() -> list[Tensor]:
        loss = model(batch()).square().mean()
        on_threads(loss.backward)
        optimizer.step()
        optimizer.zero_grad()
        return [loss.detach()]

    return model, step


@way
def forward_on_several_threads() -> Made:
    models = {"left": Net(WIDE, 7, OUT), "right": Net(WIDE, 9, OUT)}

    def step() -> list[Tensor]:
        x, losses = batch(), {}

        def one(name: str) -> None:
            losses[name] = models[name](x).square().mean()

        on_threads(lambda: one("left"), lambda: one("right"))
        (losses["left"] + losses["right"]).backward()
        return [losses["left"].detach(), losses["right"].detach()]

    return models, step


@way
def replicas_of_data_parallel() -> Made:
    """What DataParallel does, without its devices: shallow copies of the module that share its parameters."""
    model = nn.Sequential(nn.Linear(WIDE, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, OUT))

    def replica(module: nn.Module) -> nn.Module:
        twin = module._replicate_for_data_parallel()
        for name, parameter in module._parameters.items():
            setattr(twin, name, parameter.view_as(parameter))
        for name, child in module._modules.items():
            twin._modules[name] = replica(child)
        return twin

    def loss() -> Tensor:
        outs: dict[int, Tensor] = {}
        replicas, parts = [replica(model) for _ in range(2)], batch().chunk(2)

        def one(n: int) -> None:
            outs[n] = replicas[n](parts[n])

        on_threads(lambda: one(0), lambda: one(1))
        return torch.cat([outs[0], outs[1]]).square().mean()

    return trained(model, loss)


@way
def accumulation_over_micro_steps() -> Made:
    model = Net()
    optimizer = sgd(model, foreach=False)

    def step() -> list[Tensor]:
        losses = []
        for _ in range(3):
            loss = model(batch()).square().mean() / 3
            loss.backward()
            losses.append(loss.detach())
        optimizer.step()
        optimizer.zero_grad()
        return losses

    return model, step


def checkpointed(reentrant: bool) -> Made:
    first = nn.Linear(WIDE, HIDDEN)
    block = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.Dropout(0.5), nn.Linear(HIDDEN, OUT))
    model = nn.ModuleDict({"first": first, "block": block})
    return trained(model, lambda: checkpoint(block, first(batch()), use_reentrant=reentrant).square().mean())


@way
def checkpointing() -> Made:
    return checkpointed(False)


@way
def checkpointing_reentrant() -> Made:
    return checkpointed(True)


@way
def a_plain_optimizer() -> Made:
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    return trained(model, lambda: model(batch()).square().mean(), optimizer)


@way
def a_foreach_optimizer() -> Made:
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    return trained(model, lambda: model(batch()).square().mean(), optimizer)


@way
def a_fused_optimizer() -> Made:
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    return trained(model, lambda: model(batch()).square().mean(), optimizer)


@way
def an_optimizer_with_a_closure() -> Made:
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def step() -> list[Tensor]:
        x = batch()

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss

        return [optimizer.step(closure).detach()]

    return model, step


@way
def optimizers_stepped_inside_backward() -> Made:
    model = Net()
    optimizers = {p: torch.optim.SGD([p], lr=0.1, momentum=0.9, foreach=False) for p in model.parameters()}

    def stepped(parameter: Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(stepped)

    def step() -> list[Tensor]:
        loss = model(batch()).square().mean()
        loss.backward()
        return [loss.detach()]

    return model, step


@way
def clipping_scaling_and_averaging() -> Made:
    model = Net()
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))

    def step() -> list[Tensor]:
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(batch()).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        average.update_parameters(model)
        optimizer.zero_grad(set_to_none=False)
        return [loss.detach(), norm, *(p.detach().clone() for p in average.parameters())]

    return model, step


@way
def a_data_loader() -> Made:
    model = Net()
    data = torch.utils.data.TensorDataset(torch.randn(64, WIDE))
    loader = iter(torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True))
    return trained(model, lambda: model(next(loader)[0]).square().mean())


@way
def autocast() -> Made:
    model = nn.Sequential(nn.Linear(WIDE, HIDDEN), nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, OUT))

    def loss() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(batch()).float().square().mean()

    return trained(model, loss)


@way
def a_scripted_module() -> Made:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        scripted = torch.jit.script(nn.Sequential(nn.Linear(WIDE, HIDDEN), nn.ReLU()))
    model = nn.Sequential(scripted, nn.Linear(HIDDEN, OUT))
    return trained(model, lambda: model(batch()).square().mean())


@way
def a_quantized_module() -> Made:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.ao.quantization.quantize_dynamic(Net(), {nn.Linear}, torch.qint8)

    def step() -> list[Tensor]:
        with torch.no_grad():
            return [model(batch())]

    return model, step


@way
def attention() -> Made:
    model = nn.MultiheadAttention(8, 2, dropout=0.2, batch_first=True)

    def loss() -> Tensor:
        x = torch.randn(2, 5, 8)
        return model(x, x, x)[0].square().mean()

    return trained(model, loss)


@way
def the_fast_path_of_a_transformer() -> Made:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()

    @torch.inference_mode()
    def step() -> list[Tensor]:
        return [model(torch.randn(2, 5, 8))]

    return model, step


@way
def nested_tensors() -> Made:
    model = nn.Linear(WIDE, OUT)

    def step() -> list[Tensor]:
        x = torch.nested.nested_tensor([torch.randn(2, WIDE), torch.randn(5, WIDE)], layout=torch.jagged)
        loss = model(x).values().square().mean()
        loss.backward()
        return [loss.detach()]

    return model, step


@way
def sparse_tensors() -> Made:
    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lookup = nn.Embedding(9, WIDE, sparse=True)
            self.weight = nn.Parameter(torch.randn(WIDE, OUT))

        def forward(self, adjacency: Tensor, tokens: Tensor) -> Tensor:
            return torch.sparse.mm(adjacency, self.lookup(tokens)) @ self.weight

    model = Graph()

    def step() -> list[Tensor]:
        adjacency = torch.eye(BATCH).to_sparse()
        loss = model(adjacency, torch.randint(9, (BATCH,))).square().mean()
        loss.backward()
        return [loss.detach()]

    return model, step


@way
def a_compiled_model() -> Made:
    torch._dynamo.reset()
    model = Net()
    compiled = torch.compile(model, backend="eager")
    return compiled, trained(model, lambda: compiled(batch()).square().mean())[1]


@way
def copies_of_a_model() -> Made:
    """A target network that follows: deep copies and state dicts made while hooks are installed."""
    model = Net()
    _, train = trained(model, lambda: model(batch()).square().mean())

    def step() -> list[Tensor]:
        seen = train()
        target = copy.deepcopy(model)
        target.load_state_dict(model.state_dict())
        with torch.no_grad():
            seen.append(target(batch()))
        return seen

    return model, step


def on_threads(*work: Callable[[], Any]) -> None:
    """One after the other, so that random numbers are drawn in the same order each time."""
    for one in work:
        thread = threading.Thread(target=one)
        thread.start()
        thread.join()

"""What the hooks record of layer calls: paths, phases, shapes, threads, and the match with the trace's scopes."""

from __future__ import annotations

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import torchroof
from torchroof.capture.paths import PathBook, holds_wrapped, roots_of

Reader = Callable[..., Any]


def _profile(model: Any = None, **options: Any) -> torchroof.profile:
    return torchroof.profile(model, measure=False, **options)


class Twice(nn.Module):
    """A shared layer, a nested one, and one that nobody calls."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = self.a
        self.rest = nn.ModuleDict({"c": nn.Sequential(nn.ReLU(), nn.Linear(4, 2))})
        self.idle = nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rest["c"](self.b(self.a(x)))


def test_paths_calls_and_aliases(left: Reader) -> None:
    with _profile(Twice()) as prof:
        prof_model_input = torch.ones(3, 4)
        prof._recording._settings.roots[""](prof_model_input)
    found = left(prof)
    assert found.calls == {"": 1, "a": 2, "rest.c": 1, "rest.c.0": 1, "rest.c.1": 1} == found.scopes
    assert found.layer("a").aliases == ("b",)
    assert [x.type for x in found.facts.layers] == ["Twice", "Linear", "Sequential", "ReLU", "Linear"]


def test_a_dict_of_models(left: Reader) -> None:
    one, two = nn.Sequential(nn.ReLU()), nn.Linear(2, 2)
    with _profile({"gen": one, "disc": two}) as prof:
        two(one(torch.ones(1, 2)))
    assert left(prof).calls == {"gen": 1, "gen.0": 1, "disc": 1}


def test_without_a_model_the_outermost_is_the_root(left: Reader) -> None:
    model, loss = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.MSELoss()
    with _profile() as prof:
        for _ in range(2):
            loss(model(torch.ones(1, 2)), torch.ones(1, 2))
    assert left(prof).calls == {"": 2, "0": 2, "1": 2, "MSELoss": 2}


def test_modules_made_during_training(left: Reader) -> None:
    class Makes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = [nn.Linear(2, 2), nn.Linear(2, 2)]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not hasattr(self, "late"):
                self.late = nn.Linear(2, 2)
            x = nn.Dropout(0.0)(self.late(x))
            return self.hidden[1](self.hidden[0](x))

    model = Makes()
    with _profile({"m": model}) as prof:
        for _ in range(3):
            model(torch.ones(1, 2))
    # Found in the model once it is there; one made anew at each call keeps its name; two that live apart.
    assert left(prof).calls == {"m": 3, "m.late": 3, "m.Dropout": 3, "m.Linear": 3, "m.Linear_2": 3}


def test_a_module_at_the_address_of_one_that_is_gone(left: Reader) -> None:
    with _profile(nn.Identity()) as prof:
        for _ in range(5):
            for kind in (nn.ReLU, nn.Tanh, nn.Sigmoid):
                kind()(torch.ones(2))
    assert left(prof).calls == {"ReLU": 5, "Tanh": 5, "Sigmoid": 5}


def test_forward_called_directly_belongs_to_the_parent(left: Reader) -> None:
    class Direct(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner.forward(x)

    model = Direct()
    with _profile(model) as prof:
        model(torch.ones(1, 2))
    assert left(prof).calls == {"": 1}


def test_two_trainings_in_turn(left: Reader) -> None:
    first, second = nn.Linear(2, 2), nn.Linear(3, 3)
    with _profile(first) as prof:
        first(torch.ones(1, 2))
        second(torch.ones(1, 3))
    found = left(prof)
    assert found.calls == {"": 1, "Linear": 1}
    assert found.layer("").parameters[0].shape == (2, 2)
    assert found.layer("Linear").parameters[0].shape == (3, 3)


def test_sequence_numbers_bracket_the_backward_nodes(left: Reader) -> None:
    """Linear makes one node here (addmm; its transpose another), ReLU one: the file's own numbers must lie
    inside the interval of their layer and of no sibling."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4))
    with _profile(model) as prof:
        model(torch.ones(2, 4)).sum().backward()
    found = left(prof)
    (calls,) = found.facts.calls
    spans = {
        found.facts.layers[i].path: (low, high)
        for i, low, high in zip(calls.layer, calls.before, calls.after, strict=True)
    }
    assert spans["0"][1] == spans["1"][0] and spans["1"][1] == spans["2"][0]
    assert spans[""] == (spans["0"][0], spans["2"][1])
    nodes = {
        e["args"]["Sequence number"]: e["name"]
        for e in found.events
        if e["args"].get("Fwd thread id", 0) > 0 and e["name"].startswith("autograd::engine")
    }

    def inside(path: str) -> list[str]:
        low, high = spans[path]
        return sorted(n.split(": ")[1] for s, n in nodes.items() if low <= s < high)

    assert inside("0") == inside("2") == ["AddmmBackward0", "TBackward0"]
    assert inside("1") == ["ReluBackward0"]


class Block(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.inner, x, use_reentrant=self.reentrant)


def test_recomputation_is_flagged(left: Reader) -> None:
    model = Block(True)
    with _profile(model) as prof:
        model(torch.ones(2, 4, requires_grad=True)).sum().backward()
    found = left(prof)
    assert found.paths("recompute") == ["inner", "inner.0", "inner.1", "inner.2"]
    assert found.paths("cut") == []
    assert found.calls == {"": 1, "inner": 2, "inner.0": 2, "inner.1": 2, "inner.2": 2} == found.scopes


def test_recomputation_that_stops_early_is_cut(left: Reader) -> None:
    """The last layer's recomputation ends by an exception through it and its parent; work that follows in the
    same backward must not be inside their scopes."""
    model = Block(False)
    with _profile(model) as prof:
        model(torch.ones(2, 4, requires_grad=True)).sum().backward()
        torch.ones(5).exp_()
    found = left(prof)
    assert found.paths("recompute") == ["inner", "inner.0", "inner.1", "inner.2"]
    assert found.paths("cut") == ["inner", "inner.2"]
    after = next(e for e in found.events if e["name"] == "aten::exp_")
    around = [
        e["name"]
        for e in found.events
        if e["name"].startswith("torchroof: ") and e["ts"] <= after["ts"] < e["ts"] + e["dur"]
    ]
    assert around == []


class Odd(nn.Module):
    def __init__(self, output: Any) -> None:
        super().__init__()
        self.output = output

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.output


X, Y = torch.ones(2, 3), torch.ones(4, dtype=torch.int64)
OUTPUTS = [
    (None, []),
    (X, [((2, 3), "float32")]),
    ((X, None, Y), [((2, 3), "float32"), ((4,), "int64")]),
    ({"a": X, "b": [Y, Y]}, [((2, 3), "float32"), ((4,), "int64"), ((4,), "int64")]),
    (OrderedDict(last=(X,)), [((2, 3), "float32")]),
    ("text", []),
    (object(), []),
    (3.5, []),
]


@pytest.mark.parametrize(("output", "wanted"), OUTPUTS, ids=lambda v: type(v).__name__)
def test_outputs_of_every_sort(left: Reader, output: Any, wanted: list[Any]) -> None:
    model = Odd(output)
    with _profile(model) as prof:
        assert model(Y, [X]) is output
    (shapes,) = left(prof).layer("").shapes
    assert [(t.shape, t.dtype) for t in shapes.outputs] == wanted
    assert [(t.shape, t.dtype) for t in shapes.inputs] == [((4,), "int64"), ((2, 3), "float32")]


def test_what_is_given_by_name_is_seen(left: Reader) -> None:
    model = Odd(None)
    with _profile(model) as prof:
        model(Y, mask=X)
        model(mask=Y)
        model(Y)
    shapes = left(prof).layer("").shapes
    assert [[t.shape for t in s.inputs] for s in shapes] == [[(4,), (2, 3)], [(4,)]]


def test_another_type_at_the_same_shape_is_seen(left: Reader) -> None:
    model = nn.ReLU()
    with _profile(model) as prof:
        for dtype in (torch.float32, torch.float32, torch.bfloat16, torch.float32):
            model(torch.ones(2, 3, dtype=dtype))
    shapes = left(prof).layer("").shapes
    assert [(s.inputs[0].dtype, s.outputs[0].dtype) for s in shapes] == [("float32",) * 2, ("bfloat16",) * 2]


def test_a_module_in_the_place_of_one_that_is_gone_is_another(left: Reader) -> None:
    """An id comes again as soon as its owner is gone."""
    model, x = nn.Linear(4, 4), torch.ones(1, 4)
    types = [nn.ReLU, nn.Tanh, nn.GELU] * 5
    with _profile(model) as prof:
        for kind in types:
            kind()(model(x))
    calls = left(prof).calls
    assert calls == {"": 15, "ReLU": 5, "Tanh": 5, "GELU": 5}


def test_shapes_are_stored_once_each(left: Reader) -> None:
    model = nn.Linear(4, 2, bias=False)
    with _profile(model) as prof:
        for batch in (3, 3, 5, 3):
            model(torch.ones(batch, 4))
    layer = left(prof).layer("")
    assert [s.inputs[0].shape for s in layer.shapes] == [(3, 4), (5, 4)]
    assert [s.outputs[0].shape for s in layer.shapes] == [(3, 2), (5, 2)]
    assert [(p.shape, p.dtype) for p in layer.parameters] == [((2, 4), "float32")]


def test_lazy_modules(left: Reader) -> None:
    model = nn.LazyLinear(3)
    with _profile(model) as prof:
        model(torch.ones(2, 5))
    assert [p.shape for p in left(prof).layer("").parameters] == [(3, 5), (3,)]


def test_threads_have_columns_and_events_of_their_own(left: Reader) -> None:
    model = nn.ReLU()
    ids = []
    begin = threading.Event()

    def work() -> None:
        ids.append(threading.get_native_id())
        begin.wait()
        for _ in range(3):
            model(torch.ones(2))

    other = threading.Thread(target=work)
    other.start()  # before the profiler
    with _profile(model) as prof:
        model(torch.ones(2))
        begin.set()
        other.join()
    found = left(prof)
    here = threading.get_native_id()
    assert {c.thread: len(c.layer) for c in found.facts.calls} == {here: 1, ids[0]: 3}
    assert Counter(e["tid"] for e in found.events if e["name"] == "torchroof: ") == {here: 1, ids[0]: 3}
    assert Counter(e["tid"] for e in found.events if e["name"] == "aten::relu") == {here: 1, ids[0]: 3}
    assert not any("threads" in note for note in found.facts.notes)


def test_recursion(left: Reader) -> None:
    class Down(nn.Module):
        def forward(self, n: int) -> int:
            return self(n - 1) if n else 0

    model = Down()
    with _profile(model) as prof:
        model(3)
    assert left(prof).calls == {"": 4} == left(prof).scopes


def test_transformer_layer_keeps_its_fast_path(left: Reader) -> None:
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    with torch.inference_mode(), _profile(model) as prof:
        model(torch.ones(2, 3, 8))
    assert "aten::_transformer_encoder_layer_fwd" in {e["name"] for e in left(prof).events}


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_scripted_and_traced_models(left: Reader) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    scripted, x = torch.jit.script(model), torch.ones(2, 4)

    def graph(traced: Any) -> str:
        return re.sub(r"___torch_mangle_\d+\.", "", str(traced.inlined_graph))

    plain = graph(torch.jit.trace(model, x))
    with _profile({"s": scripted, "m": model}) as prof:
        scripted(x)
        traced = torch.jit.trace(model, x, check_trace=False)
    found = left(prof)
    assert found.calls["s"] == 1 and found.calls["m.0"] == found.calls["m.1"] == 1
    assert not [note for note in found.facts.notes if "could not be recorded" in note]
    assert graph(traced) == plain  # our hooks wrote nothing into it


# Paths alone.


class DataParallel(nn.Module):
    """By name what torch's wrappers are."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module


def test_wrappers_share_the_path_of_what_they_wrap() -> None:
    inner = nn.Sequential(nn.Linear(1, 1))
    shard = nn.Module()
    shard._fsdp_wrapped_module = inner
    book = PathBook({"": DataParallel(shard)})
    assert book.paths(inner, None) == ("",)
    assert book.paths(inner[0], None) == ("0",)
    assert holds_wrapped(shard) == "_fsdp_wrapped_module" and holds_wrapped(inner) is None


def test_a_child_named_module_is_no_wrapper_s() -> None:
    class Holds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = nn.ReLU()

    model = Holds()
    assert PathBook({"": model}).paths(model.module, None) == ("module",)


def test_a_module_inside_itself_ends() -> None:
    model = nn.Sequential(nn.ReLU())
    model[0].up = model
    assert PathBook({"": model}).paths(model[0], None) == ("0",)


def test_models_of_the_wrong_kind_are_refused() -> None:
    for wrong in (3, [nn.ReLU()], {"a": 3}, {"": nn.ReLU()}, {1: nn.ReLU()}):
        with pytest.raises(torchroof.errors.OptionError, match=r"model must be a torch\.nn\.Module or a dict"):
            roots_of(wrong)


def test_names_that_would_break_the_file(left: Reader) -> None:
    model = nn.ModuleDict(
        {'say "hi"': nn.ReLU(), "c\\d": nn.ReLU(), "c_d": nn.Tanh(), "\ud800": nn.ReLU(), "a\nb": nn.ReLU()}
    )
    with _profile(model) as prof:
        for child in model.values():
            child(torch.ones(2))
    found = left(prof)
    assert found.calls == {"say _hi_": 1, "c_d": 1, "c_d_2": 1, "_": 1, "a_b": 1} == found.scopes
    assert found.layer("c_d").type == "ReLU" and found.layer("c_d_2").type == "Tanh"


def test_another_class_at_the_same_path_is_another_layer(left: Reader) -> None:
    model = nn.Sequential(nn.ReLU())
    with _profile(model) as prof:
        model(torch.ones(2, 4))
        model[0] = nn.Linear(4, 4)
        model(torch.ones(2, 4))
        model[0] = nn.Linear(4, 4)
        model(torch.ones(2, 4))
    found = left(prof)
    assert found.calls == {"": 3, "0": 1, "0_2": 2}
    assert (found.layer("0").type, found.layer("0_2").type) == ("ReLU", "Linear")


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested")
def test_shapes_that_cannot_be_told_cost_only_the_shapes(left: Reader) -> None:
    model = nn.Linear(4, 2)
    nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)])
    with _profile(model) as prof:
        model(nested)
    found = left(prof)
    assert found.calls == {"": 1} and any("the shapes of a layer call" in note for note in found.facts.notes)


def test_parameters_of_modules_that_nobody_calls_are_held_by_the_layer_above(left: Reader) -> None:
    model = nn.Sequential(nn.MultiheadAttention(4, 2, batch_first=True))
    x = torch.ones(2, 3, 4)
    with _profile(model) as prof:
        model[0](x, x, x)
    # In-projection with its bias, and the out-projection's, which attention uses without calling it.
    assert [p.shape for p in left(prof).layer("0").parameters] == [(12, 4), (12,), (4, 4), (4,)]


def test_sizes_that_are_no_numbers_are_left_out(left: Reader) -> None:
    model = nn.Linear(4, 2)
    with _profile(model) as prof:
        model(torch.nested.nested_tensor([torch.ones(1, 4), torch.ones(3, 4)], layout=torch.jagged))
    found = left(prof)
    assert found.layer("").shapes[0].inputs == () and found.calls == {"": 1}
    assert not [note for note in found.facts.notes if "could not be recorded" in note]


def test_replicas_of_data_parallel_are_the_layers_that_they_copy() -> None:
    model = nn.Sequential(nn.Linear(1, 1))
    book = PathBook({"": model})
    replica = model._replicate_for_data_parallel()
    inner = replica._modules["0"] = model[0]._replicate_for_data_parallel()
    assert book.paths(replica, None) == ("",) and book.paths(inner, None) == ("0",)
    assert book.original(inner) is model[0] and book.original(model[0]) is model[0]
    stranger = nn.Linear(1, 1)._replicate_for_data_parallel()
    assert book.original(stranger) is stranger

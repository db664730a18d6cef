"""An optimizer's kernels are shared out by the bytes of the parameters stepped, to the nanosecond."""

import laws
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_maker import TraceMaker

from torchroof.report.build import analyse
from torchroof.report.sharing import divide_whole
from torchroof.trace.reader import read

LAYERS = [{"path": "a", "type": "Linear"}, {"path": "b", "type": "Linear"}]
ADAM = {"type": "Adam", "layer": [0, 0, 1], "shape": [[6, 10], [10], [30]], "bytes": [240, 40, 120]}


def stepping(optimizers=(ADAM,), steps=(0,), name="Optimizer.step#Adam.step") -> TraceMaker:
    t = TraceMaker()
    t.metadata["torchroof"] = {
        "version": 1, "layers": LAYERS, "optimizers": list(optimizers), "optimizer_steps": list(steps),
    }  # fmt: skip
    t.step(1, 0, 10_000)
    t.scope("a", 10, 20)
    t.host("user_annotation", name, 1000, 3000)
    return t


def foreach(t: TraceMaker, shapes: list[list[int]], at: int, ns: int) -> None:
    t.op("aten::_foreach_mul_", at, at + 50, shapes=[shapes, []], types=["TensorList", "Scalar"],
         concrete=["", "0.9"], strides=[[[1] * len(s) for s in shapes], []])  # fmt: skip
    t.launch(at + 5, "void multi_tensor_apply_kernel<BinaryOpScalarFunctor<float, 1, 1, 0>>", 5000 + at, 5000 + at + ns)


def rows(t: TraceMaker, folder):
    data = analyse(read(t.save(folder)))
    laws.check(data)
    return {(r.path, r.op): r for r in data.rows if r.phase == "optimizer"}


def test_a_foreach_kernel_is_divided_by_bytes(tmp_path):
    t = stepping()
    foreach(t, [[6, 10], [10], [30]], 1100, 401)
    found = rows(t, tmp_path)
    a, b = found["a", "aten::_foreach_mul_"], found["b", "aten::_foreach_mul_"]
    # 280 and 120 of 400 bytes: 280.7 and 120.3 of 401 ns; the odd one goes to the larger remainder.
    assert (a.kernel_ns, b.kernel_ns) == (281, 120)
    assert (a.kernels, b.kernels) == (1, 0) and (a.calls, b.calls) == (1, 0)
    # One multiplication for each of 100 elements.
    assert (a.flops, b.flops) == (70, 30)
    assert a.shared == b.shared == "Adam.step"
    assert a.attribution == "parameters stepped"


def test_a_list_of_some_parameters_goes_to_their_owners_only(tmp_path):
    t = stepping()
    foreach(t, [[30]], 1100, 100)
    assert {path for path, _ in rows(t, tmp_path)} == {"b"}


def test_a_plain_op_goes_to_the_owners_of_its_shape_and_a_scalar_one_to_all(tmp_path):
    t = stepping()
    t.op("aten::mul_", 1100, 1150, shapes=[[10], []], types=["float", "Scalar"], concrete=["", "0.9"])
    t.launch(1110, "k", 6000, 6100)
    t.op("aten::add_", 1200, 1250, shapes=[[], []], types=["float", "Scalar"], concrete=["", "1"])
    t.launch(1210, "k", 7000, 7100)
    found = {key: r.kernel_ns for key, r in rows(t, tmp_path).items()}
    assert found == {("a", "aten::mul_"): 100, ("a", "aten::add_"): 70, ("b", "aten::add_"): 30}


def test_a_shape_that_several_layers_own_is_theirs_in_equal_parts(tmp_path):
    twins = {"type": "SGD", "layer": [0, 1], "shape": [[8], [8]], "bytes": [32, 32]}
    t = stepping([twins], [0], "Optimizer.step#SGD.step")
    t.op("aten::mul_", 1100, 1150, shapes=[[8], []], types=["float", "Scalar"], concrete=["", "0.9"])
    t.launch(1110, "k", 6000, 6100)
    assert [r.kernel_ns for r in rows(t, tmp_path).values()] == [50, 50]


def test_two_optimizers_are_told_apart_by_the_order_of_their_steps(tmp_path):
    only_b = {"type": "Adam", "layer": [1], "shape": [[30]], "bytes": [120]}
    t = stepping([ADAM, only_b], [1, 0])
    t.op("aten::add_", 1200, 1250, shapes=[[], []], types=["float", "Scalar"], concrete=["", "1"])
    t.launch(1210, "k", 7000, 7100)
    t.host("user_annotation", "Optimizer.step#Adam.step", 4000, 4500)
    t.op("aten::sub_", 4200, 4250, shapes=[[], []], types=["float", "Scalar"], concrete=["", "1"])
    t.launch(4210, "k", 8000, 8100)
    found = {key: r.kernel_ns for key, r in rows(t, tmp_path).items()}
    assert found == {("b", "aten::add_"): 100, ("a", "aten::sub_"): 70, ("b", "aten::sub_"): 30}


def test_steps_that_cannot_be_told_apart_stay_with_the_optimizer(tmp_path):
    t = stepping([ADAM, {**ADAM, "bytes": [1, 1, 1]}], [0, 1, 0])
    foreach(t, [[30]], 1100, 100)
    assert [(path, r.kernel_ns) for (path, _), r in rows(t, tmp_path).items()] == [(None, 100)]


def test_what_no_layer_owns_keeps_its_part(tmp_path):
    t = stepping([{"type": "Adam", "layer": [0, -1], "shape": [[10], [30]], "bytes": [40, 120]}])
    foreach(t, [[10], [30]], 1100, 100)
    assert {path: r.kernel_ns for (path, _), r in rows(t, tmp_path).items()} == {"a": 25, None: 75}


@given(st.integers(0, 2**62), st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=30))
def test_parts_add_up_to_the_whole(total, weights):
    parts = divide_whole(total, weights)
    assert sum(parts) == total and len(parts) == len(weights)
    if total < 2**50:
        exact = [total * w / sum(weights) for w in weights]
        assert all(abs(p - e) <= 1.001 for p, e in zip(parts, exact, strict=True))


@pytest.mark.parametrize("total", [1, 3, 100])
def test_the_largest_remainders_get_what_is_left(total):
    assert divide_whole(total, [1.0, 2.0]) == {1: [0, 1], 3: [1, 2], 100: [33, 67]}[total]

"""Backward work finds its layer: by flow, by sequence number, by interval, and never by nearness."""

from trace_maker import TraceMaker

from torchroof.report.build import analyse
from torchroof.trace.reader import read


def rows(maker: TraceMaker, folder):
    data = analyse(read(maker.save(folder)))
    return {(r.path, r.phase, r.op): r for r in data.rows}


def two_layers(*, flows: bool, threads: tuple[int, int] = (1, 1)) -> TraceMaker:
    """Layers a and b, whose relu ops made the nodes 5 and 6; the backward thread runs 6, then 5."""
    t = TraceMaker()
    t.step(1, 0, 5000)
    t.scope("", 0, 1000, threads[0])
    t.scope("a", 10, 200, threads[0])
    t.op("aten::relu", 20, 100, threads[0], shapes=[[10]], **{"Sequence number": 5, "Fwd thread id": 0})
    t.launch(30, "fwd_a", 1000, 1010, thread=threads[0])
    t.scope("b", 300, 500, threads[1])
    # In-place ops without a node carry the number that the next node will get: the last-started op counts.
    t.op("aten::add_", 310, 320, threads[1], shapes=[[10], [10]], **{"Sequence number": 6, "Fwd thread id": 0})
    t.op("aten::relu", 350, 450, threads[1], shapes=[[10]], **{"Sequence number": 6, "Fwd thread id": 0})
    for start, sequence in ((2000, 6), (3000, 5)):
        t.node("ReluBackward0", start, start + 500, sequence)
        t.op("aten::threshold_backward", start + 100, start + 200, 2, shapes=[[10], [10], []],
             types=["float", "float", "Scalar"], concrete=["", "", "0"])  # fmt: skip
        t.launch(start + 150, f"bwd_{sequence}", start + 300, start + 300 + sequence, thread=2)
    if flows:
        t.flow(350, 2000, threads[1])
        t.flow(20, 3000, threads[0])
    return t


def test_by_flow(tmp_path):
    found = rows(two_layers(flows=True), tmp_path)
    assert found["b", "backward", "aten::threshold_backward"].kernel_ns == 6
    assert found["a", "backward", "aten::threshold_backward"].kernel_ns == 5
    assert found["a", "backward", "aten::threshold_backward"].attribution == "fwdbwd flow"


def test_by_sequence_number_when_there_are_no_flows(tmp_path):
    found = rows(two_layers(flows=False), tmp_path)
    assert found["b", "backward", "aten::threshold_backward"].kernel_ns == 6
    assert found["a", "backward", "aten::threshold_backward"].attribution == "sequence number"


def test_without_flows_two_forward_threads_cannot_be_told_apart(tmp_path):
    found = rows(two_layers(flows=False, threads=(1, 3)), tmp_path)
    row = found[None, "backward", "aten::threshold_backward"]
    assert row.kernel_ns == 5 + 6
    assert row.attribution == "forward thread unknown"


def test_flows_teach_which_thread_a_number_means(tmp_path):
    t = two_layers(flows=False)
    t.flow(350, 2000)
    found = rows(t, tmp_path)
    assert found["a", "backward", "aten::threshold_backward"].attribution == "sequence number"
    assert found["b", "backward", "aten::threshold_backward"].attribution == "fwdbwd flow"


def test_by_the_interval_of_a_call_when_no_forward_op_has_the_number(tmp_path):
    t = TraceMaker()
    t.step(1, 0, 5000)
    t.metadata["torchroof"] = {
        "version": 1,
        "layers": [{"path": "", "type": "Net"}, {"path": "custom", "type": "Custom"}],
        "calls": [{"thread": 1, "layer": [0, 1], "before": [0, 4], "after": [9, 7]}],
    }
    t.scope("", 0, 1000)
    t.scope("custom", 10, 200)
    t.op("aten::relu", 300, 350, shapes=[[10]], **{"Sequence number": 1, "Fwd thread id": 0})
    for sequence, start in ((6, 2000), (7, 3000), (11, 4000)):
        t.node("MyFunctionBackward", start, start + 100, sequence)
        t.op("aten::mul", start + 10, start + 20, 2, shapes=[[10], [10]])
        t.launch(start + 15, "k", start + 50, start + 50 + sequence, thread=2)
    found = rows(t, tmp_path)
    # [4, 7) was made in `custom`, the rest of [0, 9) in the root, 11 in no layer call.
    assert found["custom", "backward", "aten::mul"].kernel_ns == 6
    assert found["", "backward", "aten::mul"].kernel_ns == 7
    assert found["custom", "backward", "aten::mul"].attribution == "sequence interval"
    assert found[None, "backward", "aten::mul"].kernel_ns == 11


def test_recomputed_forward_work_inside_backward_belongs_to_the_layer_recomputed(tmp_path):
    t = two_layers(flows=True)
    t.scope("a", 2250, 2300, 2)
    t.op("aten::relu", 2260, 2290, 2, shapes=[[10]])
    t.launch(2270, "again", 2700, 2733, thread=2)
    found = rows(t, tmp_path)
    assert found["a", "recompute", "aten::relu"].kernel_ns == 33
    assert found["b", "backward", "aten::threshold_backward"].kernel_ns == 6


def test_a_functional_loss_outside_layers_is_forward_because_autograd_says_so(tmp_path):
    t = two_layers(flows=True)
    t.op("aten::mse_loss", 1200, 1300, shapes=[[10], [10], []], types=["float", "float", "Scalar"],
         concrete=["", "", "1"], **{"Sequence number": 7, "Fwd thread id": 0})  # fmt: skip
    t.launch(1250, "loss", 1300, 1303)
    t.op("aten::relu", 1400, 1450, shapes=[[10]])
    t.launch(1410, "metric", 1500, 1504)
    t.node("MseLossBackward0", 1800, 1900, 7)
    t.flow(1200, 1800)
    found = rows(t, tmp_path)
    assert found[None, "forward", "aten::mse_loss"].kernel_ns == 3
    assert found[None, "outside", "aten::relu"].kernel_ns == 4


def accumulating(shape: list[int], layers: list[dict]) -> TraceMaker:
    """One layer call with number 5, its node, and right after it the node that adds to a gradient of a shape."""
    t = TraceMaker()
    t.metadata["torchroof"] = {"version": 1, "layers": layers}
    t.step(1, 0, 5000)
    t.scope("a", 10, 200)
    t.op("aten::mm", 20, 100, shapes=[[4, 8], [8, 3]], **{"Sequence number": 5, "Fwd thread id": 0})
    t.node("MmBackward0", 2000, 2500, 5)
    name = "torch::autograd::AccumulateGrad"
    t.op(f"autograd::engine::evaluate_function: {name}", 2600, 2900, 2)
    t.op(name, 2610, 2890, 2, shapes=[shape])
    t.op("aten::add_", 2650, 2800, 2, shapes=[shape, shape])
    t.launch(2700, "add", 3000, 3011, thread=2)
    return t


def layer(path: str, *shapes: list[int]) -> dict:
    return {"path": path, "type": "Linear", "parameters": [[shape, "float32"] for shape in shapes]}


def test_a_gradient_goes_to_the_layer_of_the_node_that_made_it_if_that_owns_such_a_parameter(tmp_path):
    t = accumulating([8, 3], [layer("b", [8, 3]), layer("a", [3], [8, 3])])
    row = rows(t, tmp_path)["a", "grad_accumulate", "aten::add_"]
    assert (row.kernel_ns, row.attribution) == (11, "parameter's gradient")


def test_a_gradient_of_a_shape_that_the_node_s_layer_lacks_goes_to_its_only_owner(tmp_path):
    t = accumulating([8, 3], [layer("a", [3]), layer("b", [8, 3])])
    assert rows(t, tmp_path)["b", "grad_accumulate", "aten::add_"].kernel_ns == 11


def test_a_gradient_that_two_other_layers_could_own_has_no_layer(tmp_path):
    t = accumulating([8, 3], [layer("a", [3]), layer("b", [8, 3]), layer("c", [8, 3])])
    row = rows(t, tmp_path)[None, "grad_accumulate", "aten::add_"]
    assert row.attribution == "no layer known to own the parameter"


def test_sums_of_gradients_by_the_engine_are_told_from_the_node_s_own_work(tmp_path):
    t = two_layers(flows=True)
    t.op(
        "autograd::engine::evaluate_function: ReluBackward0",
        4000,
        4400,
        2,
        **{"Sequence number": 6, "Fwd thread id": 1},
    )
    t.op("ReluBackward0", 4010, 4200, 2, **{"Sequence number": 6, "Fwd thread id": 1})
    t.op("aten::add", 4050, 4100, 2, shapes=[[10], [10]])
    t.launch(4060, "inside", 4500, 4507, thread=2)
    t.op("aten::add", 4250, 4350, 2, shapes=[[10], [10]])
    t.launch(4300, "sum", 4600, 4609, thread=2)
    found = rows(t, tmp_path)
    assert found["b", "backward", "aten::add"].kernel_ns == 7
    assert found["b", "grad_accumulate", "aten::add"].kernel_ns == 9


def test_an_op_that_made_no_node_is_not_believed(tmp_path):
    """A detach at the end of layer a carries number 5, the next one's. The node with it was made in layer b by
    something that has no op; number 9 was made outside of layers, after an op of b that carries it."""
    for flows in (True, False):
        t = TraceMaker()
        t.step(1, 0, 5000)
        t.metadata["torchroof"] = {
            "version": 1,
            "layers": [{"path": "a", "type": "A"}, {"path": "b", "type": "B"}],
            "calls": [{"thread": 1, "layer": [0, 1], "before": [3, 5], "after": [5, 9]}],
        }
        t.scope("a", 10, 100)
        t.op("aten::detach", 50, 60, shapes=[[10]], **{"Sequence number": 5, "Fwd thread id": 0})
        t.scope("b", 200, 300)
        t.op("aten::detach", 250, 260, shapes=[[10]], **{"Sequence number": 9, "Fwd thread id": 0})
        for start, sequence in ((2000, 5), (3000, 9)):
            t.node("GraphBackward", start, start + 500, sequence)
            t.op("aten::mul", start + 100, start + 200, 2, shapes=[[10], [10]])
            t.launch(start + 150, "k", start + 300, start + 300 + sequence, thread=2)
        if flows:
            t.flow(50, 2000)
            t.flow(250, 3000)
        found = rows(t, tmp_path)
        assert found["b", "backward", "aten::mul"].kernel_ns == 5
        assert found["b", "backward", "aten::mul"].attribution == "sequence interval"
        assert found[None, "backward", "aten::mul"].kernel_ns == 9
        assert found[None, "backward", "aten::mul"].attribution == "forward op not in the trace"


def test_the_gradient_of_a_gradient_is_the_layer_s_whose_gradient_it_is(tmp_path):
    t = two_layers(flows=True)
    # The backward op of a, in its node, made node 12.
    t.op("aten::mul", 3250, 3300, 2, shapes=[[10], [10]], **{"Sequence number": 12, "Fwd thread id": 0})
    t.node("MulBackward0", 4000, 4500, 12, number=2)
    t.op("aten::mul", 4100, 4200, 2, shapes=[[10], [10]])
    t.launch(4150, "second order", 4300, 4317, thread=2)
    t.flow(3250, 4000, from_thread=2)
    assert rows(t, tmp_path)["a", "backward", "aten::mul"].kernel_ns == 17


def test_a_sum_that_completes_a_parameter_s_gradient_goes_with_it(tmp_path):
    """Layer a used b's parameter: its node sums the two gradients, and AccumulateGrad follows."""
    t = accumulating([8, 3], [layer("a", [3]), layer("b", [8, 3])])
    made = {"Sequence number": 5, "Fwd thread id": 1}
    t.op("autograd::engine::evaluate_function: MmBackward0", 1000, 1400, 2, **made)
    t.op("MmBackward0", 1010, 1100, 2, **made)
    for at, shape, ns in ((1150, [8, 3], 5), (1250, [4, 8], 7)):
        t.op("aten::add", at, at + 50, 2, shapes=[shape, shape])
        t.launch(at + 10, "sum", 4000 + at, 4000 + at + ns, thread=2)
    name = "torch::autograd::AccumulateGrad"
    t.op(f"autograd::engine::evaluate_function: {name}", 1410, 1500, 2)
    t.op(name, 1420, 1490, 2, shapes=[[8, 3]])
    found = rows(t, tmp_path)
    assert found["b", "grad_accumulate", "aten::add"].kernel_ns == 5
    assert found["a", "grad_accumulate", "aten::add"].kernel_ns == 7

"""CPU runs: which ops are kernels, and a ledger that closes on a thread to the nanosecond."""

import laws
from hypothesis import given
from hypothesis import strategies as st
from trace_maker import TraceMaker

from torchroof.report.build import analyse
from torchroof.trace.reader import read


def cpu() -> TraceMaker:
    t = TraceMaker()
    t.metadata["deviceProperties"] = []
    return t


def report(maker: TraceMaker, folder):
    data = analyse(read(maker.save(folder)))
    laws.check(data)
    return data


def test_which_ops_are_kernels(tmp_path):
    t = cpu()
    t.step(1, 0, 1000)
    t.op("aten::linear", 10, 200, shapes=[[4, 8], [16, 8], [16]])  # falls through: its self time is host time
    t.op("aten::t", 15, 40, shapes=[[16, 8]])  # a view: host time
    t.op("aten::addmm", 50, 180, shapes=[[16], [4, 8], [8, 16], [], []], types=["float"] * 3 + ["Scalar"] * 2,
         concrete=["", "", "", "1", "1"])  # fmt: skip
    t.op("aten::copy_", 60, 70, shapes=[[4, 16], [4, 16], []], types=["float", "float", "Scalar"],
         concrete=["", "", "False"])  # claimed  # fmt: skip
    t.op("my::leaf", 300, 350)  # unmodelled, no children: whole
    t.op("my::outer", 400, 600)  # unmodelled with children: its self time
    t.op("aten::relu", 450, 500, shapes=[[10]])
    t.op("autograd::engine::evaluate_function: ReluBackward0", 700, 800, **{"Sequence number": 3, "Fwd thread id": 1})
    t.op("aten::threshold_backward", 720, 790, shapes=[[10], [10], []], types=["float", "float", "Scalar"],
         concrete=["", "", "0"])  # fmt: skip
    data = report(t, tmp_path)
    found = {r.op: (r.kernels, r.kernel_ns, r.bound) for r in data.rows}
    assert {op: (n, ns) for op, (n, ns, _) in found.items()} == {
        "aten::addmm": (1, 130),
        "my::leaf": (1, 50),
        "my::outer": (1, 150),
        "aten::relu": (1, 50),
        "aten::threshold_backward": (1, 70),
    }
    # On one thread kernel time and host time make up the step.
    assert data.totals.step_ns == 1000
    assert data.totals.kernel_ns == data.totals.busy_ns == 130 + 50 + 150 + 50 + 70
    assert data.totals.causes["host"] == 1000 - 450


def test_views_are_host_time_and_make_a_step_host_bound(tmp_path):
    t = cpu()
    t.step(1, 0, 10_000)
    for i in range(100):
        at = 100 * i
        t.op("aten::select", at, at + 40, shapes=[[64, 64], [], []], types=["float", "Scalar", "Scalar"],
             concrete=["", "0", "1"])  # fmt: skip
        t.op("aten::mul", at + 50, at + 60, shapes=[[], []])
    totals = report(t, tmp_path).totals
    assert totals.causes["host"] == 10_000 - 100 * 10
    assert max(totals.causes, key=lambda c: totals.causes[c]) == "host"


def test_two_busy_threads_are_streams_of_one_device(tmp_path):
    t = cpu()
    t.step(1, 0, 1000)
    t.op("aten::relu", 100, 500, shapes=[[10]])
    t.op("aten::tanh", 300, 800, 2, shapes=[[10]])
    data = report(t, tmp_path)
    assert {r.op: (r.kernel_ns, r.busy_ns) for r in data.rows} == {"aten::relu": (400, 400), "aten::tanh": (500, 300)}
    assert data.totals.busy_ns == 700 and [d.index for d in data.devices] == [0]


def test_a_run_without_a_single_op_is_all_host(tmp_path):
    t = cpu()
    t.step(1, 0, 1000)
    data = report(t, tmp_path)
    assert data.totals.kernels == 0 and data.totals.kernel_ns == 0
    assert data.totals.causes["host"] == data.totals.host_unowned_ns == 1000


names = st.sampled_from(("aten::linear", "aten::view", "aten::relu", "aten::addmm", "my::op", "torchroof: a", "note"))
tree = st.recursive(
    st.tuples(names, st.just([])), lambda kids: st.tuples(names, st.lists(kids, max_size=3)), max_leaves=12
)


def _lay(t: TraceMaker, node, at: int) -> int:
    name, children = node
    end = at + 1
    for child in children:
        end = _lay(t, child, end) + 1
    t.host("user_annotation" if name == "note" else "cpu_op", name, at, end + 2, 1)
    return end + 2


@given(st.lists(tree, max_size=5))
def test_on_one_thread_kernel_time_and_host_time_are_the_span(tmp_path_factory, forest):
    t = cpu()
    at = 5
    for node in forest:
        at = _lay(t, node, at) + 3
    t.step(1, 0, at + 10)
    data = report(t, tmp_path_factory.mktemp("t"))
    assert data.totals.kernel_ns + data.totals.causes["host"] == data.totals.step_ns == at + 10
    assert data.totals.busy_ns == data.totals.kernel_ns

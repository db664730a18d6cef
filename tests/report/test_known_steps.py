"""Hand-made GPU steps whose every nanosecond is known: busy, data, sync and host time come out exactly."""

import laws
import pytest
from trace_maker import TraceMaker

from torchroof.report.build import analyse
from torchroof.reports import Report
from torchroof.trace.reader import read
from torchroof.views.terminal import plain_text


def report(maker: TraceMaker, folder):
    return analyse(read(maker.save(folder)))


def busy_causes(totals):
    return {cause: ns for cause, ns in totals.causes.items() if ns}


def test_each_gap_goes_to_what_the_launching_thread_did(tmp_path):
    """
    host      0 step ------------------------------------------------------------ 10000
              100 next 1100      1500 op a 1600   2000 sync 6000       7000 op b 7100
    device                           2000 kernel a 5000                   7500 kernel b 9000
    gaps      0..2000: 1000 in the loader, 1000 host of a · 5000..7500: 1000 sync, 1500 host of b ·
              9000..10000 host of none
    """
    t = TraceMaker()
    t.step(1, 0, 10000)
    t.host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, 1100)
    t.op("aten::relu", 1500, 1600, shapes=[[1000]])
    t.launch(1550, "relu_kernel", 2000, 5000)
    t.host("cuda_runtime", "cudaStreamSynchronize", 2000, 6000, correlation=999)
    t.op("aten::tanh", 7000, 7100, shapes=[[1000]])
    t.launch(7050, "tanh_kernel", 7500, 9000)
    data = report(t, tmp_path)
    assert data.totals.step_ns == 10000
    assert data.totals.causes["data"] == 1000
    assert data.totals.causes["sync"] == 1000
    assert data.totals.causes["host"] == 1000 + 1500 + 1000
    assert data.totals.host_unowned_ns == 1000
    by_op = {r.op: r for r in data.rows}
    assert (by_op["aten::relu"].busy_ns, by_op["aten::relu"].host_ns) == (3000, 1000)
    assert (by_op["aten::tanh"].busy_ns, by_op["aten::tanh"].host_ns) == (1500, 1500)
    assert sum(data.totals.causes.values()) == 10000


def test_the_window_begins_after_earlier_work_and_ends_with_the_last_counted_kernel(tmp_path):
    """
    host    0..1000 warm-up (its kernel runs 900..1500)   1000 step 2 -- 2000
    device  counted kernel 1600..2600: the window is 1500..2600, idle 1500..1600
    """
    t = TraceMaker()
    t.metadata["torchroof"] = {"version": 1, "counted_steps": [2]}
    t.step(1, 0, 1000)
    t.op("aten::relu", 100, 200, shapes=[[10]])
    t.launch(150, "early", 900, 1500)
    t.step(2, 1000, 2000)
    t.op("aten::relu", 1100, 1200, shapes=[[10]])
    t.launch(1150, "late", 1600, 2600)
    data = report(t, tmp_path)
    assert data.totals.step_ns == 1100
    assert data.totals.causes["host"] == 100
    assert [(r.kernels, r.kernel_ns, r.busy_ns) for r in data.rows] == [(1, 1000, 1000)]
    assert [(u.reason, u.kernels, u.kernel_ns, u.busy_ns) for u in data.unattributed] == [
        ("outside counted steps", 1, 600, 0)
    ]
    assert data.totals.kernel_ns == 1600 and data.totals.kernels == 2


def test_overlapping_streams_share_the_union_and_keep_their_sums(tmp_path):
    t = TraceMaker()
    t.step(1, 0, 1000)
    t.op("aten::relu", 10, 20, shapes=[[10]])
    t.launch(12, "a", 100, 600, stream=7)
    t.op("aten::tanh", 30, 40, shapes=[[10]])
    t.launch(32, "b", 300, 800, stream=8)
    data = report(t, tmp_path)
    by_op = {r.op: r for r in data.rows}
    # 500 + 500 of kernel time; the union is 100..800 = 700: the first has all of its 500, the second 600..800.
    assert (by_op["aten::relu"].kernel_ns, by_op["aten::relu"].busy_ns) == (500, 500)
    assert (by_op["aten::tanh"].kernel_ns, by_op["aten::tanh"].busy_ns) == (500, 200)
    assert data.totals.busy_ns == 700 and data.totals.kernel_ns == 1000


def test_exposed_copies_and_collectives_are_causes_of_their_own(tmp_path):
    t = TraceMaker()
    t.step(1, 0, 1000)
    t.op("aten::relu", 10, 20, shapes=[[10]])
    t.launch(12, "a", 100, 400)
    t.copy(30, 350, 500, size=4096)
    t.op("c10d::allreduce_", 50, 60)
    t.launch(52, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 450, 900, stream=20)
    data = report(t, tmp_path)
    # compute 100..400; the copy alone 400..500; the collective alone 500..900.
    causes = data.totals.causes
    assert (causes["copy"], causes["communication"]) == (100, 400)
    assert causes["latency"] == 300
    assert [(c.kind, c.calls, c.bytes, c.ns) for c in data.copies] == [("Memcpy HtoD (Pinned -> Device)", 1, 4096, 150)]
    assert {r.bound for r in data.rows if r.op == "c10d::allreduce_"} == {"communication"}


def test_every_kernel_without_an_owner_has_its_reason(tmp_path):
    t = TraceMaker()
    t.step(1, 0, 1000)
    t.kernel("before_the_window", 5, 25, 777)
    t.op("aten::relu", 100, 200, shapes=[[10]])
    graph = t.launch(150, call="cudaGraphLaunch")
    t.kernel("replayed_a", 300, 340, graph)
    t.kernel("replayed_b", 340, 400, graph)
    t.launch(250, "alone", 400, 500)
    t.launch(1500, "late", 1600, 1700)
    data = report(t, tmp_path)
    assert {(u.reason, u.kernels, u.kernel_ns) for u in data.unattributed} == {
        ("no launch record", 1, 20),
        ("graph replay", 2, 100),
        ("launched outside any op and layer", 1, 100),
        ("outside counted steps", 1, 100),
    }
    assert data.rows == ()
    assert sum(u.kernel_ns for u in data.unattributed) == data.totals.kernel_ns == 320


def test_a_kernel_in_a_layer_but_outside_any_op_has_a_row_without_an_op(tmp_path):
    t = TraceMaker()
    t.step(1, 0, 1000)
    t.scope("", 10, 500)
    t.scope("fused", 20, 400)
    t.launch(100, "triton_kernel", 600, 700)
    row = report(t, tmp_path).rows[0]
    assert (row.path, row.op, row.phase, row.kernel_ns, row.bound) == ("fused", None, "forward", 100, "unmodelled")
    assert "outside any op" in row.unknown


def test_two_devices_have_a_window_each(tmp_path):
    t = TraceMaker()
    t.step(1, 0, 1000)
    t.op("aten::relu", 10, 20, shapes=[[10]])
    t.launch(12, "a", 100, 400, device=0)
    t.op("aten::relu", 30, 40, shapes=[[10]])
    t.launch(32, "b", 200, 1200, device=1)
    data = report(t, tmp_path)
    # Device 0: 0..1000; device 1: 0..1200.
    assert data.totals.step_ns == 1000 + 1200
    assert [(r.device, r.busy_ns, r.host_ns) for r in data.rows] == [(0, 300, 100), (1, 1000, 200)]
    assert data.totals.host_unowned_ns == 600


def test_claims_go_to_the_outermost_modelled_op_and_its_work_counts_once(tmp_path):
    t = TraceMaker()
    t.step(1, 0, 1000)
    t.op("aten::linear", 10, 200, shapes=[[4, 8], [16, 8], [16]])
    t.op("aten::addmm", 20, 190, shapes=[[16], [4, 8], [8, 16], [], []], types=["float"] * 3 + ["Scalar"] * 2,
         concrete=["", "", "", "1", "1"])  # fmt: skip
    t.op("aten::copy_", 30, 50, shapes=[[4, 16], [4, 16], []], types=["float", "float", "Scalar"],
         concrete=["", "", "False"])  # fmt: skip
    t.launch(40, "expand_bias", 300, 310)
    t.launch(100, "gemm", 310, 400)
    data = report(t, tmp_path)
    row = data.rows[0]
    assert len(data.rows) == 1
    # 4 x 8 by 8 x 16: 512 multiply-adds.
    assert (row.op, row.calls, row.kernels, row.kernel_ns, row.flops) == ("aten::addmm", 1, 2, 100, 2 * 512)


def test_dropping_one_kernel_changes_the_sums_by_exactly_that_kernel(tmp_path):
    def build(second: bool) -> TraceMaker:
        t = TraceMaker()
        t.step(1, 0, 1000)
        t.op("aten::relu", 10, 20, shapes=[[1000]])
        t.launch(12, "a", 100, 400)
        t.op("aten::tanh", 30, 40, shapes=[[1000]])
        t.launch(32, "b", *((400, 700) if second else (None, None)))
        return t

    both, one = report(build(True), tmp_path).totals, report(build(False), tmp_path).totals
    assert both.kernel_ns - one.kernel_ns == 300
    assert both.flops - one.flops == 1000
    assert both.kernels - one.kernels == 1


def test_time_before_the_first_kernel_of_a_file_without_steps_is_nobody_s(tmp_path):
    """
    host    0 op a 100 (its kernel runs 700..800)    900 op b 1000 (1200..1300)
    gaps    0..700 belongs to no kernel · 800..1200 to b
    """
    t = TraceMaker()
    for name, at, start in (("aten::relu", 0, 700), ("aten::tanh", 900, 1200)):
        t.op(name, at, at + 100, shapes=[[1000]])
        t.launch(at + 50, name, start, start + 100)
    data = report(t, tmp_path)
    assert data.totals.host_unowned_ns == 700
    assert {r.op: r.host_ns for r in data.rows} == {"aten::relu": 0, "aten::tanh": 400}
    assert data.totals.causes["host"] == 1100


def test_autocast_is_judged_by_the_operands_that_it_makes(tmp_path):
    """Autocast runs the op again inside itself with operands that it cast: the inner one is what works."""
    t = TraceMaker()
    t.op("aten::bmm", 0, 1000, shapes=[[2, 64, 64], [2, 64, 64]])
    for at in (100, 300):
        t.op("aten::_to_copy", at, at + 100, shapes=[[2, 64, 64], []], concrete=["", "15"])
        t.launch(at + 50, "cast", 1000 + at, 1100 + at)
    t.op("aten::bmm", 600, 900, shapes=[[2, 64, 64], [2, 64, 64]], dtype="c10::BFloat16")
    t.launch(700, "gemm", 2000, 2500)
    rows = {(r.op, r.precision): r for r in report(t, tmp_path).rows}
    product = rows["aten::bmm", "bfloat16"]
    assert product.kernel_ns == 500 and product.calls == 1 and product.flops == 2 * 2 * 64**3
    assert product.bytes_read == 2 * 2 * 64 * 64 * 2
    assert ("aten::bmm", "float32") not in rows
    assert sum(r.kernel_ns for r in rows.values() if r.op == "aten::_to_copy") == 200


def test_a_grid_of_zeros_is_unknown(tmp_path):
    t = TraceMaker()
    t.op("aten::relu", 0, 100, shapes=[[10]])
    t.launch(50, "k", 200, 300, grid=[0, 0, 0])
    assert read(t.save(tmp_path)).device.blocks.tolist() == [-1]


def test_grids_make_waves_that_are_full_or_not(tmp_path):
    """Two blocks of 128 threads with 252 registers fit on each of 108 multiprocessors: 216 make a wave."""
    shape = {"block": [128, 1, 1], "registers": 252, "shared": 67584}
    t = TraceMaker()
    t.op("aten::relu", 0, 100, shapes=[[10]])
    t.launch(10, "k", 200, 300, grid=[54, 4, 1], **shape)
    t.launch(20, "k", 300, 600, grid=[507, 1, 1], **shape)
    t.launch(30, "half", 600, 700, grid=[108, 1, 1], **shape)
    t.launch(40, "no block", 700, 800, grid=[108, 1, 1])
    t.launch(50, "unknown", 800, 900)
    data = report(t, tmp_path)
    found = {k.name: (k.blocks, k.resident_blocks, k.waves, k.wave_efficiency) for k in data.kernels}
    waves = 507 / 216
    assert found["k"] == (723, 2, pytest.approx((1 + waves) / 2), pytest.approx((100 * 1 + 300 * waves / 3) / 400))
    assert found["half"] == (108, 2, pytest.approx(0.5), pytest.approx(0.5))
    assert found["no block"] == (108, None, None, None) and found["unknown"] == (None,) * 4
    words = plain_text(Report(data).explain("relu").__rich__(), 160)
    assert "108 blocks a launch, 2 at a time on a multiprocessor: 0.5 waves, 50% of their places empty" in words
    assert "108 blocks a launch\n" in words.replace(" \n", "\n")


def test_work_of_calls_that_took_no_time_has_no_rate(tmp_path):
    """One product of 0 ns, whose work is known, and one of 50 ns whose operands do not fit."""
    t = TraceMaker()
    t.op("aten::mm", 10, 20, shapes=[[8, 4], [4, 2]])
    t.launch(12, "k", 100, 100)
    t.op("aten::mm", 30, 40, shapes=[[8, 4], [5, 2]])
    t.launch(32, "k", 200, 250)
    data = report(t, tmp_path)
    laws.check(data)
    (row,) = data.rows
    # 8 x 4 x 2 multiply-adds are known, and none of the 50 ns is theirs.
    assert (row.flops, row.flops_known_ns, row.bytes_known_ns, row.kernel_ns) == (2 * 64, 0, 0, 50)
    assert row.achieved_flops_per_s is row.achieved_bytes_per_s is row.efficiency is None
    assert row.unknown

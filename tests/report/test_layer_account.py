"""The accounting of one layer: its figures are those of its rows, and a container is itself and its children."""

from __future__ import annotations

import json

import pytest
import torch
from reading import CEILINGS, layer, report, row
from torch import nn

import torchroof
from torchroof.device.roof import Ceiling
from torchroof.errors import OptionError
from torchroof.report import codec
from torchroof.report.explain import explain
from torchroof.report.model import Copy, Device, Kernel, Layer, ReportData, Tensor
from torchroof.reports import Report
from torchroof.views.terminal import plain_text

FC1 = "encoder.0.fc1"
ROWS = (
    row(FC1, 4000, flops_full=5000, unknown="x is not recorded"),
    row(FC1, 9000, phase="backward", calls=2, kernels=2, host_ns=500, headroom_ns=5000),
    row(FC1, 700, phase="backward", op="aten::sum", side="memory", bound="memory", ceiling=2, flops=120),
    row("encoder.0", 300, type="Block", op="aten::add", side="memory", bound="memory", ceiling=2, flops=0),
    row("encoder.0.fc2", 2000),
    row("encoder.01", 77),
    row(None, 60, type=None, phase="optimizer", op="aten::_fused_adam_"),
)
LAYERS = (
    layer("", "Model", calls=1),
    layer("encoder", "Encoder"),
    layer("encoder.0", "Block"),
    layer(FC1, calls=3, aliases=("tied",), inputs=(Tensor((8, 16), "float32"),), flagged=True, why="x"),
    layer("encoder.0.fc2"),
    layer("encoder.01"),
    layer("idle", "Dropout"),
)


def paper(**more: object) -> ReportData:
    copies = (Copy(kind="HtoD", path=FC1, phase="forward", calls=1, bytes=64, ns=5),)
    return report(ROWS, LAYERS, copies=copies, **more)


def test_a_layer_has_all_its_rows_tell() -> None:
    account = explain(paper(), FC1)
    assert (account.path, account.type, account.calls, account.flagged) == (FC1, "Linear", 3, True)
    assert account.inputs == (Tensor((8, 16), "float32"),) and account.aliases == ("tied",)
    assert account.members == (FC1,) and account.children is None
    assert [(p.phase, p.op, p.calls, p.kernel_ns) for p in account.parts] == [
        ("forward", "aten::mm", 1, 4000),
        ("backward", "aten::mm", 2, 9000),
        ("backward", "aten::sum", 1, 700),
    ]
    forward = account.parts[0]
    # A FLOP per ns: 1 GFLOP/s; 120 bytes in 4000 ns: 30 MB/s; floor 2000 of 4000 ns.
    assert (forward.flops, forward.flops_full, forward.bytes_read, forward.bytes_written) == (4000, 5000, 100, 20)
    assert forward.bytes_upper == 150 and forward.achieved_flops_per_s == 1e9
    assert forward.achieved_bytes_per_s == pytest.approx(3e7)
    assert (forward.floor_ns, forward.efficiency, forward.headroom_ns) == (2000, 0.5, 2000)
    assert forward.unknown == ("x is not recorded",) and forward.attribution == ("layer scope",)
    assert forward.formula is not None and forward.formula.startswith("2·m·n·k")
    assert [c.kind for c in forward.ceilings] == ["compute"]
    # 4000 ÷ 120 = 33.3 FLOPs per byte; 1e12 ÷ 1e11 = 10.
    assert forward.verdict == "under its compute roof (50%)"
    assert forward.because == "33.3 FLOPs per byte, and the ridge point of float32 matrix over dram is 10"
    # Own and total are the same for a layer without children: 4000 + 9000 + 700.
    assert account.own.kernel_ns == account.total.kernel_ns == 13_700
    assert {(k.name, k.phase, k.op) for k in account.kernels} == {
        ("gemm_forward", "forward", "aten::mm"),
        ("gemm_backward", "backward", "aten::mm"),
        ("gemm_backward", "backward", "aten::sum"),
    }
    assert sum(k.kernel_ns for k in account.kernels) == 13_700
    assert len(account.copies) == 1


def test_a_container_is_its_own_and_its_children() -> None:
    account = explain(paper(), "encoder.0")
    assert [p.op for p in account.parts] == ["aten::add"]
    assert account.parts[0].because == "it does no arithmetic that counts, so only its bytes can bind it"
    # 300 of its own, 13,700 of fc1 and 2000 of fc2; encoder.01 only looks like a part of it.
    assert (account.own.kernel_ns, account.total.kernel_ns) == (300, 16_000)
    assert account.children is not None
    assert {x.label: x.kernel_ns for x in account.children.lines} == {FC1: 13_700, "encoder.0.fc2": 2000, "(own)": 300}
    for name in ("kernels", "kernel_ns", "busy_ns", "host_ns", "flops", "bytes", "floor_ns", "headroom_ns"):
        parts = [getattr(line, name) for line in account.children.lines]
        assert sum(parts) == getattr(account.total, name), name


@pytest.mark.parametrize("name", ["(root)", ""])
def test_the_model_is_everything_with_a_layer(name: str) -> None:
    account = explain(paper(), name)
    assert account.total.kernel_ns == sum(r.kernel_ns for r in ROWS) - 60
    assert account.children is not None
    assert [(x.label, x.kernel_ns) for x in account.children.lines] == [("encoder", 16_077)]


def test_what_has_no_layer_is_asked_for_by_its_label() -> None:
    account = explain(paper(), "(optimizer)")
    assert [(p.op, p.kernel_ns) for p in account.parts] == [("aten::_fused_adam_", 60)]
    assert [k.kernel_ns for k in account.kernels] == [60]
    assert account.type is None and account.calls is None


def test_an_alias_and_a_layer_that_ran_no_kernel() -> None:
    assert explain(paper(), "tied").path == FC1
    idle = explain(paper(), "idle")
    assert idle.parts == () and idle.total.kernel_ns == 0 and idle.type == "Dropout"


def deep() -> ReportData:
    rows = [row(f"encoder.layers.{i}.{name}", 1000) for i in range(12) for name in ("fc1", "fc2")]
    rows[8] = row("encoder.layers.4.fc1", 5000)
    return report(rows)


@pytest.mark.parametrize(
    "asked",
    [
        "encoder.layers.[0–3,5–11].fc1",
        "encoder.layers.[0–3,5–11].fc1 ×11",
        "encoder.layers.[0-3,5-11].fc1 x11",
        "…layers.[0…11].fc1 ×11",
        "…[0~11].fc1",
    ],
)
def test_a_pattern_is_explained_as_one(asked: str) -> None:
    account = explain(deep(), asked)
    assert account.path == "encoder.layers.[0–3,5–11].fc1" and len(account.members) == 11
    (part,) = account.parts
    assert (part.calls, part.kernel_ns, part.flops, part.bytes_read) == (11, 11_000, 11_000, 1100)
    assert (part.bytes_written, part.bytes_upper) == (11 * 20, 11 * 150)
    assert account.kernels == (
        Kernel(name="gemm_forward", path=account.path, phase="forward", op="aten::mm", kernels=11, kernel_ns=11_000),
    )


def test_a_pattern_may_take_outliers_in_and_name_containers() -> None:
    everything = explain(deep(), "encoder.layers.[0-11].fc1")
    assert everything.own.kernel_ns == 16_000 and len(everything.members) == 12
    some = explain(deep(), "encoder.layers.[1-3]")
    # Three layers of two times 1000 ns, none of their own.
    assert (some.total.kernel_ns, some.own.kernel_ns, some.parts) == (6000, 0, ())
    assert some.children is not None
    assert [x.label for x in some.children.lines] == ["encoder.layers.[1–3].fc1 ×3", "encoder.layers.[1–3].fc2 ×3"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("encoder.layers.4.fc3", "encoder.layers.4.fc"),
        ("fc1", "fc1"),
        ("nothing.like.it", "the table lists"),
        ("…fc1", "may be any of"),
        ("encoder.layers.[3-1].fc1", "no layer and no op"),
        ("encoder.layers.[0-99999999999999].fc9", "no layer and no op"),
        ("((", "no layer and no op"),
        ("x" * 5000, "no layer and no op"),
    ],
)
def test_an_unknown_path_names_what_is_near_in_one_line(asked: str, told: str) -> None:
    with pytest.raises(OptionError) as refusal:
        explain(deep(), asked)
    assert told in str(refusal.value) and "\n" not in str(refusal.value) and len(str(refusal.value)) < 500


def test_latency_tells_what_was_compared() -> None:
    # 1500 ns a kernel is less than twice the 1000 ns of the ceiling; 5000 is not, so it was the small grid.
    short, small = (report([row("a", ns, bound="latency")]) for ns in (1500, 5000))
    said = str(explain(short, "a").parts[0].because)
    assert "1.5 µs on average, less than 2 x what one that does next to nothing takes, 1 µs" in said
    assert "fewer blocks" in str(explain(small, "a").parts[0].because)


def test_a_side_that_its_sums_belie_is_explained_call_by_call() -> None:
    # 2400 FLOPs over 120 bytes are 20 per byte, over the ridge point of 10, yet the calls were judged memory-side.
    mixed = report([row("a", 10, flops=2400, side="memory", bound="memory", ceiling=2)])
    assert explain(mixed, "a").parts[0].because == "call by call, bytes take longer than FLOPs"


def test_why_names_the_op_that_could_win_most() -> None:
    # Backward mm could win 5000 ns, forward mm 2000, sum 350.
    assert explain(paper(), FC1).why == "under its compute roof (50%) in mm, backward"


def test_json_has_every_figure() -> None:
    told = json.loads(codec.encode(explain(paper(), FC1)))
    assert told["schema"] == "torchroof.explain/1" and told["parts"][0]["flops"] == 4000
    assert told["parts"][0]["ceilings"][0]["source"] == "paper"


def test_a_report_without_a_roof_or_layers() -> None:
    bare = row("a", 10, floor_ns=None, headroom_ns=None, efficiency=None, bound=None, side=None, ceiling=None)
    account = explain(report([bare], [], devices=()), "a")
    assert account.parts[0].because is None and account.parts[0].verdict == "no roof to judge it by"
    assert account.type is None and account.parts[0].ceilings == ()


def test_layers_alone_make_a_container() -> None:
    layers = (Layer(path="a", type="A"), Layer(path="a.b", type="B"))
    assert explain(report([row("a", 10)], layers), "a").children is not None


def test_the_time_of_each_step_adds_up_to_the_layer_s() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    with torchroof.profile(model, measure=False) as prof:
        for _ in range(4):
            model(torch.ones(2, 8))
            prof.step()
    for path in ("", "0"):
        account = prof.report.explain(path).data
        assert len(account.kernel_ns_per_step) == 3
        assert sum(account.kernel_ns_per_step) == account.total.kernel_ns
    assert "over 3 steps" in str(prof.report.explain("0"))


def test_the_hosts_time_is_told_in_least_times_of_an_op() -> None:
    host = Ceiling(kind="host", value=5e-6, unit="s", origin="measured", source="torch")
    device = Device(index=0, name="Paper 1", matched=None, ceilings=(*CEILINGS, host))
    data = report([row("a", 400, host_ns=60_000, calls=2)], devices=(device,))
    account = explain(data, "a")
    assert account.parts[0].host_floor_ns == 5000
    words = " ".join(plain_text(Report(data).explain("a").__rich__(), 160).split())
    assert "30 µs a call, 6 x the least that an op takes the host" in words  # 60 µs over 2 calls, 5 µs at least
    assert account.parts[0].verdict.startswith("waits for the host longer than it runs")  # 60 µs beside 400 ns
    assert explain(report([row("a", 400)]), "a").parts[0].host_floor_ns is None


def test_calls_that_several_layers_share_are_told_as_that() -> None:
    rows = [
        row(p, 400, calls=n, shared="Optimizer.step#AdamW.step", phase="optimizer") for p, n in (("a", 6), ("b", 0))
    ]
    data = report(rows)
    for path in ("a", "b"):
        assert "its part of calls that it shares with other layers" in str(Report(data).explain(path))
        assert "0 calls per step" not in str(Report(data).explain(path))
    assert "6 calls per step" in str(Report(data).explain("aten::mm"))  # of the op, all of them
    assert [part.shared for part in explain(data, "a").parts + explain(data, "aten::mm").parts] == [True, False]


def test_a_floor_that_one_ceiling_does_not_make_says_so() -> None:
    work = {"flops": 200_000, "ceiling": 0}  # 200 ns at 1 TFLOP/s
    one, several = report([row("a", 400, floor_ns=200, **work)]), report([row("a", 400, floor_ns=150, **work)])
    assert "the least time, by that ceiling" in str(Report(one).explain("a"))
    assert "the least time, call by call" in str(Report(several).explain("a"))


def test_the_headline_over_another_table_names_one_of_its_lines() -> None:
    data = report([row("a", 9000, op="aten::mm"), row("b", 400, op="aten::bmm")])
    words = {by: str(plain_text(Report(data).page(by=by), 120)) for by in ("layer", "op", "phase")}
    assert "▶ a (Linear) could" in words["layer"] and "▶ aten::mm could" in words["op"]
    assert "could give back" not in words["phase"]

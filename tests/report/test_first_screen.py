"""What the head and the foot of the page say: sentences and shares, each worked out by hand."""

from __future__ import annotations

from dataclasses import replace as changed

import laws
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import CEILINGS, report, row

from torchroof.errors import OptionError
from torchroof.report.explain import explain
from torchroof.report.lenses import UNOWNED_HOST, lines
from torchroof.report.model import CAUSES, Copy, Device, ReportData, Row, Step, Unattributed
from torchroof.report.summary import headline
from torchroof.reports import Report
from torchroof.views.terminal import plain_text

UNKNOWN = {
    "flops": None, "bytes_read": None, "bytes_written": None, "floor_ns": None, "floor_known_ns": 0, "efficiency": None,
    "headroom_ns": None, "flops_known_ns": 0, "bytes_known_ns": 0, "bound": "unmodelled", "side": None,
    "unknown": "no work model",
}  # fmt: skip


def unknown(path: str | None, ns: int, **more: object) -> Row:
    return row(path, ns, **UNKNOWN, **more)


def with_totals(data: ReportData, **more: object) -> ReportData:
    return msgspec.structs.replace(data, totals=msgspec.structs.replace(data.totals, **more))


def with_causes(data: ReportData, **causes: int) -> ReportData:
    return with_totals(data, causes=dict.fromkeys(CAUSES, 0) | causes, step_ns=sum(causes.values()))


REPLAYED = (Unattributed(reason="graph replay", kernels=3, kernel_ns=600, busy_ns=600, host_ns=50),)
APART = (Unattributed(reason="outside counted steps", kernels=9, kernel_ns=5000, busy_ns=0, host_ns=0),)


def test_what_is_known_and_what_is_left_over_are_shares_of_one_whole() -> None:
    # 400 ns of known products, 200 ns of unknown ops and 600 ns of graph replays: 1200 ns counted, 800 unknown.
    rows = [row("a", 400), unknown("a", 150, op="aten::odd"), unknown(None, 50, op="aten::odd", phase="optimizer")]
    data = report(rows, unattributed=(*REPLAYED, *APART))
    data = with_totals(data, flops_known_ns=400, bytes_known_ns=400, layered_ns=550)
    head = headline(data)
    assert head.with_bytes == pytest.approx(400 / 1200) and head.without_work == pytest.approx(800 / 1200)
    assert head.without_work_ns == 800
    assert [(part.name, part.ns) for part in head.left_over] == [("graph replay", 600), ("aten::odd", 200)]
    # 400 + 150 ns have a layer, 50 are the optimizer's by name.
    assert head.with_owner == pytest.approx(600 / 1200)


def test_a_share_of_little_that_is_known_is_marked_as_least() -> None:
    data = with_totals(
        report([row("a", 400)], unattributed=REPLAYED), step_efficiency=0.02, mfu=0.01, floor_known_ns=400
    )
    assert headline(data).step_efficiency_is_least and headline(data).mfu_is_least
    whole = with_totals(report([row("a", 400)]), floor_known_ns=400)
    assert not headline(whole).step_efficiency_is_least and not headline(whole).mfu_is_least


def test_the_peak_that_mfu_is_taken_of_is_named() -> None:
    data = with_totals(report([row("a", 400)]), mfu=0.5)
    assert headline(data).mfu_of == "float32 matrix 1 TFLOP/s (given)"
    half = changed(CEILINGS[0], precision="float16", value=2e12, origin="datasheet")
    mixed = msgspec.structs.replace(
        with_totals(report([row("a", 400), row("b", 500, precision="float16")]), mfu=0.5),
        devices=(Device(index=0, name="Paper 1", matched=None, ceilings=(*CEILINGS, half)),),
    )
    assert headline(mixed).mfu_of == "float16 matrix 2 TFLOP/s and 1 other (datasheet)"


def test_ceilings_of_one_origin_are_told_together() -> None:
    rows = [row("a", 400), row("b", 300, ceiling=2), row("c", 9, ceiling=1)]
    assert headline(report(rows)).ceilings == (
        "float32 matrix 1 TFLOP/s, dram 100 GB/s, float32 vector 1 TFLOP/s (given)",
    )


def test_the_roof_of_another_device_is_named_in_the_title() -> None:
    devices = (Device(index=0, name="Intel(R) Xeon(R)", matched="rtx_a6000", ceilings=CEILINGS),)
    told = headline(report([row("a", 1)], devices=devices)).device
    assert told == "Intel(R) Xeon(R), judged by the roof of RTX A6000"
    own = (Device(index=0, name="NVIDIA RTX A6000", matched="rtx_a6000", ceilings=CEILINGS),)
    assert headline(report([row("a", 1)], devices=own)).device == "NVIDIA RTX A6000"


@pytest.mark.parametrize(
    ("steps_ns", "uneven", "median"),
    [((100, 149), None, None), ((100, 151), 1.51, None), ((530, 2970, 3330, 1880), 3330 / 530, None),
     ((10, 20, 30, 40, 50), 5.0, 30), ((), None, None), ((0, 5), None, None)],
)  # fmt: skip
def test_uneven_steps_are_told_and_a_median_from_five_on(
    steps_ns: tuple[int, ...], uneven: float | None, median: int | None
) -> None:
    per_step = (Step(index=0, ns=9999, counted=False), *(Step(index=1, ns=ns, counted=True) for ns in steps_ns))
    head = headline(report([row("a", 1)], per_step=per_step))
    assert head.steps_ns == steps_ns and head.median_ns == median
    assert head.uneven is None if uneven is None else head.uneven == pytest.approx(uneven)


@pytest.mark.parametrize(
    ("causes", "begins"),
    [
        ({"host": 50, "compute": 40, "copy": 10}, "This step is host-bound: 50% of it is spent waiting for the host"),
        ({"host": 49, "compute": 48, "copy": 3}, "The largest part of the step, 49%, is spent waiting for the host"),
        ({"sync": 80, "compute": 20}, "This step is sync-bound: 80% of it"),
        ({"copy": 60, "compute": 40}, "60% of the step goes into exposed copies."),
    ],
)
def test_a_step_is_bound_by_a_cause_from_half_of_it_on(causes: dict[str, int], begins: str) -> None:
    assert headline(with_causes(report([row("a", 50)]), **causes)).verdict.startswith(begins)


@pytest.mark.parametrize(
    ("floor_ns", "said"),
    [(60, "that arithmetic limits: they reach 60% of what it allows."),
     (59, "under their roof: they reach 59% of what"),
     (25, "kernels under their"), (24, "kernels far under their roof: they reach 24% of what arithmetic allows."),
     (101, "on the compute side of the roof.")],
)  # fmt: skip
def test_a_limit_is_named_as_the_kernels_only_where_they_come_near_it(floor_ns: int, said: str) -> None:
    data = with_causes(report([row("a", 100, floor_ns=floor_ns)]), compute=100)
    assert said in headline(data).verdict


@pytest.mark.parametrize(
    ("times", "said"), [((51, 30, 20), " 50% of that is c10d::alltoall_."), ((40, 31, 30), "")], ids=["one", "none"]
)
def test_a_cause_that_layers_do_not_explain_names_its_op(times: tuple[int, ...], said: str) -> None:
    made = {"bound": "communication", "floor_ns": None, "efficiency": None, "headroom_ns": None}
    names = ("c10d::alltoall_", "c10d::allreduce_", "c10d::broadcast_")
    data = report([row(None, ns, op=op, **made) for op, ns in zip(names, times, strict=True)])
    told = headline(with_causes(data, communication=sum(times))).verdict
    assert told == f"100% of the step goes into exposed communication.{said}"


@pytest.mark.parametrize(("slow", "said"), [(300, ", 85% of that in h.1.fc alone): "), (20, "): ")])
def test_one_of_several_equals_that_holds_most_is_named(slow: int, said: str) -> None:
    """Three equal layers, 30 ns to win in the kernels of each; before one of them the device waited for the host."""
    waits = {0: 0, 1: slow, 2: 0}
    data = report([row(f"h.{i}.fc", 100, headroom_ns=30 + ns, host_ns=ns) for i, ns in waits.items()])
    worst = headline(data).worst
    assert worst is not None and worst.startswith("h.[0–2].fc ×3 (Linear) could give back up to")
    assert f"%{said}under its compute roof" in worst


def test_waiting_of_what_has_no_floor_could_be_won_back_at_least() -> None:
    # The optimizer: 2 ns of unknown work, 149 ns of waiting. Between 149 and 151 ns; the product 50 of 100 ns.
    data = report([row("a", 100), unknown(None, 2, host_ns=149, phase="optimizer", op="aten::odd", type=None)])
    first, second = lines(data).lines
    assert (first.label, first.headroom_ns, first.headroom_least_ns, first.headroom_most_ns) == (
        "(optimizer)", None, 149, 151,
    )  # fmt: skip
    assert (second.headroom_least_ns, second.headroom_most_ns) == (50, 50)
    total = lines(data).total
    assert (total.headroom_ns, total.headroom_least_ns, total.headroom_most_ns) == (50, 199, 201)
    assert first.flagged and not second.flagged
    worst = headline(data).worst
    assert worst is not None
    assert worst.startswith("(optimizer) could give back 149 ns of each step or more")
    assert headline(data).worst_label == "(optimizer)"


def test_unknown_work_is_sorted_as_if_all_of_it_could_be_won_and_not_flagged() -> None:
    data = report([row("a", 100), unknown("b", 90)])
    assert [(x.label, x.headroom_least_ns, x.headroom_most_ns, x.flagged) for x in lines(data).lines] == [
        ("b", 0, 90, False),
        ("a", 50, 50, True),
    ]


def test_host_time_without_an_owner_has_a_line_and_so_host_adds_up() -> None:
    data = with_totals(report([row("a", 100, host_ns=7)], unattributed=REPLAYED), host_unowned_ns=30)
    for by in ("layer", "op", "phase"):
        assert lines(data, by).total.host_ns == 7 + 50 + 30
        assert next(x for x in lines(data, by).lines if x.label == UNOWNED_HOST).host_ns == 30
    assert explain(data, "a").total.host_ns == 7


def test_ops_are_flagged_where_lines_are_ops_and_lead_the_headline_where_no_layer_is_known() -> None:
    rows = [
        row(None, 1000, op="aten::convolution"),
        row(None, 100),
        row(None, 300, op="aten::convolution", phase="backward"),
    ]
    data = report(rows)
    assert [(x.label, x.flagged) for x in lines(data, by="op").lines] == [
        ("aten::convolution", True),
        ("aten::mm", False),
    ]
    worst = headline(data).worst
    # 500 + 150 ns of 1400.
    assert worst == (
        "aten::convolution could give back up to 650 ns of each step (46%): under its compute roof (50%) in forward."
    )


def test_without_any_roof_nothing_is_flagged() -> None:
    data = report([unknown("a", 10, host_ns=90)])
    assert not any(x.flagged for x in lines(data).lines) and headline(data).worst is None


def test_a_filter_chooses_before_ops_are_summed() -> None:
    rows = [row("x.self_attn", 100), row("x.fc", 40), row("x.fc", 5, op="aten::add"), row("y", 1, op="aten::add")]
    read = lines(report(rows), by="op", filter="self_attn")
    assert [(x.label, x.kernel_ns) for x in read.lines] == [("aten::mm", 100)]
    assert read.rest is not None and (read.rest.label, read.rest.kernel_ns) == ("(2 more)", 46)
    assert lines(report(rows), by="phase", filter="fc").lines[0].kernel_ns == 45


def test_a_filter_chooses_before_layers_are_summed_into_their_ancestors() -> None:
    rows = [row("net.0.attention", 100), row("net.0.fc", 40), row("net.1.attention", 9), row("net.0", 2, type="Block")]
    read = lines(report(rows), depth=2, filter="attention")
    assert [(x.label, x.kernel_ns) for x in read.lines] == [("net.0", 100), ("net.1", 9)]
    assert read.rest is not None and read.rest.kernel_ns == 42
    whole = lines(report(rows), depth=2, filter=r"^net\.0$")
    assert [(x.label, x.kernel_ns) for x in whole.lines] == [("net.0", 142)], "by the label of the line"


def test_lines_too_small_to_matter_are_told_together() -> None:
    rows = [row("a", 10_000), row("b", 9), row("c", 8), row("d", 7)]
    read = lines(report(rows), least=0.001)
    # A thousandth of 10,024 ns.
    assert [x.label for x in read.lines] == ["a"]
    assert read.rest is not None and (read.rest.label, read.rest.kernel_ns) == ("(3 more)", 24)
    alone = lines(report(rows[:2]), least=0.001)
    assert [x.label for x in alone.lines] == ["a", "b"] and alone.rest is None


def test_an_op_is_explained_over_all_layers_that_ran_it() -> None:
    rows = [row("a", 100), row("b", 50), row("b", 30, phase="backward"), row("b", 9, op="aten::add")]
    for asked in ("aten::mm", "mm"):
        account = explain(report(rows), asked)
        assert account.path == "aten::mm" and account.total.kernel_ns == 180
        assert [(p.phase, p.kernel_ns) for p in account.parts] == [("forward", 150), ("backward", 30)]
        assert account.children is not None
        assert {x.label: x.kernel_ns for x in account.children.lines} == {"a": 100, "b": 80}
    assert explain(report([row("mm", 1), row("b", 2)]), "mm").total.kernel_ns == 1, "a layer's path goes before"
    bare = explain(report([row(None, 7)]), "aten::mm")
    assert bare.children is None and bare.flagged


def test_what_has_no_accounting_is_refused_in_words() -> None:
    data = with_totals(report([row("a", 1)], unattributed=REPLAYED), host_unowned_ns=3)
    for label in ("(graph replay)", UNOWNED_HOST):
        with pytest.raises(OptionError, match="no op and no layer own it"):
            explain(data, label)
    with pytest.raises(OptionError, match="near it: aten::mm"):
        explain(data, "aten::nm")


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(0, 99), st.booleans()), min_size=1, max_size=8))
def test_the_flagged_hold_half_of_what_could_be_won_or_the_next_is_too_small(
    found: list[tuple[int, int, bool]],
) -> None:
    rows = [
        row(f"l{i}", ns, host_ns=host, headroom_ns=ns - ns // 2 + host) if known else unknown(f"l{i}", ns, host_ns=host)
        for i, (ns, host, known) in enumerate(found)
    ]
    laws.check_headroom(report(rows), lines(report(rows)))


def test_copies_are_told_by_kind_with_their_rate() -> None:
    copies = (
        Copy(kind="Memcpy HtoD (Pageable -> Device)", path="a", phase="forward", calls=2, bytes=3000, ns=300),
        Copy(kind="Memcpy HtoD (Pageable -> Device)", path=None, phase="outside", calls=1, bytes=1000, ns=100),
        Copy(kind="Memset (Device)", path=None, phase="outside", calls=1, bytes=None, ns=500),
        Copy(kind="Memcpy DtoH (Device -> Pinned)", path=None, phase="outside", calls=1, bytes=8, ns=1),
    )
    data = with_totals(msgspec.structs.replace(report([row("a", 600)]), copies=copies, steps=2), step_ns=4000)
    told = headline(data).copies
    assert [(c.kind.split()[0], c.ns, c.bytes) for c in told] == [("Memset", 250, None), ("Memcpy", 200, 2000)]
    foot = plain_text(Report(data).page(), 120)
    assert "Memset (Device) 250 ns per step\n" in foot
    assert "Memcpy HtoD (Pageable -> Device) 200 ns per step for 2 kB, 10 GB/s" in foot
    assert "DtoH" not in foot  # less than a thousandth of the step

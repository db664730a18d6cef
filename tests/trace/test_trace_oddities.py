"""One small trace for each oddity that files are known to have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from torchroof.trace.table import NONE, DeviceKind, HostKind, TraceTable


def made(cat: str, name: str = "x", ts: Any = 0, dur: Any = 1, tid: Any = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": args.pop("pid", 9), "tid": tid, "ts": ts, "dur": dur,
            "args": args}  # fmt: skip


def kinds(table: TraceTable) -> dict[str, int]:
    return {table.names[name]: kind for name, kind in zip(table.host.name, table.host.kind, strict=True)}


def notes(table: TraceTable) -> dict[str, int | None]:
    return {note.kind: note.count for note in table.notes}


def test_categories_of_2021_and_of_now_in_any_case(read_events: Any) -> None:
    table = read_events(
        made("Operator", "aten::mm"), made("Operator", "ProfilerStep#1"), made("Runtime", "cudaLaunchKernel"),
        made("CPU_OP", "aten::add"), made("cuda_driver", "cuLaunchKernel"), made("xpu_runtime", "urEnqueue"),
        made("privateuse1_runtime", "p"), made("mtia_runtime", "m"), made("mlu_runtime", "cnInvokeKernel"),
        made("Kernel", "k1"), made("kernel", "k2"), made("mtia_ccp_events", "k3"), made("Memcpy", "c1"),
        made("gpu_memcpy", "c2"), made("Memset", "s1"), made("gpu_memset", "s2"),
        made("gpu_user_annotation"), made("overhead"), made("Trace"), made("cuda_sync"), made("cuda_profiler_range"),
        made("python_function", "f.py(1): g"), made("ac2g"), {"ph": "M", "name": "process_name"}, {"ph": "C"},
    )  # fmt: skip
    op, annotation, launch = HostKind.OP, HostKind.ANNOTATION, HostKind.LAUNCH
    assert kinds(table) == {
        "aten::mm": op, "ProfilerStep#1": annotation, "cudaLaunchKernel": launch, "aten::add": op,
        "cuLaunchKernel": launch, "urEnqueue": launch, "p": launch, "m": launch, "cnInvokeKernel": launch,
    }  # fmt: skip
    assert table.device.kind.tolist() == [DeviceKind.KERNEL] * 3 + [DeviceKind.MEMCPY] * 2 + [DeviceKind.MEMSET] * 2
    assert table.events == 25
    assert table.notes == ()


def test_only_complete_events_are_spans(read_events: Any) -> None:
    instant = made("cpu_op") | {"ph": "i"}
    table = read_events(instant, made("kernel") | {"ph": "f", "id": 1})
    assert (len(table.host), len(table.device), table.events) == (0, 0, 2)


def test_threads_are_compared_as_text(read_events: Any) -> None:
    table = read_events(
        made("cpu_op", tid=25738), made("cpu_op", tid="25738"), made("cpu_op", tid="thread 25738"),
        made("cpu_op", tid=25738, pid=10), made("user_annotation", tid="25738", pid="10"),
    )  # fmt: skip
    assert table.threads == ("10/25738", "9/25738")
    assert table.thread_ids == ("25738", "25738")
    assert table.host.thread.tolist() == [0, 0, 1, 1, 1]


def test_device_and_stream_come_from_args_else_from_the_row(read_events: Any) -> None:
    table = read_events(
        made("kernel", ts=0, tid=7, pid=0, device=2, stream=20), made("kernel", ts=1, tid="stream 7", pid=1),
        made("kernel", ts=2, stream=4294967295, device="3"), made("gpu_memcpy", ts=3, tid="queue", pid="GPU", bytes=8),
        made("gpu_memset", ts=4, stream=615352160123, device=2**40, bytes=2**70),
    )  # fmt: skip
    assert table.device.device.tolist() == [2, 1, 3, NONE, NONE]
    assert table.device.stream.tolist() == [20, 7, -1, NONE, 615352160123]
    assert table.device.bytes.tolist() == [NONE, NONE, NONE, 8, NONE]


def test_blocks_are_the_product_of_the_grid(read_events: Any) -> None:
    grids = ([40, 3, 2], [5], [], "grid(4,)", None, [2, "x", 1], {"x": 1})
    table = read_events(*(made("kernel", ts=i, grid=grid) for i, grid in enumerate(grids)), made("kernel", ts=99))
    assert table.device.blocks.tolist() == [240, 5, NONE, NONE, NONE, NONE, NONE, NONE]


def test_correlations_of_any_size_and_type_are_join_keys(read_events: Any) -> None:
    big = 10159970886766084423
    table = read_events(
        made("cuda_runtime", ts=0, correlation=big), made("cuda_runtime", ts=1, correlation=5),
        made("cuda_runtime", ts=2, correlation=0), made("cuda_runtime", ts=3),
        made("cuda_runtime", ts=4, correlation=[1]),
        made("cpu_op", ts=5, correlation=5),
        made("kernel", ts=10, correlation="5"), made("kernel", ts=11, correlation=big),
        made("kernel", ts=12, correlation=big), made("gpu_memcpy", ts=13, correlation=0), made("kernel", ts=14),
    )  # fmt: skip
    first, second, zero, none, odd, op = table.host.correlation.tolist()
    assert len({first, second, zero}) == 3 and min(first, second, zero) >= 0
    assert (none, odd, op) == (NONE, NONE, NONE)
    assert table.device.correlation.tolist() == [second, first, first, zero, NONE]


def test_zero_is_a_correlation_once_and_none_when_several_kernels_carry_it(read_events: Any) -> None:
    launch, kernel = made("cuda_runtime", correlation=0), made("kernel", correlation=0)
    once = read_events(launch, kernel)
    assert once.device.correlation[0] == once.host.correlation[0] >= 0
    twice = read_events(
        launch, kernel, kernel, made("kernel", correlation=4), made("cuda_runtime", ts=1, correlation=4)
    )
    assert notes(twice) == {"zero_correlation": 2}
    assert twice.host.correlation[0] == NONE
    assert sorted(twice.device.correlation.tolist()) == [NONE, NONE, twice.host.correlation[1]]


def test_external_ids_join_only_where_no_correlation_is(read_events: Any) -> None:
    events = [
        made("hip_runtime", **{"external id": 31}), made("kernel", **{"External id": 31}),
        made("kernel", ts=1, **{"external id": 0}), made("hip_runtime", ts=2, **{"External id": 0}),
    ]  # fmt: skip
    table = read_events(*events)
    assert notes(table) == {"joined_by_external_id": 1}
    assert table.host.correlation[0] == table.device.correlation[0] >= 0
    assert (table.host.correlation[1], table.device.correlation[1]) == (NONE, NONE)
    mixed = read_events(*events, made("cuda_runtime", ts=9, correlation=1))
    assert mixed.device.correlation.tolist() == [NONE, NONE]


def test_sequence_numbers_and_modules(read_events: Any) -> None:
    table = read_events(
        made("cpu_op", "AddmmBackward0", **{"Sequence number": 12, "Fwd thread id": 1}),
        made("python_function", "nn.Module: Linear_3", ts=1, **{"Python module id": 3}), made("cpu_op", ts=2),
    )  # fmt: skip
    assert table.host.sequence.tolist() == [12, NONE, NONE]
    assert table.host.forward_thread.tolist() == [1, NONE, NONE]
    assert table.host.module_id.tolist() == [NONE, 3, NONE]


def test_host_spans_are_in_order_of_thread_start_length_and_file(read_events: Any) -> None:
    table = read_events(
        made("cpu_op", "b", ts=5, dur=0), made("cpu_op", "late", ts=9, dur=1), made("cpu_op", "outer", ts=5, dur=4),
        made("cpu_op", "other", ts=0, tid=2), made("cpu_op", "twin 1", ts=5, dur=2),
        made("cpu_op", "twin 2", ts=5, dur=2),
        made("cpu_op", "b2", ts=5, dur=0),
    )  # fmt: skip
    names = [table.names[i] for i in table.host.name]
    assert names == ["outer", "twin 1", "twin 2", "b", "b2", "late", "other"]


def arrow(ph: str, key: Any, tid: int, ts: float, cat: str | None = "fwdbwd", name: str = "fwdbwd") -> dict[str, Any]:
    return {"ph": ph, "id": key, "pid": 9, "tid": tid, "ts": ts, "cat": cat, "name": name, "bp": "e"}


def test_arrows_from_forward_to_backward(read_events: Any) -> None:
    table = read_events(
        arrow("f", 2**60 + 1, 20, 50.5), arrow("s", 2**60 + 1, 10, 1.25), arrow("s", "7", 10, 2), arrow("f", 7, 20, 40),
        arrow("s", 1, 10, 3, None, "forward_backward"), arrow("f", 1, 20, 30, "", "forward_backward"),
        arrow("s", 99, 10, 4), arrow("f", 98, 20, 4),
        arrow("s", 5, 10, 4, "ac2g", "ac2g"), arrow("f", 5, 0, 4, "ac2g", "ac2g"),
    )  # fmt: skip
    flows = table.flows
    pairs = sorted(zip(flows.from_ns.tolist(), flows.to_ns.tolist(), strict=True))
    assert pairs == [(1250, 50500), (2000, 40000), (3000, 30000)]
    assert {table.thread_ids[i] for i in flows.from_thread} == {"10"}
    assert {table.thread_ids[i] for i in flows.to_thread} == {"20"}
    assert notes(table) == {"unmatched_flows": 2}


def test_odd_threads_and_huge_whole_numbers_cost_only_themselves(read_events: Any) -> None:
    table = read_events(
        made("cpu_op", "a", ts=1, tid={"a": 1}), made("cpu_op", "b", ts=2, tid=[1]), made("cpu_op", "c", ts=3),
        made("cpu_op", "d", ts=10**30), made("cpu_op", "e", ts=5, dur=2**63), made("kernel", "k", ts=2**62),
    )  # fmt: skip
    starts = {table.names[i]: start for i, start in zip(table.host.name, table.host.start_ns.tolist(), strict=True)}
    assert starts == {"a": 1000, "b": 2000, "c": 3000, "e": 5000}
    assert notes(table) == {"missing_start": 2, "missing_duration": 1}


def test_an_odd_event_costs_only_itself(read_events: Any) -> None:
    good = made("kernel", "k", ts=1.5, dur=2.25, device=0, correlation=3)
    table = read_events(
        good, None, 5, "text", [good], {**good, "args": "none"}, {**good, "args": [1]},
        {**good, "name": 7}, {**good, "name": None},
        {**good, "ph": 1}, {**good, "args": None}, {}, good,
        {**made("cpu_op", "aten::mm", dur="3"), "cat": "cpu_op", "name": "aten::mm",
         "args": {"Input Dims": [[2, 2]], "Input type": ["float"], "Sequence number": "4"}, "id": {}},
        {**made("cpu_op", 8, **{"Input Dims": [[2, 2]], "Input type": ["float"]})},
    )  # fmt: skip
    assert table.events == 15
    assert len(table.device) == 7  # two good ones; args of odd types, twice; odd names, twice; args null
    assert set((table.device.end_ns - table.device.start_ns).tolist()) == {2250}
    assert {table.names[i] for i in table.device.name} == {"k", "7", ""}
    assert [table.names[i] for i in table.host.name] == ["aten::mm", "8"]
    assert table.host.sequence.tolist() == [4, NONE]
    assert [str(table.signatures[i].operands[0]) for i in table.host.signature] == ["2x2 float32"] * 2
    assert table.host.signature.min() >= 0
    assert notes(table)["odd_events"] == 10


def test_durations_that_are_missing_or_negative_count_as_zero(read_events: Any) -> None:
    event = made("kernel", "k", ts=5)
    del event["dur"]
    table = read_events(event, made("kernel", ts=6, dur=-3), made("kernel", ts=7, dur="x"), made("kernel", ts=8, dur=1))
    assert (table.device.end_ns - table.device.start_ns).tolist() == [0, 0, 0, 1000]
    assert notes(table) == {"missing_duration": 2, "negative_duration": 1}


def test_notes_are_counted_once_when_a_chunk_is_read_again_as_text(read_text: Any) -> None:
    events = [made("kernel", ts=1, dur=-1), {**made("kernel", ts=2), "args": 5}, made("cpu_op", ts=3)]
    text = json.dumps(events).replace('"ts": 3', '"ts": 1712195495505582.988')
    table = read_text(text)
    assert table.host.start_ns.tolist() == [1712195495505582988]
    assert notes(table) == {"negative_duration": 1, "odd_events": 1}


def test_launches_without_any_kernel_are_noted(read_events: Any) -> None:
    assert notes(read_events(made("cuda_runtime", correlation=1), made("cpu_op"))) == {"no_kernels": 1}
    assert notes(read_events(made("cpu_op"))) == {}


def test_counters_in_place_of_kernels_are_said_to_be_that(read_events: Any) -> None:
    table = read_events(made("cuda_runtime", correlation=1), made("cuda_profiler_range", "r", ts=1))
    assert notes(table) == {"counters_only": None}
    assert notes(read_events(made("cuda_profiler_range"), made("kernel"))) == {}


def test_categories_that_nobody_knows_are_noted(read_events: Any) -> None:
    table = read_events(made("cpu_op"), made("lunar_work"), made("tidal_work"), made("lunar_work"))
    assert notes(table) == {"unknown_categories": 2}
    assert table.notes[0].text == "events of unknown categories are left out: lunar_work, tidal_work"


def test_backends_that_renamed_privateuse1_launch_too(read_events: Any) -> None:
    table = read_events(made("npu_runtime", "l", correlation=3), made("npu_driver", "m"), made("kernel", correlation=3))
    assert table.host.kind.tolist() == [HostKind.LAUNCH] * 2
    assert table.device.correlation[0] in table.host.correlation


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": []}', ' {"a": 1, "traceEvents" : [ \n ] , "b": 2}'])
def test_no_events_are_an_empty_table(read_text: Any, text: str) -> None:
    table = read_text(text)
    assert (len(table.host), len(table.device), len(table.flows.from_ns), table.events) == (0, 0, 0, 0)
    assert table.notes == ()


def test_the_scopes_of_a_capture_and_its_facts(read_events: Any) -> None:
    table = read_events(
        made("cpu_op", "torchroof: ", ts=0, dur=9), made("user_annotation", "torchroof: fc1", ts=1, dur=3),
        torchroof={"version": 1}, deviceProperties=[],
    )  # fmt: skip
    assert kinds(table) == {"": HostKind.SCOPE, "fc1": HostKind.SCOPE}
    assert table.metadata == {"schemaVersion": 1, "torchroof": {"version": 1}, "deviceProperties": []}
    assert table.source == "made.json"


def test_operands_of_annotations_are_not_kept(read_events: Any) -> None:
    shapes = {"Input Dims": [[2]], "Input type": ["float"]}
    table = read_events(made("user_annotation", **shapes), made("cpu_op", "ProfilerStep#1", ts=1, **shapes))
    assert table.signatures == ()
    assert table.host.signature.tolist() == [NONE, NONE]


def test_an_arrow_without_a_time_has_no_end_there(read_events: Any) -> None:
    table = read_events(arrow("s", 1, 10, 1), arrow("f", 1, 20, "soon"))  # type: ignore[arg-type]
    assert len(table.flows.from_ns) == 0
    assert notes(table) == {"unmatched_flows": 1}


def test_one_kernel_and_a_copy_may_share_correlation_zero(read_events: Any) -> None:
    table = read_events(made("kernel", correlation=0), made("gpu_memcpy", ts=1, correlation=0))
    assert table.device.correlation.tolist() == [0, 0]
    assert table.notes == ()


def test_an_odd_event_keeps_its_exact_time(read_text: Any) -> None:
    table = read_text('[{"ph":"X","cat":"kernel","name":7,"pid":0,"tid":7,"ts":1712195495505582.988,"dur":1.001}]')
    assert table.device.start_ns.tolist() == [1712195495505582988]
    assert table.device.end_ns.tolist() == [1712195495505583989]


def test_device_spans_that_start_together_are_in_order_of_what_they_are(read_events: Any) -> None:
    """The shorter first, then the lower stream, then the one launched first; the file's order tells nothing."""
    rows = (("e", 0, 7, 9), ("d", 1, 7, 1), ("c", 1, 7, 2), ("b", 1, 20, 0), ("a", 2, 7, 0), ("aa", 2, 7, 0))
    spans = [made("kernel", name, ts=1, dur=dur, stream=s, correlation=c) for name, dur, s, c in rows]
    for given in (spans, spans[::-1], spans[3:] + spans[:3]):
        table = read_events(*given)
        assert "".join(table.names[i] for i in table.device.name) == "edcbaaa"


def test_of_ops_with_the_same_times_the_one_called_first_is_around_the_others(read_events: Any) -> None:
    """By the id that each got when it was called; in files of whole microseconds short ops end as they begin."""
    ops = [made("cpu_op", name, ts=5, dur=3, **{"External id": i}) for i, name in enumerate("zyx", start=9)]
    for given in (ops, ops[::-1]):
        table = read_events(*given)
        assert "".join(table.names[i] for i in table.host.name) == "zyx"

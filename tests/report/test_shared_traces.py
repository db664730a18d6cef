"""Every public trace: both ledgers close, and the join agrees with a witness that shares no code with us."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random

import laws
import numpy as np
import pytest
import shares

from torchroof.join.attribute import attribute
from torchroof.join.columns import pick
from torchroof.join.timeline import Coverage
from torchroof.report.build import analyse
from torchroof.trace.reader import read
from torchroof.trace.table import NONE, DeviceKind
from torchroof.work.standard import STANDARD

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
FILES = sorted(path.name.removesuffix(".json.gz") for path in TRACES.glob("*.json.gz")) or ["absent"]

pytestmark = [pytest.mark.shared, pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not here")]


@cache
def table_of(name: str):
    return read(TRACES / f"{name}.json.gz")


@cache
def report_of(name: str):
    return analyse(table_of(name))


@cache
def expected():
    return json.loads((TRACES / "expected.json").read_text())


@pytest.mark.parametrize("name", FILES)
def test_the_laws_hold(name):
    laws.check(report_of(name))


@pytest.mark.parametrize("name", FILES)
def test_no_order_of_events_changes_a_figure(name, tmp_path):
    with gzip.open(TRACES / f"{name}.json.gz", "rt", encoding="utf-8", errors="surrogateescape") as file:
        content = json.load(file)
    events = content if isinstance(content, list) else content["traceEvents"]
    file = tmp_path / f"{name}.json.gz"
    reports = []
    for _ in range(2):
        file.write_bytes(gzip.compress(json.dumps(content).encode("utf-8", "surrogateescape"), 1))
        reports.append(analyse(read(file)))
        Random(len(events)).shuffle(events)
    assert reports[0] == reports[1]


@pytest.mark.parametrize("name", FILES)
def test_kernels_agree_with_the_witness(name):
    witness, data = expected()[name], report_of(name)
    if not witness["kernels"]:
        assert data.totals.kernels is None or not data.devices[0].ceilings
        return
    assert data.totals.kernels == witness["kernels"]
    assert data.totals.kernel_ns == pytest.approx(witness["kernel_us_sum"] * 1000, abs=2)
    assert len({k.name for k in data.kernels}) == witness["distinct_kernel_names"]


@pytest.mark.parametrize("name", FILES)
def test_launches_and_ops_agree_with_the_witness(name):
    """The innermost op around each launch, counted and timed by an independent script."""
    witness, table = expected()[name], table_of(name)
    if not witness["kernels"]:
        return
    found = attribute(table, STANDARD.role)
    kernels, nest = found.kernels, found.nest
    no_launch = kernels.launch_thread == NONE
    op = pick(nest.op, kernels.anchor)
    # The witness takes every event of category cpu_op for an op; to us compiled regions are annotations.
    region = pick(nest.name, kernels.anchor)
    regions = [i for i, text in enumerate(table.names) if text.startswith("Torch-Compiled Region")]
    op = np.where((op == NONE) & np.isin(region, regions), kernels.anchor, op)
    assert int(no_launch.sum()) == witness["kernels_without_runtime_event"]
    assert int((op != NONE).sum()) == witness["kernels_joined_to_cpu_op"]
    assert int(((op == NONE) & ~no_launch).sum()) == witness["kernels_launched_outside_any_cpu_op"]
    by_op: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for position, ns in zip(op.tolist(), kernels.ns.tolist(), strict=True):
        if position != NONE:
            by_op[table.names[nest.name[position]]] += ns
            count[table.names[nest.name[position]]] += 1
    for text, kernels_of_op, microseconds in witness["top_ops_by_kernel_us"]:
        assert count[text] == kernels_of_op
        assert by_op[text] == pytest.approx(microseconds * 1000, abs=2)


@pytest.mark.parametrize("name", FILES)
def test_unions_and_graph_launches_agree_with_the_witness(name):
    """Per stream and per device, with the interval arithmetic that divides a step."""
    witness, device = expected()[name], table_of(name).device
    if not witness["kernels"]:
        return

    def union(chosen, keys):
        keys = np.stack(keys)[:, chosen]
        groups = {tuple(column) for column in keys.T.tolist()}
        here = [chosen & (np.stack(all_keys) == np.array(group)[:, None]).all(axis=0) for group in groups]
        covers = [Coverage.of(device.start_ns[h], device.end_ns[h]) for h in here]
        return sum(int((c.end_ns - c.start_ns).sum()) for c in covers)

    # The witness reckons in microseconds as floats, which round each start and each end.
    rounding = 2 + len(device) * 2000 * float(np.spacing(device.end_ns.max() / 1000))
    kernels, everything = device.kind == DeviceKind.KERNEL, np.ones(len(device), dtype=bool)
    all_keys = (device.device, device.stream)
    assert union(kernels, all_keys) == pytest.approx(witness["kernel_us_union_per_stream"] * 1000, abs=rounding)
    all_keys = (device.device,)
    assert union(everything, all_keys) == pytest.approx(witness["gpu_busy_us_union_per_device"] * 1000, abs=rounding)
    replayed = {u.reason: u.kernels for u in report_of(name).unattributed}.get("graph replay", 0)
    assert replayed == witness["kernels_from_graph_launch"]


def test_the_share_with_an_op_and_with_a_layer_is_what_it_was():
    """Every file, the malformed ones too. A changed figure needs its reason: see shares.py for how to write it."""
    golden = Path(__file__).with_name("golden_shares.txt").read_text(encoding="utf-8").splitlines()
    assert list(shares.table(TRACES)) == golden


@pytest.mark.parametrize(
    "defect", ["d01-truncated-mid-event", "d05-bare-nan", "d07-unescaped-quote-newline", "d09-trailing-comma",
               "d11-kernel-correlation-zero", "d15-utf8-bom"]
)  # fmt: skip
def test_a_defect_that_leaves_the_kernels_whole_costs_no_nanosecond(defect):
    data = analyse(read(TRACES / "malformed" / f"{defect}.json.gz", partial=True))
    laws.check(data)
    witness = expected()["hta-event-sync-multistream-202404"]
    assert (data.totals.kernels, data.totals.kernel_ns) == (witness["kernels"], witness["kernel_us_sum"] * 1000)
    assert data.notes[0].kind in {"truncated", "mended", "zero_correlation", "byte_order_mark"}


def test_the_same_model_has_the_same_work_on_two_vendors():
    """BERT on an H100 and on an MI300X: every op with FLOPs or bytes has the same work in the same layer."""
    h100, mi300 = (
        {
            (r.path, r.phase, r.op, r.precision): (r.calls, r.flops, r.bytes_read, r.bytes_written)
            for r in report_of(f"tl-{device}-bert-small-202507").rows
            if r.flops is not None or r.bytes_read is not None
        }
        for device in ("h100", "mi300")
    )
    assert h100 == mi300
    assert len(h100) > 40


def test_bert_is_owned_and_modelled_whole():
    data = report_of("tl-h100-bert-small-202507")
    assert data.totals.layered_ns == data.totals.kernel_ns == 307_197
    assert data.totals.flops_known_ns == data.totals.bytes_known_ns == 307_197
    name = "BertSdpaSelfAttention_0.Linear_0"
    query = [r for r in data.rows if r.op == "aten::addmm" and r.path and r.path.endswith(name)]
    # 141 tokens of 512 features into 512: 141 x 512 x 512 multiply-adds.
    assert [r.flops for r in query] == [2 * 141 * 512 * 512]
    # bfloat16: bias 512, tokens 141 x 512, weight 512 x 512 read; 141 x 512 written.
    assert [r.bytes_read for r in query] == [2 * (512 + 141 * 512 + 512 * 512)]
    assert [r.bytes_written for r in query] == [2 * 141 * 512]


def test_a_file_whose_kernels_were_lost_says_so():
    data = report_of("zoology-nokernels-202310")
    assert data.totals.kernels is None and data.totals.kernel_ns is None
    assert "device activity lost" in {n.kind for n in data.notes}


@pytest.mark.parametrize(
    ("name", "around", "replayed"),
    [
        # The op has the External id that the launch and all 420 kernels carry, too.
        ("ao-sam-amg-graph-202410", "Torch-Compiled Region", 420),
        # No op around the launch, but a range of vLLM's.
        ("tl-vllm-decode-graph-202603", "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32", 421),
    ],
)
def test_graph_replays_keep_what_was_around_their_launch(name, around, replayed):
    data = report_of(name)
    assert {u.reason: u.kernels for u in data.unattributed}["graph replay"] == replayed
    assert sum(k.kernels for k in data.kernels if k.op and k.op.startswith(around)) == replayed


def test_graph_replays_are_named_and_owned_by_no_layer():
    data = report_of("tl-vllm-decode-graph-202603")
    assert {u.reason: u.kernels for u in data.unattributed}["graph replay"] == 421
    witness = Counter()
    with gzip.open(TRACES / "tl-vllm-decode-graph-202603.json.gz") as file:
        events = json.load(file)["traceEvents"]
    for event in events:
        if event.get("cat") == "kernel":
            witness[event["name"]] += 1
    listed = Counter()
    for kernel in data.kernels:
        listed[kernel.name] += kernel.kernels
    assert listed == witness

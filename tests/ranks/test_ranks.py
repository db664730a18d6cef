"""Several ranks together: a simulated job's truth, bad files, executors, and whose rank is whose."""

from __future__ import annotations

import gzip
import os
import shutil
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from statistics import median

import msgspec
import pytest
from job_maker import make_job, save
from trace_maker import TraceMaker

import torchroof
from torchroof.errors import OptionError, TraceError
from torchroof.ranks import running
from torchroof.ranks.merge import rank_numbers
from torchroof.ranks.model import RanksData
from torchroof.ranks.one import RankFile
from torchroof.views.terminal import plain_text


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory):
    made = make_job(11, ranks=4, steps=3)
    return made, save(made, tmp_path_factory.mktemp("job"))


@pytest.fixture
def threads():
    with ThreadPoolExecutor(3) as pool:
        yield pool


def test_the_truth_of_a_job_comes_out(job, threads: Executor) -> None:
    ranks, paths = job
    data = torchroof.analyze_ranks(paths, executor=threads).data
    assert data.world_size == 4
    assert [r.rank for r in data.ranks] == [0, 1, 2, 3]
    for rank, found in zip(ranks, data.ranks, strict=True):
        truth = rank.truth
        assert found.kernel_ns == truth.by("ns").total()
        assert (found.waiting_ns, found.moving_ns) == (truth.waiting, truth.moving)
        assert found.waiting_ns + found.moving_ns == found.collective_ns
    (collective,) = data.collectives
    assert (collective.calls, collective.waiting_ns) == (3, sum(r.truth.waiting for r in ranks))
    assert sum(r.waited_for_ns for r in data.ranks) == collective.waiting_ns
    layers = {layer.label: layer.kernel_ns for layer in data.layers}
    for path in ("net.0", "net.1", "head"):
        times = [
            sum(ns for key, ns in rank.truth.by("ns").items() if key[0] == path) / 3
            for rank in ranks
            if any(key[0] == path for key in rank.truth.by("ns"))
        ]
        spread = layers[path]
        assert (spread.min, spread.median, spread.max) == pytest.approx((min(times), median(times), max(times)))


def test_every_executor_gives_the_same(job, threads: Executor, tmp_path: Path) -> None:
    _, paths = job
    seen: list[tuple[int, int]] = []
    by_threads = torchroof.analyze_ranks(paths, executor=threads, progress=lambda *p: seen.append(p)).data
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert torchroof.analyze_ranks(paths).data == by_threads  # processes, where there are two cores
    assert torchroof.analyze_ranks(paths[0].parent, executor=threads).data == by_threads
    assert torchroof.analyze_ranks(list(reversed(paths)), executor=threads).data == by_threads


def test_without_all_ranks_nobody_knows_who_waited(job, threads: Executor) -> None:
    data = torchroof.analyze_ranks(job[1][:3], executor=threads).data
    assert [(r.waiting_ns, r.moving_ns, r.waited_for_ns) for r in data.ranks] == [(None, None, None)] * 3
    assert all(r.collective_ns for r in data.ranks)
    table = str(torchroof.analyze_ranks(job[1][:3], executor=threads)).splitlines()
    row = next(line.split() for line in table if line.endswith("rank1.json"))
    assert (row[-5], row[-4], row[-2]) == ("?", "?", "?")


def test_it_survives_being_saved(job, threads: Executor, tmp_path: Path) -> None:
    report = torchroof.analyze_ranks(job[1], executor=threads)
    report.save(tmp_path / "ranks.json.gz")
    text = gzip.decompress((tmp_path / "ranks.json.gz").read_bytes())
    assert text.decode().rstrip() == report.to_json()
    assert msgspec.json.decode(text, type=RanksData) == report.data
    assert "4 ranks" in str(report) and "<pre" in report._repr_html_()
    assert repr(report) == "<torchroof.RanksReport: 4 ranks>"


def test_a_slow_rank_is_named_with_its_layer(tmp_path: Path, threads: Executor) -> None:
    """Rank 2 comes 9 us later than the others to an all-reduce, because its layer takes 9 us longer."""
    for rank in range(3):
        late = 9000 if rank == 2 else 0
        trace = TraceMaker(metadata={"distributedInfo": {"rank": rank, "world_size": 3}})
        trace.step(1, 0, 30_000)
        trace.scope("net.fc", 100, 900)
        trace.op("aten::mm", 200, 800)
        trace.launch(300, "gemm", 1000, 5000 + late)
        trace.op("record_param_comms", 910, 990)
        trace.launch(920, "ncclDevKernel_AllReduce_Sum_f32(x)", 5000 + late, 20_000, stream=20)
        trace.save(tmp_path, f"{rank}.json")
    data = torchroof.analyze_ranks(tmp_path, executor=threads).data
    assert data.straggler is not None
    assert (data.straggler.rank, data.straggler.ns) == (2, 9000)
    assert data.straggler.text == (
        "the others wait for rank 2, 9 µs of each step: 100% of all waiting; "
        "it is slowest in net.fc, whose kernels take longer there"
    )
    assert [r.waiting_ns for r in data.ranks] == [9000, 9000, 0]


def test_equal_ranks_have_no_straggler(job, tmp_path: Path, threads: Executor) -> None:
    for i in range(3):
        shutil.copy(job[1][0], tmp_path / f"same{i}.json")
    data = torchroof.analyze_ranks(tmp_path, executor=threads).data
    assert data.straggler is None
    assert [r.rank for r in data.ranks] == [0, 1, 2]
    assert data.notes[0].startswith("several files are of the same rank")


def test_bases_that_differ_are_taken_into_account(job, tmp_path: Path, threads: Executor) -> None:
    ranks, _ = job
    before = torchroof.analyze_ranks(save(ranks, tmp_path), executor=threads).data
    moved = make_job(11, ranks=4, steps=3)
    for event in moved[1].trace.events:
        event["ts"] += 5000
    moved[1].trace.metadata["baseTimeNanoseconds"] -= 5_000_000
    after = torchroof.analyze_ranks(save(moved, tmp_path), executor=threads).data
    assert after.ranks == before.ranks


def test_a_bad_file_is_one_row_and_the_rest_goes_on(job, tmp_path: Path, threads: Executor) -> None:
    paths = [shutil.copy(path, tmp_path) for path in job[1]]
    Path(paths[1]).write_text("no trace")
    text = Path(paths[2]).read_text()
    Path(paths[2]).write_text(text[: len(text) // 2])
    data = torchroof.analyze_ranks(paths, executor=threads).data
    assert [bool(r.fault) for r in data.ranks] == [False, True, False, False]
    assert [r.cut for r in data.ranks] == [False, False, True, False]
    assert data.ranks[1].fault == "rank1.json is not JSON; a Kineto trace is a JSON object with traceEvents"
    assert data.collectives[0].unsplit == "3 of 4 ranks are here"
    assert data.ranks[0].waiting_ns is None and data.ranks[0].collective_ns
    words = str(torchroof.analyze_ranks(paths, executor=threads)).split()  # however wide the terminal is
    assert "not read: rank1.json" in " ".join(words)


def test_no_figure_is_cut_in_a_terminal_of_80_cells(job, threads: Executor) -> None:
    page = torchroof.analyze_ranks(job[1], executor=threads).page()
    narrow, wide = (
        {word for line in plain_text(page, width).splitlines() for word in line.split() if word[0].isdigit()}
        for width in (80, 200)
    )
    assert "…" not in plain_text(page, 80)
    assert narrow >= {word for word in wide if "." in word}


def test_no_file_that_can_be_read_is_an_error(tmp_path: Path, threads: Executor) -> None:
    with pytest.raises(TraceError, match="holds no trace"):
        torchroof.analyze_ranks(tmp_path)
    with pytest.raises(TraceError, match="no trace was given"):
        torchroof.analyze_ranks([])
    with pytest.raises(TraceError, match=r"a\.json: no such file.*; so with 1 more files"):
        torchroof.analyze_ranks([tmp_path / "a.json", tmp_path / "b.json"], executor=threads)
    with pytest.raises(OptionError, match="choose one of auto, annotations"):
        torchroof.analyze_ranks(tmp_path, layers_from="stacks")


def test_reports_among_the_traces_are_not_read(job, tmp_path: Path, threads: Executor) -> None:
    paths = [shutil.copy(path, tmp_path) for path in job[1][:2]]
    torchroof.analyze(paths[0]).save(tmp_path / "torchroof.report.json")
    torchroof.analyze(paths[0]).save(tmp_path / "torchroof.report.json.gz")
    (tmp_path / "notes.txt").write_text("x")
    assert [path.name for path in running.traces_in(tmp_path)] == ["rank0.json", "rank1.json"]


class Dying(Executor):
    """A pool whose worker is killed by one file, as by the system when memory runs out."""

    def submit(self, work, *args, **_):
        future: Future = Future()
        if "rank2" in args[0]:
            future.set_exception(BrokenProcessPool("a process was terminated abruptly"))
        else:
            future.set_result(work(*args))
        return future


def test_a_worker_that_dies_costs_only_its_own_file(job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_pool", lambda workers: Dying())
    data = torchroof.analyze_ranks(job[1], executor=Dying()).data
    assert [bool(r.fault) for r in data.ranks] == [False, False, True, False]
    assert "the process that read it ended early" in (data.ranks[2].fault or "")
    monkeypatch.undo()
    assert not any(r.fault for r in torchroof.analyze_ranks(job[1], executor=Dying()).data.ranks)


def _exit(path: str, options: object) -> RankFile:
    os._exit(1)


def test_a_process_that_really_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(running, "analyse_rank", _exit)
    with ProcessPoolExecutor(1, mp_context=running.multiprocessing.get_context("spawn")) as pool:
        (found,) = running.analyse_ranks([tmp_path / "x.json"], running.Options(), pool)
    assert found.fault is not None and found.fault.startswith("x.json: the process that read it ended early")


@pytest.mark.parametrize(
    ("files", "numbers", "clash"),
    [
        ([("a.json", 3), ("b.json", 1)], [3, 1], False),
        ([("x_rank7.json", None), ("x-rank-2.json.gz", None), ("RANK_0.json", None)], [7, 2, 0], False),
        ([("x_rank7.json", 5)], [5], False),
        ([("a.json", None), ("b.json", 0), ("c.json", None)], [1, 0, 2], False),
        ([("a.json", 0), ("b.json", 0), ("c.json", None)], [0, 1, 2], True),
        ([("frank12000000.json", None)], [0], False),
    ],
)
def test_whose_rank_is_whose(files: list[tuple[str, int | None]], numbers: list[int], clash: bool) -> None:
    assert rank_numbers([RankFile(f"/t/{name}", rank=rank) for name, rank in files]) == (numbers, clash)


@pytest.mark.shared
def test_real_ranks_of_one_job(shared_traces: Path, threads: Executor) -> None:
    paths = [shared_traces / f"param-dlrm-rank{i}-202309.json.gz" for i in (0, 1)]
    data = torchroof.analyze_ranks(paths, executor=threads).data
    assert [(r.rank, r.kernel_ns) for r in data.ranks] == [(0, 6_832_000), (1, 12_582_000)]
    assert data.world_size == 8
    assert "2 of 8 ranks are here" in data.notes
    assert all(c.unsplit == "2 of 8 ranks are here" for c in data.collectives)

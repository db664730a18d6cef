"""Equal layers on one line: who is folded with whom, what stays out, and what the pattern says."""

from __future__ import annotations

import math

import pytest
from reading import layer, report, row

from torchroof.report.fold import Times, folds
from torchroof.report.lenses import lines
from torchroof.report.model import Layer, Tensor


def patterns(times: Times, layers: list[Layer] | None = None) -> dict[str, int]:
    found = folds([layer(path) for path in times] if layers is None else layers, times)
    return {fold.pattern: len(fold.paths) for fold in found}


def test_twelve_equal_layers_are_one_line_with_their_sums() -> None:
    # Twelve fc1 of 1000 ns and twelve fc2 of 300: 12,000 and 3,600 ns; calls and FLOPs (1 per ns) add up likewise.
    rows = [row(f"encoder.layer.{i}.{name}", ns) for i in range(12) for name, ns in (("fc1", 1000), ("fc2", 300))]
    first, second = lines(report(rows), fold=True).lines
    assert (first.label, second.label) == ("encoder.layer.[0–11].fc1 ×12", "encoder.layer.[0–11].fc2 ×12")
    assert first.path == "encoder.layer.[0–11].fc1" and first.members == 12 and first.type == "Linear"
    assert (first.kernel_ns, first.calls, first.kernels, first.flops) == (12_000, 12, 12, 12_000)
    assert (first.bytes, first.floor_ns, first.headroom_ns) == (12 * 120, 6_000, 6_000)
    assert first.efficiency == 0.5 and second.kernel_ns == 3_600
    assert len(lines(report(rows)).lines) == 24, "folding is asked for"


@pytest.mark.parametrize(("slow", "inside"), [(1200, True), (1201, False), (800, True), (799, False)])
def test_more_than_a_fifth_off_the_median_stays_out(slow: int, inside: bool) -> None:
    times = {f"layer.{i}.fc": 1000.0 for i in range(12)} | {"layer.5.fc": float(slow)}
    assert patterns(times) == ({"layer.[0–11].fc": 12} if inside else {"layer.[0–4,6–11].fc": 11})


def test_what_is_slow_in_some_steps_only_is_noise() -> None:
    steps = {f"layer.{i}.fc": (1000.0, 2000.0, 3000.0) for i in range(12)}
    # Against the median of its own step: three times it in one step, then a fifth and a bit over it in every one.
    noisy = steps | {"layer.5.fc": (3000.0, 2000.0, 3000.0)}
    slow = steps | {"layer.5.fc": (1201.0, 2401.0, 3601.0)}
    assert patterns(noisy) == {"layer.[0–11].fc": 12}
    assert patterns(slow) == {"layer.[0–4,6–11].fc": 11}
    rows = [row(f"a.{i}", 300, kernel_ns_per_step=(290, 10) if i else (100, 200)) for i in range(5)]
    (line,) = lines(report(rows), fold=True).lines
    # Slower than the others in one step, quicker in the other.
    assert line.label == "a.[0–4] ×5"


def test_layers_that_are_slow_alike_are_a_line_of_their_own() -> None:
    # Eight of 1000, three of 2000: the median of eleven is 1000, and the three are equal among themselves.
    times = {f"layer.{i}.fc": 2000.0 if i in (2, 5, 9) else 1000.0 for i in range(11)}
    assert patterns(times) == {"layer.[0–1,3–4,6–8,10].fc": 8, "layer.[2,5,9].fc": 3}


def test_two_are_no_group() -> None:
    assert patterns({"a.0": 1.0, "a.1": 1.0}) == {}
    assert patterns({"a.0": 1.0, "a.1": 1.0, "a.2": 9.0}) == {}
    assert patterns({"a.0": 1.0, "a.1": 1.0, "a.2": 1.0}) == {"a.[0–2]": 3}


def test_time_is_per_call() -> None:
    # 3000 ns in three calls is 1000 a call, as the others.
    rows = [row(f"cell.{i}", 3000 if i == 1 else 1000) for i in range(4)]
    layers = [layer(f"cell.{i}", calls=3 if i == 1 else 1) for i in range(4)]
    (line,) = lines(report(rows, layers), fold=True).lines
    assert (line.label, line.calls, line.kernel_ns) == ("cell.[0–3] ×4", 6, 6000)


def test_other_classes_and_other_parameters_are_other_layers() -> None:
    times = {f"seq.{i}": 5.0 for i in range(8)}
    kinds = [layer(f"seq.{i}", "Linear" if i % 2 else "ReLU") for i in range(8)]
    assert patterns(times, kinds) == {"seq.[0,2,4,6]": 4, "seq.[1,3,5,7]": 4}
    wide = [layer(f"seq.{i}", parameters=(Tensor((64 if i < 4 else 128, 64), "float32"),)) for i in range(8)]
    assert patterns(times, wide) == {"seq.[0–3]": 4, "seq.[4–7]": 4}


def test_numbers_in_several_places() -> None:
    full = {f"stage.{s}.block.{b}.conv": 7.0 for s in range(2) for b in range(3)}
    assert patterns(full) == {"stage.[0–1].block.[0–2].conv": 6}
    # Two blocks in the stages 0 and 1, four in stage 2: no product of numbers, so two patterns (4 and 4 layers).
    uneven = {f"stage.{s}.block.{b}.conv": 7.0 for s in range(3) for b in range(4 if s == 2 else 2)}
    assert patterns(uneven) == {"stage.[0–1].block.[0–1].conv": 4, "stage.2.block.[0–3].conv": 4}


def test_a_number_in_a_name_is_no_position() -> None:
    assert patterns({f"fc{i}": 1.0 for i in range(5)}) == {}
    assert patterns({f"a.0{i}": 1.0 for i in range(5)}) == {}, "00 and 0 would be the same number"


def test_many_gaps_are_told_by_first_and_last() -> None:
    assert patterns({f"layer.{i}": 1.0 for i in range(0, 20, 2)}) == {"layer.[0,…,18]": 10}


def counted(layers: int) -> dict[str, float]:
    """Paths as torch's own profiler makes them: two Linear per layer, numbered over the whole model."""
    times: dict[str, float] = {}
    for i in range(layers):
        inner = f"Bert_0.BertLayer_{i}.Mlp_{i}"
        times |= {f"{inner}.Linear_{2 * i}": 10.0, f"{inner}.Linear_{2 * i + 1}": 10.0}
    return times


def with_containers(times: dict[str, float]) -> list[Layer]:
    paths = {".".join(path.split(".")[:n]) for path in times for n in range(1, path.count(".") + 2)}
    return [layer(path, path.rpartition(".")[2].rpartition("_")[0]) for path in sorted(paths)]


def test_numbers_that_run_over_the_whole_model_are_told_apart_by_position() -> None:
    times = counted(12)
    assert patterns(times, with_containers(times)) == {
        "Bert_0.BertLayer_[0–11].Mlp_[0–11].Linear_[0,…,22]": 12,
        "Bert_0.BertLayer_[0–11].Mlp_[0–11].Linear_[1,…,23]": 12,
    }


def test_a_container_of_other_layers_is_no_equal() -> None:
    times = counted(5)
    odd = [*with_containers(times), layer("Bert_0.BertLayer_2.Mlp_2.Dropout_0", "Dropout")]
    # Mlp_2, and with it BertLayer_2, is built otherwise: its Linear_4 and Linear_5 stay out.
    assert patterns(times, odd) == {
        "Bert_0.BertLayer_[0–1,3–4].Mlp_[0–1,3–4].Linear_[0,2,6,8]": 4,
        "Bert_0.BertLayer_[0–1,3–4].Mlp_[0–1,3–4].Linear_[1,3,7,9]": 4,
    }


def test_flags_of_a_folded_table_are_of_its_lines() -> None:
    # 48 layers of 1000 ns and a head of 2000: no layer reaches 3 % of 50,000 ns but the head (2000 = 4 %); folded,
    # the 48 hold 48,000 of 50,000 ns and so more than half of all headroom alone.
    rows = [*(row(f"layers.{i}.fc", 1000) for i in range(48)), row("head", 2000)]
    folded = lines(report(rows), fold=True).lines
    assert [(line.label, line.flagged) for line in folded] == [("layers.[0–47].fc ×48", True), ("head", False)]
    assert folded[0].why == "under its compute roof (50%)"


def test_what_is_no_layer_is_flagged_too() -> None:
    # The optimizer holds 5000 of 6500 ns of headroom, alone more than half, so nothing else is flagged.
    rows = [*(row(f"a.{i}", 1000) for i in range(3)), row(None, 10_000, phase="optimizer", type=None)]
    folded = lines(report(rows), fold=True).lines
    assert [(line.label, line.flagged) for line in folded] == [("(optimizer)", True), ("a.[0–2] ×3", False)]


def test_times_that_all_differ_fold_nothing() -> None:
    times = {f"layer.{i}": math.exp(i) for i in range(300)}
    assert patterns(times) == {}

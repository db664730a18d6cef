"""Which steps count: those from the first on that ran nothing new."""

from trace_maker import TraceMaker

from torchroof.report.build import analyse
from torchroof.trace.reader import read

STEP = 10_000


def gpu_run(folder, *kernels, counted=(1, 2, 3)):
    """One step for each list of kernel names; each kernel is launched by one op."""
    t = TraceMaker()
    t.metadata["torchroof"] = {"version": 1, "counted_steps": list(counted)}
    for number, names in enumerate(kernels):
        start = number * STEP
        t.step(number, start, start + STEP)
        for place, name in enumerate(names):
            at = start + 100 + 1000 * place
            t.op("aten::relu", at, at + 100, shapes=[[1000]])
            t.launch(at + 50, name, at + 200, at + 300)
    return analyse(read(t.save(folder)))


def counted(data):
    return [s.index for s in data.per_step if s.counted]


def note(data):
    return next((n.text for n in data.notes if n.kind == "steady state"), None)


def test_a_settled_run_counts_whole(tmp_path):
    data = gpu_run(tmp_path, ["a", "b"], ["a", "b"], ["b", "a"], ["a"])
    assert counted(data) == [1, 2, 3] and note(data) is None


def test_steps_that_run_new_kernels_at_the_front_do_not_count(tmp_path):
    data = gpu_run(tmp_path, ["a"], ["a", "b"], ["a", "c"], ["a", "b", "c"])
    assert counted(data) == [3] and data.steps == 1
    assert note(data) == "Steps 1, 2 do not count: they still ran things for the first time, such as c."
    assert data.totals.kernels == 8 and sum(r.kernels for r in data.rows) == 3  # the rest is outside counted steps


def test_something_new_after_a_settled_step_is_the_run_s_own_doing(tmp_path):
    assert counted(gpu_run(tmp_path, ["a"], ["a"], ["a", "b"], ["c"])) == [1, 2, 3]


def test_a_run_that_never_settles_counts_whole_and_says_so(tmp_path):
    data = gpu_run(tmp_path, ["a"], ["b"], ["c"], ["d"])
    assert counted(data) == [1, 2, 3] and "the last one d" in note(data)


def test_a_single_step_is_kept(tmp_path):
    assert counted(gpu_run(tmp_path, ["a"], ["b"], counted=[1])) == [1]


def test_a_file_that_is_not_ours_counts_all_its_steps(tmp_path):
    t = TraceMaker()
    for number in range(2):
        t.step(number, number * STEP, number * STEP + STEP)
        t.op("aten::relu", number * STEP + 10, number * STEP + 20, shapes=[[10]])
        t.launch(number * STEP + 15, f"kernel {number}", number * STEP + 30, number * STEP + 40)
    assert counted(analyse(read(t.save(tmp_path)))) == [0, 1]


def test_on_a_cpu_a_new_value_is_nothing_new(tmp_path):
    t = TraceMaker()
    t.metadata = {"torchroof": {"version": 1, "counted_steps": [1, 2]}}
    for number, value in enumerate(["1", "2", "3"]):
        t.step(number, number * STEP, number * STEP + STEP)
        t.op("aten::mul_", number * STEP + 10, number * STEP + 20, shapes=[[10], []], concrete=["", value])
    assert counted(analyse(read(t.save(tmp_path)))) == [1, 2]


def test_on_a_cpu_new_shapes_are_new(tmp_path):
    t = TraceMaker()
    t.metadata = {"torchroof": {"version": 1, "counted_steps": [1, 2]}}
    for number, size in enumerate([10, 11, 10]):
        t.step(number, number * STEP, number * STEP + STEP)
        t.op("aten::mul_", number * STEP + 10, number * STEP + 20, shapes=[[size], []])
    data = analyse(read(t.save(tmp_path)))
    assert counted(data) == [2] and "aten::mul_ 11" in note(data)

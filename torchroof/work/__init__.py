"""What ops have to do: FLOPs and bytes by formula.

Write a formula for an op of your own with `work_model`, and give it to `torchroof.profile` or `torchroof.analyze`::

    from torchroof.work import OpCall, Work, work_model


    @work_model("mylib::scaled_add", family="pointwise", words="2 per element; reads both, writes the result.")
    def scaled_add(call: OpCall) -> Work:
        a, b = call.tensor(0), call.tensor(1)
        return Work.of(2 * a.numel, [a, b], [a.dense()])


    torchroof.analyze("trace.json.gz", models=[scaled_add])

A package brings its formulas along by an entry point of the group `torchroof.work_models`: see
`torchroof.work.plugins`.
"""

from torchroof.tensors import DType, OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.registry import Model, Registry, work_model

__all__ = ["DType", "Model", "OpCall", "Registry", "TensorSpec", "Unknown", "Work", "work_model"]

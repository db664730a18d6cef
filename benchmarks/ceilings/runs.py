"""Are measured ceilings roofs? Five processes measure them and profile work whose place under them is known.

    python benchmarks/ceilings/runs.py [--runs 5] [--quick] > benchmarks/ceilings/cpu.json

Each run measures this CPU in a cache of its own, then profiles a large product in each element type, a copy far
beyond the caches and the same copy inside L2, and prints their efficiency and bound as the report has them, with
the load that other work put on the machine meanwhile. `README.md` beside this file has the outcome.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

DTYPES = ("float32", "float64", "bfloat16", "float16")
SHAPES = ((2048, 2048, 2048), (4096, 4096, 4096), (4096, 1024, 4096))
"""M, K and N of the products."""
FAR = 1 << 30
"""Bytes of the source of the copy that no cache holds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one_run(args.quick)))
        return
    runs = []
    for number in range(args.runs):
        runs.append(_in_a_process(args.quick))
        print(f"run {number + 1}: {json.dumps(runs[-1]['rows'])}", file=sys.stderr, flush=True)
    print(json.dumps({"runs": runs}, indent=1))


def _in_a_process(quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"TORCHROOF_CACHE_DIR": folder, "KINETO_LOG_LEVEL": "9"}
        command = [sys.executable, __file__, "--one", *(["--quick"] if quick else [])]
        run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def one_run(quick: bool) -> dict[str, Any]:
    import torch

    import torchroof
    from torchroof.measure.quiet import Moment

    start = Moment.now()
    calibrated = torchroof.calibrate("cpu", quick=quick, force=True)
    far, near = (tuple(torch.randn(size // 4) for _ in range(2)) for size in (FAR, 1 << 19))
    rows: dict[str, Any] = {}

    def profiled(name: str, op: str, repeats: int, run: Any) -> None:
        run()
        with torchroof.profile(schedule=torchroof.schedule(warmup=1, active=1)) as prof:
            for _ in range(2):
                for _ in range(repeats):
                    run()
                prof.step()
        data = prof.report.data
        row = next(r for r in data.rows if r.op == op)
        ceiling = data.devices[0].ceilings[row.ceiling] if row.ceiling is not None else None
        rows[name] = {
            "efficiency": None if row.efficiency is None else round(row.efficiency, 3),
            "bound": row.bound,
            "ceiling": ceiling and [ceiling.precision or ceiling.level, ceiling.pattern, ceiling.value],
        }

    for name in DTYPES:
        for m, k, n in SHAPES:
            a, b, out = _product(getattr(torch, name), m, k, n)
            profiled(f"{name} {m}x{k}x{n}", "aten::mm", 4, lambda a=a, b=b, out=out: torch.mm(a, b, out=out))
    profiled("copy far beyond the caches", "aten::copy_", 3, lambda: far[0].copy_(far[1]))
    profiled("the same copy inside L2", "aten::copy_", 400, lambda: near[0].copy_(near[1]))
    load = start.since() if start is not None else None
    return {
        "rows": rows,
        "ceilings": [
            [c.kind, c.precision or c.level, c.pipe or c.pattern, c.value, c.median_value] for c in calibrated.ceilings
        ],
        "conditions": dict(calibrated.data.conditions),
        "seconds": round(calibrated.data.seconds, 1),
        "others_cpus": None if load is None else round(load.others, 2),
        "steal_cpus": None if load is None else round(load.steal, 2),
        "cpus": None if load is None else load.cpus,
    }


def _product(dtype: Any, m: int, k: int, n: int) -> tuple[Any, Any, Any]:
    import torch

    return torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype), torch.empty(m, n, dtype=dtype)


if __name__ == "__main__":
    main()

"""Times the analysis of a million events against others, each in a process of its own, in one run.

``python benchmarks/analysis/compare.py FOLDER [--hta PYTHON] [--tracelens PATH] [--repeat N]`` builds the yardsticks in
FOLDER and prints a table: wall and processor seconds (medians) and peak memory. ``--hta`` names a Python that has
HolisticTraceAnalysis, ``--tracelens`` a checkout of AMD's TraceLens (the package of that name is another project's).
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path
from statistics import median

import yardsticks

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MEASURED = """
import resource, sys, time
path = sys.argv[1]
wall, cpu = time.perf_counter(), time.process_time()
{code}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print("RESULT", time.perf_counter() - wall, time.process_time() - cpu, peak)
"""
JSON_LOADS = "import json; json.loads(open(path, encoding='utf-8').read())"
MSGSPEC = f"""
sys.path.insert(0, {str(ROOT)!r})
import msgspec
from torchroof.trace.events import Event
class Trace(msgspec.Struct):
    traceEvents: list[Event]
msgspec.json.decode(open(path, 'rb').read(), type=Trace)
"""
OURS = f"""
sys.path.insert(0, {str(ROOT)!r})
import torchroof
torchroof.analyze(path).to_json()
"""
HTA = """
from pathlib import Path
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: path}, trace_dir=str(Path(path).parent))
analysis.get_gpu_kernel_breakdown(visualize=False)
"""
TRACELENS = """
sys.path.insert(0, {folder!r})
from TraceLens import TreePerfAnalyzer
analyzer = TreePerfAnalyzer.from_file(path)
analyzer.get_df_gpu_timeline()
analyzer.get_df_kernel_launchers_summary(analyzer.get_df_kernel_launchers())
"""


def events_in(path: Path) -> int:
    """Counted without reading the file whole: a child's peak memory would begin with this process's."""
    with path.open("rb") as file:
        return sum(line.count(b'"ph": ') for line in file)


def measured(python: str, code: str, path: Path, repeat: int) -> tuple[float, float, float] | str:
    """Median wall and processor seconds and peak MB of some runs; or the last line of what went wrong."""
    runs = []
    for _ in range(repeat):
        script = MEASURED.format(code=code)
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        run = subprocess.run(
            [python, "-c", script, str(path)], capture_output=True, text=True, env=environment, check=False
        )
        line = next((text for text in run.stdout.splitlines() if text.startswith("RESULT")), None)
        if line is None:
            return (run.stderr.strip().splitlines() or ["no result"])[-1]
        runs.append([float(word) for word in line.split()[1:]])
    wall, cpu, peak = (median(column) for column in zip(*runs, strict=True))
    return wall, cpu, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hta", metavar="PYTHON", default=sys.executable)
    parser.add_argument("--tracelens", metavar="PATH")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    contestants = {
        "json.loads": (sys.executable, JSON_LOADS, args.repeat),
        "msgspec, typed": (sys.executable, MSGSPEC, args.repeat),
        "torchroof": (sys.executable, OURS, args.repeat),
        "HolisticTraceAnalysis": (args.hta, HTA, 1),
    }
    if args.tracelens:
        contestants["TraceLens"] = (sys.executable, TRACELENS.format(folder=args.tracelens), 1)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ", end="")
    print(f"medians of {args.repeat} runs (rivals: 1)")
    for kind in yardsticks.SOURCES:
        path = yardsticks.build(kind, args.folder)
        print(f"\n{kind}: {events_in(path):,} events, {path.stat().st_size / 1e6:.0f} MB")
        print(f"{'':24}{'wall s':>9}{'CPU s':>9}{'MB':>7}{'wall / json.loads':>19}{'CPU / json.loads':>18}", flush=True)
        base: tuple[float, ...] = ()
        for name, (python, code, repeat) in contestants.items():
            found = measured(python, code, path, repeat)
            if isinstance(found, str):
                print(f"{name:24}  did not run: {found[:80]}", flush=True)
                continue
            base = base or found
            wall, cpu, peak = found
            ratios = f"{wall / base[0]:19.2f}{cpu / base[1]:18.2f}"
            print(f"{name:24}{wall:9.2f}{cpu:9.2f}{peak:7.0f}{ratios}", flush=True)


if __name__ == "__main__":
    main()

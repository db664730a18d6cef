"""The work handed to a real cluster: a scheduler and two workers in processes of their own, on this machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from job_maker import make_job, save

CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    script = tmp_path_factory.mktemp("cluster") / "cluster.py"
    script.write_text(CLUSTER)
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=script.parent
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "torchroof", *arguments], capture_output=True, text=True, check=False)


def test_a_cluster_gives_the_same_report(cluster: str, tmp_path: Path) -> None:
    folder = save(make_job(3, ranks=3), tmp_path)[0].parent
    here = command("report", str(folder), "--format", "json")
    there = command("report", str(folder), "--format", "json", "--dask", cluster)
    assert there.returncode == 0, there.stderr
    assert there.stdout == here.stdout
    assert there.stderr == ""


def test_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    folder = save(make_job(3, ranks=2), tmp_path)[0].parent
    found = command("report", str(folder), "--dask", "nonsense://x")
    assert found.returncode == 2
    assert found.stderr.splitlines()[-1].startswith("torchroof: no dask cluster answers at nonsense://x")
    assert "Traceback" not in found.stderr

"""Mutated traces end in a report that keeps every law, or in one clear line: never in anything else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import ALWAYS_A_REPORT, MUTATIONS, SINGLE_ARGUMENT, Mutation
from running import originals, outcome

from torchroof.errors import TorchroofError
from torchroof.report.model import ReportData

PER_MUTATION = 2000 // len(MUTATIONS) + 1


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_report_or_one_clear_line(tmp_path: Path, mutation: Mutation) -> None:
    reports: list[bool] = []

    @settings(max_examples=PER_MUTATION, suppress_health_check=list(HealthCheck), database=None)
    @given(st.sampled_from(sorted(originals())), st.integers(0, 10**9))
    def check(name: str, seed: int) -> None:
        found = outcome(name, mutation, seed, tmp_path / "made.json")
        reports.append(isinstance(found, ReportData))

    check()
    if mutation in ALWAYS_A_REPORT:
        assert all(reports)
    if mutation in SINGLE_ARGUMENT:
        assert sum(reports) >= 0.9 * len(reports)


@pytest.mark.parametrize("name", sorted(originals()))
def test_no_mutation_is_a_report(tmp_path: Path, name: str) -> None:
    assert not isinstance(outcome(name, lambda _, trace: json.dumps(trace).encode(), 0, tmp_path / "x"),
                          TorchroofError)  # fmt: skip

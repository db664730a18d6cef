"""What holds for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine must not fail a test: no example has a deadline. A failure prints how to repeat it.
settings.register_profile("torchroof", deadline=None, print_blob=True)
settings.load_profile("torchroof")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Writes the markers of interest into the JUnit file, so that CI can tell one skip from another."""
    for item in items:
        item.user_properties += [("marker", m) for m in ("shared", "gpu") if item.get_closest_marker(m)]


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """The folder of public traces next to the repository. Where it is absent, the test is skipped."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "traces"
    if not (folder / "expected.json").is_file():
        pytest.skip("the public traces are not here")
    return folder

"""What holds for all tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A busy machine must not fail a test: no example has a deadline. A failure prints how to repeat it.
settings.register_profile("torchroof", deadline=None, print_blob=True)
settings.load_profile("torchroof")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Writes the markers of interest into the JUnit file, so that CI can tell one skip from another."""
    for item in items:
        item.user_properties += [("marker", m) for m in ("shared", "gpu") if item.get_closest_marker(m)]

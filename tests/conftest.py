"""What holds for all tests."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items):
    """The full counts take what they take; every other test ends within the limit, so that none waits for ever."""
    for item in items:
        if item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.timeout(0))

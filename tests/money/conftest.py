"""Projects whose calls cost what their texts say, and the server that bills them."""

from __future__ import annotations

import pytest
from till import MoneyProject, Till


@pytest.fixture
async def till():
    async with Till(latency=0.005) as api:
        yield api


@pytest.fixture
def project(tmp_path, till):
    return MoneyProject(tmp_path, till)

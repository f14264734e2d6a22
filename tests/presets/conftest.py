from __future__ import annotations

import pytest
from presetkit import Batch

from rowcall.mock import MockAPI


@pytest.fixture
async def api():
    async with MockAPI(latency=0.002) as api:
        yield api


@pytest.fixture
def batch(tmp_path, api):
    return Batch(tmp_path, api)

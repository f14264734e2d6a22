"""Projects that embed their rows in groups, against a server on a real socket."""

from __future__ import annotations

import pytest
from groupkit import GroupProject

from rowcall.mock import MockAPI


@pytest.fixture
async def api():
    async with MockAPI(latency=0.005) as api:
        yield api


@pytest.fixture
def project(tmp_path, api):
    return GroupProject(tmp_path, api)

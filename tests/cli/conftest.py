"""A project in a folder, and the API that its calls reach."""

from __future__ import annotations

import pytest
from project import Project

from rowcall.mock import MockAPI


@pytest.fixture
async def project(tmp_path):
    async with MockAPI(latency=0.005) as api:
        yield Project(tmp_path, api)

"""Batch files in a folder, and the API that their lines reach."""

from __future__ import annotations

import pytest
from batchkit import BatchProject

from rowcall.mock import MockAPI


@pytest.fixture
async def project(tmp_path):
    async with MockAPI(latency=0.005) as api:
        yield BatchProject(tmp_path, api)

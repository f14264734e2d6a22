"""Batch files in a folder, and the API that their lines reach."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "cli"))

from batchkit import BatchProject

from rowcall.mock import MockAPI


@pytest.fixture
async def project(tmp_path):
    async with MockAPI(latency=0.005) as api:
        yield BatchProject(tmp_path, api)

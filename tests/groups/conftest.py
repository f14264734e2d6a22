"""Projects that embed their rows in groups, against a server on a real socket."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "cli"))

from groupkit import GroupProject

from rowcall.mock import MockAPI


@pytest.fixture
async def api():
    async with MockAPI(latency=0.005) as api:
        yield api


@pytest.fixture
def project(tmp_path, api):
    return GroupProject(tmp_path, api)

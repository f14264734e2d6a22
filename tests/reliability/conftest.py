"""What must survive: real faults against the real command. R1 to R23 are the rows of the table in tests/README.md."""

from __future__ import annotations

import os
import shutil
import sys

import pytest
from rig import Rig

from rowcall.mock import MockAPI


@pytest.fixture
async def api():
    async with MockAPI(latency=0.005) as api:
        yield api


@pytest.fixture
def rig():
    """Makes a project in a folder, whose calls reach an API."""
    return Rig


@pytest.fixture
def project(rig, tmp_path, api):
    return rig(tmp_path, api)


@pytest.fixture
def place(tmp_path):
    """Where a store may be made."""
    return str(tmp_path / "k.db")


@pytest.fixture
def root():
    """For what only root may do: to mount, to take a low port."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs Linux and root")


@pytest.fixture
def strace():
    if shutil.which("strace") is None:
        pytest.skip("needs strace")

"""What must survive: real faults against the real command. R1 to R23 are the rows of the README's table."""

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
def project(tmp_path, api):
    return Rig(tmp_path, api)


@pytest.fixture
def root():
    """For what only root may do: to mount, to take a low port."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs Linux and root")


@pytest.fixture
def strace():
    if shutil.which("strace") is None:
        pytest.skip("needs strace")

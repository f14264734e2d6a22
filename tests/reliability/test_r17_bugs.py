"""R17: an exception that nobody expects, in every phase of a run."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from aftermath import ended_once
from project import some_rows
from rig import Rig

from rowcall.mock import MockAPI

FAIL_POINTS = Path(__file__).with_name("failpoints")
PHASES = [
    ("claim-done", "read", "settle-uncommitted", "end"),
    *(
        pytest.param(phases, marks=pytest.mark.slow)
        for phases in (
            ("open", "session", "enqueue-begun", "enqueue-done"),
            ("claim-begun", "build", "beat", "export-begun"),
        )
    ),
]


async def ends(folder, phase):
    """The process ends by itself, exit 70, with no thread and nothing open; the next run does the rest."""
    folder.mkdir()
    async with MockAPI(latency=0.02) as api:
        project = Rig(folder, api)
        project.write(some_rows(60))
        path = os.pathsep.join(filter(None, [str(FAIL_POINTS), os.environ.get("PYTHONPATH")]))
        project.env = {"RAISE_AT": f"{phase}:1", "PYTHONPATH": path, "PYTHONWARNINGS": "always::ResourceWarning"}
        project.env["TMPDIR"] = str(folder)
        started = time.monotonic()
        ran = await asyncio.wait_for(project.end(await project.start("run")), 15)
        print(f"{phase}: ended {time.monotonic() - started:.1f} s after its start")
        assert ran.code == 70, (phase, ran)
        assert "ZeroDivisionError" in ran.err
        assert "ResourceWarning" not in ran.err
        called = len(api.calls)
        project.env = {}
        ran = await project.run("run")
        assert ran.code == 0, (phase, ran)
        ended_once(project, 60)
        assert list(folder.glob("t.db-session-*")) == []
        assert len(api.calls) <= 60 + min(called, 3 * 8)


@pytest.mark.parametrize("phases", PHASES)
async def test_in_every_phase(tmp_path, phases):
    """A bug of rowcall's own ends the run and keeps what is stored."""
    await asyncio.gather(*(ends(tmp_path / phase, phase) for phase in phases))

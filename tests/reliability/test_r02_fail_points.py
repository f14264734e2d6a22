"""R2: kill -9 just before and just after each step; the same command goes on."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from lives import Lives
from rig import Rig

from rowcall.mock import MockAPI

FAIL_POINTS = Path(__file__).with_name("failpoints")
MOST = {"open": 1, "enqueue": 2, "claim": 6, "send": 60, "answer": 60, "settle": 6, "export": 1}
GROUPS = {
    "the store is made": ("open", "enqueue-begun"),
    "records come in": ("enqueue-uncommitted", "enqueue-done"),
    "records are claimed": ("claim-begun", "claim-uncommitted", "claim-done"),
    "calls go out": ("send", "answer"),
    "answers are written": ("settle-begun", "settle-uncommitted"),
    "answers are kept": ("settle-done",),
    "the export is written": ("export-begun", "export-done"),
}


async def kill_at(folder, steps, times):
    """At each step so often, at another turn of it each time."""
    folder.mkdir()
    async with MockAPI() as api:
        lives = Lives(Rig(folder, api), 2)
        for step in steps:
            killed = len(lives.lives) + times
            while len(lives.lives) < killed:
                await die_at(lives, step)
        lives.project.env.pop("FAIL_AT")
        await lives.finish()
        print(lives.figures())


async def die_at(lives, step):
    turn = lives.random.randint(1, MOST[step.partition("-")[0]])
    path = os.pathsep.join(filter(None, [str(FAIL_POINTS), os.environ.get("PYTHONPATH")]))
    lives.project.env = {"FAIL_AT": f"{step}:{turn}", "PYTHONPATH": path}
    before = len(lives.api.calls)
    await lives.bury(await lives.project.start("run"), before)


@pytest.mark.parametrize("group", GROUPS)
async def test_once_at_each(tmp_path, group):
    """Wherever it dies: every record ends once, what is stored is not called again, repeats are bounded."""
    await kill_at(tmp_path / group, GROUPS[group], 1)


@pytest.mark.soak
@pytest.mark.parametrize("group", GROUPS)
async def test_twenty_times_at_each(tmp_path, group):
    """As the short form, twenty times at each step."""
    await kill_at(tmp_path / group, GROUPS[group], 20)


@pytest.mark.slow
async def test_three_times_at_each(tmp_path):
    """As the short form, three times at each step."""
    await asyncio.gather(*(kill_at(tmp_path / group, steps, 3) for group, steps in GROUPS.items()))

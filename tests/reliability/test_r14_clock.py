"""R14: the clock is set forward and back, by an hour and by a day, under two runs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from aftermath import ended_once
from aiohttp import web
from project import some_rows

FAIL_POINTS = Path(__file__).with_name("failpoints")
HOUR, DAY = 3600, 86_400


@pytest.fixture
def clock(project):
    """Sets the time of day of the project's processes; the monotonic clock is let be."""
    shown = project.folder / "clock"
    path = os.pathsep.join(filter(None, [str(FAIL_POINTS), os.environ.get("PYTHONPATH")]))
    project.env |= {"CLOCK": str(shown), "PYTHONPATH": path}

    def set_to(seconds):
        shown.with_suffix(".new").write_text(str(seconds))
        shown.with_suffix(".new").replace(shown)

    set_to(0)
    return set_to


@pytest.mark.parametrize("steps", [(-DAY,), pytest.param((HOUR, -HOUR), marks=pytest.mark.slow)])
async def test_the_clock_is_set(project, clock, steps):
    """No record is called twice or waits for the clock, and no session that lives is taken for dead."""
    refused = set()

    def refuse_each_tenth_once(call):
        number = int(call.text.split()[2])
        if number % 10 or number in refused:
            return None
        refused.add(number)
        return web.Response(status=500)

    project.api.respond = refuse_each_tenth_once
    project.api.latency = 0.05
    project.write(some_rows(300))
    project.replace('first = "50ms", max = "200ms"', 'first = "500ms", max = "1s"')
    project.replace("[stop]", '[store]\nlease = "1.2s"\n[stop]')
    processes = [await project.start("run") for _ in range(2)]
    for number, offset in enumerate(steps):
        await asyncio.wait_for(project.api.wait_for_calls(40 + 80 * number), 20)
        clock(offset)
    ran = await asyncio.wait_for(asyncio.gather(*map(project.end, processes)), 30)
    assert [one.code for one in ran] == [0, 0], ran
    ended_once(project, 300)
    assert len(project.api.calls) == 300 + len(refused) == 330
    assert project.sql("SELECT count(*) FROM jobs WHERE crashes") == [(0,)]
    assert project.sql("SELECT count(*) FROM runs WHERE stop_reason = 'crashed'") == [(0,)]

"""Two processes on one store: they share the work, and what a killed one held goes to the other at once."""

from __future__ import annotations

import asyncio

from aftermath import ended_once
from lives import key_of
from project import some_rows


async def test_the_other_one_takes_over(project):
    """No record is called twice but those in flight at a kill, which go to the other long before the lease is over."""
    project.api.latency = 0.6  # long enough for the other one to come
    project.write(some_rows(400))
    staying = await project.start("run")
    await asyncio.wait_for(project.api.wait_for_calls(1), 20)
    lost = 0
    for _ in range(2):
        killed = await project.start("run")
        await asyncio.wait_for(project.api.wait_in_flight(16), 20)
        await project.kill(killed)
        lost += 8
    project.api.latency = 0.02
    left = await asyncio.wait_for(project.end(staying), 30)
    assert left.code == 0, left.err
    ended_once(project, 400)
    calls = [key_of(call) for call in project.api.calls]
    assert 400 <= len(calls) <= 400 + lost + 2 * 8
    assert "crashed" in dict(project.sql("SELECT stop_reason, 1 FROM runs"))


async def test_two_requests_do_not_mix(project):
    """A run with another request is refused while one is at work, before anything is written; afterwards it goes on."""
    project.write(some_rows(60))
    staying = await project.start("run")
    await asyncio.wait_for(project.api.wait_for_calls(10), 20)
    project.api.latency = 2.0  # it stays at work for as long as the other one needs to begin
    (project.folder / "prompt.md").write_text("Judge it in another way.\n")
    refused = await project.run("run", "--if-changed", "redo")
    assert refused.code == 2
    assert "another run is at work with another request" in refused.err
    project.api.latency = 0.005
    assert (await project.end(staying)).code == 0
    assert len(project.api.calls) == 60
    ended_once(project, 60)

"""A server that is restarted, loses connections, or is away, under runs that are at work."""

from __future__ import annotations

import asyncio
import signal

import pytest
from aftermath import ended_once
from load import Load
from project import some_rows
from test_r04_stopped import stop

pytestmark = pytest.mark.postgres


@pytest.fixture
def project(rig, tmp_path, api, lasting_server):
    return rig(tmp_path, api, lasting_server)


@pytest.mark.parametrize("times", [4, pytest.param(50, marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
async def test_immediate_restarts(project, times):
    """A server that stops as in a crash, and starts again: nothing is lost, nothing stored is called, all goes on."""
    load = Load(project, 800 + 300 * times)
    await load.start()
    for _ in range(times):
        await load.disturb(lambda: project.server.restart(away=load.random.uniform(0, 0.5)))
    await load.finish()
    print(f"immediate restarts: {load.figures()}")


@pytest.mark.parametrize("times", [20, pytest.param(200, marks=pytest.mark.soak)])
async def test_killed_backends(project, times):
    """One connection after the other is ended by the server, those that hold a session's lock too: the same."""
    load = Load(project, 800 + 70 * times)
    await load.start()
    for _ in range(times):
        await load.disturb(lambda: kill_one(project))
    await load.finish()
    print(f"killed backends: {load.figures()}")


def kill_one(project):
    """End one of the runs' connections, whatever it is doing."""
    ours = f"datname = '{project.database}' AND application_name = 'rowcall'"
    one = f"SELECT pid FROM pg_stat_activity WHERE {ours} ORDER BY random() LIMIT 1"
    while project.server.execute(f"SELECT pg_terminate_backend(pid) FROM ({one}) AS one") != [(True,)]:
        pass  # it has gone by itself


@pytest.mark.parametrize("command", ["run", "work"])
@pytest.mark.parametrize("seconds", [4, pytest.param(40, marks=pytest.mark.slow)])
async def test_away_for_a_while(project, seconds, command):
    """A server that is away, for longer than a verb waits too, pauses the runs, which say so; nothing is lost."""
    load = Load(project, 600, command)
    await load.start()
    before = len(load.api.calls)
    await load.disturb(lambda: project.server.restart(away=seconds))
    ran = await load.finish()
    assert [one.err.count("the database cannot be reached") for one in ran] == [1, 1]
    print(f"{command}, away for {seconds} s: {load.figures()}; {before} calls before")


@pytest.mark.slow
async def test_leaving_while_it_is_away(project):
    """The third Ctrl+C leaves a server that is away at once, as it says; the same command goes on later."""
    project.write(some_rows(400))
    project.api.latency = 0.2
    process = await project.start("run")
    await asyncio.wait_for(project.api.wait_in_flight(8), 60)
    project.server.stop()
    for _ in range(3):
        await asyncio.sleep(1)
        process.send_signal(signal.SIGINT)
    try:
        assert await asyncio.wait_for(process.wait(), 20) == 130
    finally:
        project.server.start()
    ran = await project.run("run")
    assert ran.code == 0, ran.err
    ended_once(project, 400)


@pytest.mark.slow
async def test_stopped_inside_a_transaction(project):
    """A process that stands still in a transaction keeps nothing from the other one for long, and goes on."""
    project.write(some_rows(400))
    project.lease(5)
    project.api.latency = 0.1
    stopped, other = [await project.start("run") for _ in range(2)]
    await asyncio.wait_for(project.api.wait_in_flight(16), 60)
    await stop(project, stopped, inside=True)
    ran = await project.end(other)
    assert ran.code == 0, ran.err
    assert project.statuses() == {"done": 400}
    stopped.send_signal(signal.SIGCONT)
    late = await project.end(stopped)
    assert late.code == 0, late.err
    ended_once(project, 400)
    assert len(project.api.calls) <= 400 + 3 * 8

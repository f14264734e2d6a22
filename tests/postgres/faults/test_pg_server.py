"""A server that is restarted, loses connections, or is away, under runs that are at work."""

from __future__ import annotations

import pytest
from load import Load

pytestmark = pytest.mark.postgres


@pytest.fixture
def project(rig, tmp_path, api, lasting_server):
    return rig(tmp_path, api, lasting_server)


@pytest.mark.parametrize("times", [4, pytest.param(50, marks=pytest.mark.soak)])
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
    one = "SELECT pid FROM pg_stat_activity WHERE datname = '{}' AND state IS NOT NULL ORDER BY random() LIMIT 1"
    killed = project.server.execute(f"SELECT pg_terminate_backend(pid) FROM ({one.format(project.database)}) AS one")
    assert killed == [(True,)]


@pytest.mark.parametrize("seconds", [4, pytest.param(40, marks=pytest.mark.slow)])
async def test_away_for_a_while(project, seconds):
    """A server that is away, for longer than a verb waits too, pauses the runs, which say so; nothing is lost."""
    load = Load(project, 600)
    await load.start()
    before = len(load.api.calls)
    await load.disturb(lambda: project.server.restart(away=seconds))
    ran = await load.finish()
    assert [one.err.count("the database cannot be reached") for one in ran] == [1, 1]
    print(f"away for {seconds} s: {load.figures()}; {before} calls before")

"""R4: a process is stopped by SIGSTOP past its lease, and goes on; or it is stopped inside a transaction."""

from __future__ import annotations

import asyncio
import random
import signal

import pytest
from aftermath import ended_once
from project import some_rows


async def stop(project, process, *, inside):
    """Stop a process in a moment in which it writes to the store, or does not."""
    moment = random.Random(0)
    for _ in range(2000):
        await asyncio.sleep(moment.uniform(0.001, 0.01))
        process.send_signal(signal.SIGSTOP)
        if project.is_writing(process) == inside:
            await asyncio.sleep(0.02)
            if project.is_writing(process) == inside:
                return
        process.send_signal(signal.SIGCONT)
    raise AssertionError("the moment never came")


async def test_stopped_past_its_lease(project):
    """Its jobs go to another run; what it settles afterwards is late, kept once, and changes nothing."""
    project.write(some_rows(40))
    project.replace('timeout = "5s"', 'timeout = "50s"')  # however long the other one takes
    project.lease(1.2)
    project.api.latency = 0.4
    stopped = await project.start("run")
    await asyncio.wait_for(project.api.wait_in_flight(8), 20)
    await stop(project, stopped, inside=False)
    in_hand = {call.text for call in project.api.calls} - {text_of(key) for key in project.answers()}
    assert len(in_hand) >= 8
    other = await project.run("run")
    assert other.code == 0, other.err
    assert project.statuses() == {"done": 40}
    before = project.sql("SELECT * FROM jobs ORDER BY rowid")
    stopped.send_signal(signal.SIGCONT)
    late = await project.end(stopped)
    assert late.code == 0, late.err
    assert project.sql("SELECT * FROM jobs ORDER BY rowid") == before
    ended_once(project, 40)
    assert len(project.api.calls) == 40 + len(in_hand)
    assert all(len(project.api.calls_of(text)) == 2 for text in in_hand)
    kept = "SELECT count(*), count(DISTINCT job) FROM results WHERE superseded"
    assert project.sql(kept) == [(len(in_hand), len(in_hand))]


def text_of(key):
    return f"sentence number {key[1:]} is good"


@pytest.mark.parametrize(("rows", "seconds"), [(300, 1.0), pytest.param(1500, 33.0, marks=pytest.mark.slow)])
async def test_stopped_inside_a_transaction(project, rows, seconds):
    """The other process waits, after 30 s says who holds the file, and both go on afterwards."""
    project.write(some_rows(rows))
    project.lease(1.2)
    project.api.latency = 0.5
    stopped = await project.start("run")
    await asyncio.wait_for(project.api.wait_for_calls(1), 20)
    other = await project.start("run")
    await asyncio.wait_for(project.api.until(lambda: joined(project)), 20)
    project.api.latency = 0.02
    await stop(project, stopped, inside=True)
    await asyncio.sleep(seconds)
    stopped.send_signal(signal.SIGCONT)
    ran = await asyncio.gather(project.end(stopped), project.end(other))
    assert [one.code for one in ran] == [0, 0], ran
    ended_once(project, rows)
    if seconds < 5:  # the timeout of a call
        assert len(project.api.calls) == rows
    else:
        assert len(project.api.calls) <= rows + 3 * 8
        assert f"held by process {stopped.pid}" in ran[1].err


def joined(project):
    return len(project.sql("SELECT id FROM sessions")) == 2

"""Signals, kills and outages against the real command."""

from __future__ import annotations

import asyncio
import signal

import pytest
from project import some_rows


async def running(project, calls):
    process = await project.start("run")
    await asyncio.wait_for(project.api.wait_for_calls(calls), 20)
    return process


def each_ended_once(project, count):
    assert project.statuses() == {"done": count}
    answers = project.sql("SELECT job, count(*) FROM results WHERE superseded = 0 GROUP BY job HAVING count(*) > 1")
    assert answers == []
    assert len(project.exported()) == count
    assert all(row["label"] for row in project.exported())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_pauses_the_run(project, number, code):
    """Ctrl+C and SIGTERM let calls in flight end, charge nothing, and the same command does the rest, no call twice."""
    project.api.latency = 0.05
    project.write(some_rows(120))
    process = await running(project, 30)
    process.send_signal(number)
    ran = await project.end(process)
    assert ran.code == code
    assert "rowcall run" in ran.err
    left = project.statuses()
    assert "running" not in left
    assert left["done"] == len(project.api.calls)
    assert sum(project.attempts().values()) == left["done"]
    assert (await project.run("run")).code == 0
    assert len(project.api.calls) == 120
    each_ended_once(project, 120)


async def test_a_second_signal_drops_the_calls(project):
    """A second Ctrl+C leaves at once; what was in flight is pending again, uncharged."""
    project.write(some_rows(40))
    process = await running(project, 12)
    project.api.latency = 60
    await asyncio.wait_for(project.api.wait_in_flight(8), 5)
    process.send_signal(signal.SIGINT)
    assert b"Stopping" in await asyncio.wait_for(_until(process, b"Stopping"), 5)
    process.send_signal(signal.SIGINT)
    ran = await asyncio.wait_for(project.end(process), 5)
    assert ran.code == 130
    assert set(project.statuses()) == {"done", "pending"}
    project.api.latency = 0.005
    assert (await project.run("run")).code == 0
    each_ended_once(project, 40)


async def _until(process, word):
    read = b""
    while word not in read:
        chunk = await process.stderr.read(1000)
        assert chunk, read
        read += chunk
    return read


async def test_kill_repeats_no_more_than_was_under_way(project):
    """After kill -9 the same command finishes; calls repeated are at most those in flight and two groups."""
    project.api.latency = 0.02
    project.write(some_rows(150))
    for calls in (20, 60, 100):
        process = await running(project, calls)
        await project.kill(process)
    ran = await project.run("run")
    assert ran.code == 0
    each_ended_once(project, 150)
    assert len(project.api.calls) - 150 <= 3 * 3 * 8


async def test_a_closed_port_in_the_middle(project):
    """The port is closed for a while in the middle of 300 records: 300 done, each charged once."""
    await an_outage(project, 1.5)


@pytest.mark.slow
async def test_a_closed_port_for_five_seconds(project):
    """The port is closed for 5 s in the middle of 300 records: 300 done, each charged once."""
    await an_outage(project, 5)


async def an_outage(project, seconds):
    project.write(some_rows(300))
    process = await running(project, 100)
    await project.api.close_port()
    await asyncio.sleep(seconds)
    await project.api.open_port()
    ran = await project.end(process)
    assert ran.code == 0
    assert project.statuses() == {"done": 300}
    assert set(project.attempts().values()) == {1}
    assert "nothing lost" in ran.err


async def test_status_from_another_terminal(project):
    """``status`` shows a run that is under way elsewhere, and does not disturb it."""
    project.api.latency = 0.05
    project.write(some_rows(300))
    process = await running(project, 20)
    during = project.summary(await project.run("status", "--json"))
    assert during["state"] == "running"
    assert 0 < during["running"] <= 3 * 8
    ran = await project.end(process)
    assert ran.code == 0
    after = project.summary(await project.run("status", "--json"))
    assert (after["state"], after["done"], after["attempts"]) == ("done", 300, 300)

"""R10: Ctrl+C and SIGTERM at any time."""

from __future__ import annotations

import asyncio
import random
import signal
import time

import pytest
from aftermath import ended_once
from project import some_rows

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


async def running(project, calls=1):
    process = await project.start("run")
    await asyncio.wait_for(project.api.wait_for_calls(project.api.arrived + calls), 20)
    return process


async def told_to_stop(project, process, number=signal.SIGINT):
    """Send a signal; returns the seconds until the process was gone."""
    process.send_signal(number)
    started = time.monotonic()
    ran = await project.end(process)
    assert ran.code == CODES[number], ran.err
    assert "rowcall run" in ran.err
    return time.monotonic() - started


def nothing_runs(project):
    """No job is running, no session is left, each call that was charged is one that was answered."""
    assert "running" not in project.statuses()
    assert project.sql("SELECT * FROM sessions") == []
    assert list(project.folder.glob("t.db-session-*")) == []
    assert project.sql("SELECT count(*) FROM runs WHERE ended_at IS NULL") == [(0,)]


async def stop_again_and_again(project, times, seed=0):
    moment = random.Random(seed)
    project.api.latency = 0.05
    project.write(some_rows(100 * times + 100))
    longest = 0.0
    for turn in range(times):
        process = await running(project)
        await asyncio.sleep(moment.uniform(0, 0.3))
        longest = max(longest, await told_to_stop(project, process, list(CODES)[turn % 3]))
        nothing_runs(project)
        assert sum(project.attempts().values()) == len(project.api.calls) == project.statuses()["done"]
    print(f"{times} stops in a row: the longest took {longest:.2f} s")
    project.api.latency = 0.001
    assert (await project.run("run")).code == 0
    assert len(project.api.calls) == 100 * times + 100
    ended_once(project, 100 * times + 100)


async def test_at_full_load(project):
    """Stopped again and again: what was in flight ends and is kept, nothing is called twice."""
    await stop_again_and_again(project, 1)


@pytest.mark.slow
async def test_twenty_at_full_load(project):
    """As the short form, twenty times."""
    await stop_again_and_again(project, 20)


@pytest.mark.soak
async def test_two_hundred_at_full_load(project):
    """As the short form, two hundred times."""
    await stop_again_and_again(project, 200)


@pytest.mark.parametrize("number", CODES)
async def test_calls_that_do_not_end(project, number):
    """Calls are waited for until the grace is over and then dropped, uncharged."""
    project.write(some_rows(40))
    project.replace('grace = "5s"', 'grace = "500ms"')
    process = await running(project, 12)
    project.api.latency = 60
    await asyncio.wait_for(project.api.wait_for_calls(project.api.arrived + 8), 5)
    seconds = await told_to_stop(project, process, number)
    assert 0.4 < seconds < 0.5 + 1 + 1  # a second more than promised, for a machine that is busy
    nothing_runs(project)
    assert project.statuses()["done"] == sum(project.attempts().values()) == project.api.served[200]


async def test_the_second_one_leaves_at_once(project):
    """A second Ctrl+C drops what is in flight."""
    project.write(some_rows(40))
    process = await running(project, 12)
    project.api.latency = 60
    await asyncio.wait_for(project.api.wait_for_calls(project.api.arrived + 8), 5)
    process.send_signal(signal.SIGINT)
    await asyncio.wait_for(process.stderr.readuntil(b"Stopping"), 5)
    assert await told_to_stop(project, process) < 1 + 1
    nothing_runs(project)
    assert project.statuses()["done"] == sum(project.attempts().values())


async def test_during_a_backoff(project):
    """A record that waits for its next try holds nothing up; it keeps the attempt that it was charged."""
    project.api.poison = {"sentence number 3 is good"}
    project.write(some_rows(10))
    project.replace('first = "50ms", max = "200ms"', 'first = "30s", max = "60s"')
    process = await running(project)
    await asyncio.wait_for(project.api.until(lambda: project.api.served[200] == 9), 5)
    await asyncio.sleep(0.5)
    await told_to_stop(project, process)
    nothing_runs(project)
    assert project.statuses() == {"done": 9, "pending": 1}
    assert project.attempts()["k3"] <= 1
    assert len(project.api.calls) == 10


async def test_during_an_outage(project):
    """Nothing that failed in it is charged."""
    project.write(some_rows(100))
    process = await running(project, 30)
    await project.api.close_port()
    await asyncio.wait_for(process.stderr.readuntil(b"offline"), 10)
    await told_to_stop(project, process)
    nothing_runs(project)
    done = project.statuses()["done"]
    assert sum(project.attempts().values()) == done
    assert project.api.served[200] - done <= 8, "what was answered and did not arrive was in flight"
    await project.api.open_port()
    assert (await project.run("run")).code == 0
    ended_once(project, 100)


async def test_one_at_a_time(project):
    """At concurrency 1 the one call is waited for."""
    project.api.latency = 0.3
    project.write(some_rows(10), concurrency=1)
    process = await running(project, 2)
    await told_to_stop(project, process)
    nothing_runs(project)
    assert project.statuses() == {"done": 2, "pending": 8}
    assert len(project.api.calls) == 2


async def test_before_the_first_call(project):
    """In the moment of its start it stops as well."""
    project.fresh = True
    project.write(some_rows(2000))
    for wait in (0.35, 0.6):
        process = await project.start("run")
        await asyncio.sleep(wait)
        process.send_signal(signal.SIGTERM)
        ran = await project.end(process)
        assert ran.code in (143, -signal.SIGTERM)
    assert (await project.run("run", "-n", "5")).code == 0


async def test_nohup_is_obeyed(project):
    """A run whose SIGHUP is ignored by whoever started it goes on when the terminal hangs up."""
    project.before = ["nohup"]
    project.write(some_rows(60))
    project.api.latency = 0.05
    process = await running(project, 10)
    process.send_signal(signal.SIGHUP)
    assert (await project.end(process)).code == 0
    ended_once(project, 60)


async def test_a_pipe_that_stays_open_holds_nothing_up(project):
    """A run that reads a pipe which nobody closes ends on Ctrl+C all the same, with what it has read exported."""
    project.write([])
    project.replace('path = "in.csv"', 'path = "-"\nformat = "csv"')
    process = await project.start("run", stdin=asyncio.subprocess.PIPE)
    process.stdin.write(
        b"id,text,note\n" + b"".join(b"k%d,sentence number %d is good,n\n" % (n, n) for n in range(500))
    )
    await asyncio.wait_for(project.api.wait_for_calls(60), 10)
    process.send_signal(signal.SIGINT)
    err = asyncio.create_task(process.stderr.read())
    assert await asyncio.wait_for(process.wait(), 5) == 130
    assert b"Resume with: rowcall run" in await err
    assert sum(1 for row in project.exported() if row["label"]) == project.statuses()["done"]


async def test_an_export_that_nobody_reads(project):
    """Ctrl+C while the export waits for whoever reads it leaves at once; what was exported before stays as it was."""
    project.write(some_rows(900, note="n" * 150), concurrency=50)
    assert (await project.run("run")).code == 0
    before = project.exported()
    process = await project.start("run", "-o", "-")
    await asyncio.wait_for(process.stdout.readexactly(1), 20)
    while not project.sql("SELECT 1 FROM runs WHERE id = 2 AND ended_at IS NOT NULL"):  # noqa: ASYNC110  in another process
        await asyncio.sleep(0.02)
    process.send_signal(signal.SIGINT)
    await asyncio.wait_for(process.stderr.readuntil(b"Interrupted; nothing is lost"), 5)
    assert (await project.end(process)).code == 130
    assert project.exported() == before
    assert len(project.api.calls) == 900

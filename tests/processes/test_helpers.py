"""Runs with helpers, by the real command: several processes are one run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
from pathlib import Path

import pytest
from aiohttp import web
from project import some_rows


def children(process):
    """The helpers of a run, by its own word to the system."""
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


async def until(holds, seconds=50):
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.02)


def alive(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


async def at_work(project, helpers):
    """Wait until so many helpers, and the run itself, have made themselves known in the store."""
    await until(lambda: len(sessions(project)) == helpers + 1)


def sessions(project):
    """The processes that the store knows of; none before there is one."""
    try:
        return [pid for (pid,) in project.sql("SELECT pid FROM sessions")]
    except sqlite3.OperationalError:
        return []


def nothing_runs(project):
    assert "running" not in project.statuses()
    assert project.sql("SELECT * FROM sessions") == []
    assert project.sql("SELECT count(*) FROM runs WHERE ended_at IS NULL") == [(0,)]


async def most_in_flight(project, calls):
    """How many of the next calls are in flight at a time."""
    project.api.max_in_flight = project.api.in_flight
    await project.api.wait_for_calls(project.api.arrived + calls)
    return project.api.max_in_flight


async def test_helpers_are_one_run(project):
    """Concurrency holds for all together and can be set; each call is counted once, wherever it was made."""
    project.api.latency = 0.2
    project.write(some_rows(1200), concurrency=12)
    process = await project.start("run", "--processes", "3", "--json", "--events", "events.jsonl")
    await at_work(project, 2)
    assert {*sessions(project)} == {process.pid, *children(process)}
    await project.run("set", "concurrency=6")
    async with asyncio.timeout(40):
        while json.loads((await project.run("status", "--json")).out)["concurrency"] != 6:  # noqa: ASYNC110  it is asked
            await asyncio.sleep(0.05)
    assert project.api.max_in_flight == 12
    async with asyncio.timeout(20):
        while await most_in_flight(project, calls=15) > 6:  # until all have heard of it
            pass
    assert await most_in_flight(project, calls=15) <= 6
    project.api.latency = 0.005
    await project.run("set", "concurrency=60")
    ran = await project.end(process)
    assert ran.code == 0, ran.err
    summary = project.summary(ran)
    assert (summary["done"], summary["by_status"]) == (1200, {"200": 1200})
    assert len(project.api.calls) == len(project.exported()) == 1200
    ended = [json.loads(line) for line in (project.folder / "events.jsonl").read_text().splitlines()]
    assert sum(line["event"] == "call_ended" for line in ended) == 1200
    assert project.sql("SELECT count(*) FROM runs") == [(1,)]
    nothing_runs(project)


HANDLER = """
[handler]
path = "tasks.py:label"
"""
TASKS = """
import os, time

def label(row, call):
    while row["id"] != "k0" and not os.path.exists("go"):
        time.sleep(0.01)
    return {"label": os.getpid()}
"""


@pytest.mark.slow
async def test_a_helper_that_dies_is_replaced(project):
    """A handler works in all processes; what a killed one had goes to the others, and another one takes its place."""
    project.write(some_rows(90), concurrency=3)
    text = (project.folder / "config.toml").read_text()
    before, after = text.index("[request.body]"), text.index("[output]")
    project.config(text[:before] + HANDLER.lstrip() + text[after:])
    (project.folder / "tasks.py").write_text(TASKS)
    process = await project.start("run", "--processes", "3")
    await at_work(project, 2)
    [killed, _] = children(process)
    os.kill(killed, signal.SIGKILL)
    await until(lambda: killed not in sessions(project))
    await at_work(project, 2)
    (project.folder / "go").touch()
    ran = await project.end(process)
    assert ran.code == 0, ran.err
    assert f"process {killed} of this run died: killed by SIGKILL; another one replaces it" in ran.err
    assert project.statuses() == {"done": 90}
    nothing_runs(project)
    assert len({row["label"] for row in project.exported()}) == 3


async def test_the_run_is_killed(project):
    """Its helpers end too and put back what they had, so that only its own calls are made again."""
    project.api.latency = 1.0
    project.write(some_rows(100), concurrency=9)
    process = await project.start("run", "--processes", "3")
    await at_work(project, 2)
    helpers = children(process)
    await project.kill(process)
    await until(lambda: not any(map(alive, helpers)))
    assert sessions(project) == [process.pid]
    assert project.sql("SELECT DISTINCT s.pid FROM jobs JOIN sessions s ON s.id = session") == [(process.pid,)]
    project.api.latency = 0.005
    assert (await project.run("run")).code == 0
    assert project.statuses() == {"done": 100}
    dropped = sum(call.status == "dropped" for call in project.api.calls)
    assert 100 <= len(project.api.calls) <= 100 + dropped + 3


async def stopped(project, *numbers, helper_too=True, latency=0.3):
    """A run with helpers that hears signals, as all processes of a terminal do; returns what it left."""
    project.api.latency = latency
    project.write(some_rows(3000), concurrency=9)
    process = await project.start("run", "--processes", "3")
    await at_work(project, 2)
    await project.api.until(lambda: project.api.in_flight > 4)
    for number in numbers:
        for pid in [process.pid] * (number != signal.SIGTERM) + children(process) * helper_too:
            os.kill(pid, number)
        await asyncio.sleep(0.05)
    ran = await project.end(process)
    nothing_runs(project)
    return ran


async def test_ctrl_c(project):
    """It reaches all processes: the run answers, calls in flight end and are kept, nothing is called twice."""
    ran = await stopped(project, signal.SIGINT)
    assert ran.code == 130
    assert "calls in flight" in ran.err
    assert {call.status for call in project.api.calls} == {200}
    done = project.statuses()["done"]
    assert len(project.api.calls) == sum(project.attempts().values()) == done < 3000
    assert f"{done} done, 0 failed; in all: {done} done" in ran.err


@pytest.mark.slow
async def test_ctrl_c_twice(project):
    """Calls in flight are dropped in all processes, uncharged."""
    ran = await stopped(project, signal.SIGINT, signal.SIGINT, latency=2.0)
    assert ran.code == 130
    assert sum(project.attempts().values()) == project.statuses()["done"]
    assert sum(call.status == "dropped" for call in project.api.calls) > 3


@pytest.mark.slow
async def test_a_helper_told_to_stop(project):
    """SIGTERM to any process stops the run, as systemd's stop does."""
    ran = await stopped(project, signal.SIGTERM)
    assert ran.code == 143
    assert "another one" not in ran.err


@pytest.mark.slow
async def test_a_wrong_key_costs_one_call(project):
    """Helpers call nothing before the run has reached its API."""
    project.api.respond = lambda call: web.json_response({"error": {"message": "no such key"}}, status=401)
    project.write(some_rows(50))
    ran = await project.process("run", "--processes", "3")
    assert ran.code == 3
    assert len(project.api.calls) == 1
    nothing_runs(project)


@pytest.mark.slow
async def test_too_many_failures_in_all(project):
    """Failures are counted over all processes, and the run ends with the calls in flight."""
    project.api.respond = lambda call: None if int(call.text.split()[2]) < 60 else web.Response(status=422, text="{}")
    project.write(some_rows(600), concurrency=9)
    project.replace("[stop]", "[stop]\nmax_failures = 20")
    ran = await project.process("run", "--processes", "3")
    assert (ran.code, "max_failures" in ran.err) == (3, True), ran.err
    assert 21 <= project.statuses()["failed"] <= 21 + 2 * 9
    nothing_runs(project)


@pytest.mark.slow
async def test_what_all_may_spend(project):
    """The limit holds for all together but for less than the calls in flight, and the run uses it up."""
    project.write(some_rows(600), concurrency=9)
    project.replace("[stop]", "[price]\nper_call = 0.01\n[stop]\nmax_cost = 2.0")
    ran = await project.process("run", "--processes", "3")
    assert (ran.code, "max_cost" in ran.err) == (3, True), ran.err
    assert 197 <= len(project.api.calls) < 200 + 9
    nothing_runs(project)


@pytest.mark.slow
async def test_a_helper_that_always_dies(project):
    """It is started again a few times, then no more; the run goes on without it."""
    project.write(some_rows(9000), concurrency=4)
    process = await project.start("run", "--processes", "2")
    deaths = 0
    while deaths < 6:
        await at_work(project, 1)
        for pid in children(process):
            os.kill(pid, signal.SIGKILL)
            deaths += 1
            await until(lambda pid=pid: pid not in sessions(project))
    process.send_signal(signal.SIGINT)
    ran = await project.end(process)
    assert ran.err.count("another one replaces it") == 5
    assert ran.err.count("it is not started again") == 1


@pytest.mark.slow
async def test_a_limited_run_is_one_process_s(project):
    """``-n`` with the flag is refused; where the config has the key, one process works."""
    project.write(some_rows(20))
    assert "--processes and -n do not go together" in (await project.process("run", "--processes", "2", "-n", "5")).err
    project.replace("[pace]", "[pace]\nprocesses = 4")
    ran = await project.process("run", "-n", "5")
    assert (ran.code, len(project.api.calls)) == (0, 5)
    assert "processes" not in ran.err

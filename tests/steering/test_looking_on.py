"""``status``, ``status --watch``, ``show`` and ``set`` beside a run at work."""

from __future__ import annotations

import asyncio
import json
import os
import socket

import pytest
from aiohttp import web
from project import some_rows


async def until(holds):
    async with asyncio.timeout(4):
        while not holds():  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.02)


@pytest.fixture
async def at_work(project, start):
    """A run of a thousand records at 20 at a time, well under way."""
    project.api.latency = 0.03
    project.write(some_rows(1000), concurrency=20)
    pipeline = project.pipeline()
    start(pipeline)
    await project.api.wait_for_calls(200)
    return pipeline


async def noted(project, holds):
    """Return once what the run says in its store is so."""

    def said():
        [(totals,)] = project.sql("SELECT totals FROM runs ORDER BY id DESC LIMIT 1")
        return holds(json.loads(totals).get("live") or {})

    await until(said)


async def test_status_of_a_live_run(project, at_work):
    """It says how fast the run is now, how long calls take, and how many are in flight."""
    await noted(project, lambda live: live.get("rate_per_s", 0) > 0)
    seen = project.summary(await project.run("status", "--json"))
    assert seen["state"] == "running"
    assert seen["rate_per_s"] > 0
    assert seen["latency_ms"]["p50"] >= 30
    assert 0 <= seen["in_flight"] <= 20 == seen["concurrency"]
    assert seen["held_up"] is None
    assert f"\n  at work: process {os.getpid()} on {socket.gethostname()}\n" in (await project.run("status")).out


async def test_set_is_followed_and_shown(project, at_work):
    """``set`` names the runs that follow; ``status`` and ``show`` say that it is paused and what goes on."""
    ran = await project.run("set", "pause=true", "concurrency=7")
    assert (ran.code, ran.err) == (0, "t: pause=true, concurrency=7; 1 live run follows within 2 s\n")
    await noted(project, lambda live: (live["held_up"] or {}).get("by") == "paused")
    seen = project.summary(await project.run("status", "--json"))
    assert (seen["state"], seen["concurrency"]) == ("paused", 7)
    assert "t: paused; resume with: rowcall set pause=false" in (await project.run("status")).out
    assert (
        "not done: the run is paused; resume with: rowcall set pause=false" in (await project.run("show", "k999")).out
    )


async def test_watch_ends_with_the_run(project, at_work):
    """One line of JSON for each change, and the last one says how the run ended."""
    watching = asyncio.create_task(project.run("status", "--watch", "--json"))
    await asyncio.sleep(0.6)
    at_work.stop("interrupted")
    lines = [json.loads(line) for line in (await watching).out.splitlines()]
    assert lines[0]["state"] == "running"
    assert (lines[-1]["state"], lines[-1]["stop_reason"]) == ("stopped", "interrupted")
    assert len({json.dumps(line) for line in lines}) == len(lines)


async def test_watch_into_a_file(project, at_work):
    """Where nothing can be redrawn, how it stood at first stays above how it ended."""
    watching = asyncio.create_task(project.run("status", "--watch"))
    await asyncio.sleep(0.6)
    at_work.stop("interrupted")
    first, last = [block.splitlines()[0] for block in (await watching).out.split("\n\n")]
    assert (first, last) == ("t: running", "t: stopped (interrupted)")


async def test_watch_for_people(project):
    """Where no run is alive it is said once."""
    project.write(some_rows(3))
    await project.pipeline().run()
    ran = await project.run("status", "--watch")
    assert ran.out.count("t: done") == 1


async def test_resting_and_waiting(project, start):
    """A run that rests says until when and why; a record that waits says for what."""
    project.api.respond = lambda call: web.Response(status=429, headers={"Retry-After": "60"})
    project.write(some_rows(3))
    start(project.pipeline())
    await project.api.wait_for_calls(1)
    await noted(project, lambda live: (live.get("held_up") or {}).get("by") == "resting")
    status = (await project.run("status")).out
    assert "t: running, pausing because the API asked for it, until " in status
    seen = json.loads((await project.run("show", "k0", "--json")).out)
    assert seen["why_not_done"].startswith("waits until ")
    assert "rate_limited" in seen["why_not_done"]


async def test_a_killed_run(project):
    """Its time stands still, and it is said that its process died and what becomes of its records."""
    project.api.latency = 0.2
    project.write(some_rows(200), concurrency=5)
    process = await project.start("run")
    await project.api.wait_for_calls(20)
    await project.kill(process)
    first, second = [project.summary(await project.run("status", "--json")) for _ in range(2)]
    assert (first["state"], first["stop_reason"]) == ("stopped", "crashed")
    assert first["elapsed_s"] == second["elapsed_s"] < 10
    assert first["running"] > 0
    assert "the process of the last run died; the next run takes back the" in (await project.run("status")).out
    [(key,), *_] = project.sql("SELECT id FROM jobs WHERE status = 'running'")
    assert "the process that worked on it died" in (await project.run("show", key)).out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("pause=yes",), "pause must be true or false"),
        (("concurrency=0",), "concurrency must be a whole number of at least 1"),
        (("max_cost=-1",), "max_cost must be an amount in dollars above 0"),
        (("speed=9",), "settings of a live run are: concurrency, requests, tokens, max_cost, pause"),
        (("concurrency=9",), "--keep applies it to the next runs"),
    ],
)
async def test_what_cannot_be_set(project, args, said):
    """It is refused with what would do, also where no run is alive to follow; nothing is changed."""
    project.write(some_rows(1))
    await project.pipeline().run()
    ran = await project.run("set", *args)
    assert ran.code == 2
    assert said in ran.err
    assert project.sql("SELECT count(*) FROM settings") == [(0,)]


async def test_kept_and_taken_away(project):
    """``--keep`` works without a run, and ``default`` takes the setting away."""
    project.write(some_rows(1))
    await project.pipeline().run()
    assert "kept for later runs" in (await project.run("set", "max_cost=20", "--keep")).err
    assert project.sql("SELECT name, value, keep FROM settings") == [("max_cost", "20", 1)]
    assert (await project.run("set", "max_cost=default")).code == 0
    assert project.sql("SELECT count(*) FROM settings") == [(0,)]


async def test_why_of_every_status(project):
    """Done records have no reason; cancelled, pruned and waiting ones say what brings them on."""
    project.write(some_rows(4))
    await project.pipeline().run()
    project.sql("UPDATE jobs SET status = 'cancelled' WHERE id = 'k1'")
    project.sql("DELETE FROM payloads WHERE job = (SELECT rowid FROM jobs WHERE id = 'k2')")
    project.sql("UPDATE jobs SET status = 'pending' WHERE id IN ('k2', 'k3')")
    whys = {}
    for key in ("k0", "k1", "k2", "k3"):
        whys[key] = json.loads((await project.run("show", key, "--json")).out)["why_not_done"]
    assert whys["k0"] is None
    assert "rowcall retry" in whys["k1"]
    assert "pruned" in whys["k2"]
    assert whys["k3"] == "no run is live; start one with: rowcall run"

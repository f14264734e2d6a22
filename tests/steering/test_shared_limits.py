"""Limits of the config, at a real server."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from time import monotonic

import pytest
from aiohttp import web
from project import some_rows

from rowcall.calls.door import Reason
from rowcall.engine.options import Options

LAG = 0.1
"""Seconds by which a loaded machine may show the server calls closer together than they left."""


def fullest(arrived, per):
    return max(bisect_left(arrived, moment + per - LAG) - n for n, moment in enumerate(arrived))


async def test_three_processes_share_a_rate(project):
    """Three real processes at 25/s: no second holds more than 26 calls."""
    project.write(some_rows(55), concurrency=10)
    project.replace("[retry]", 'requests = "25/s"\n[retry]')
    processes = [await project.start("run") for _ in range(3)]
    ran = await asyncio.gather(*map(project.end, processes))
    assert [one.code for one in ran] == [0, 0, 0], ran
    arrived = await project.arrivals()
    assert len(arrived) == 55
    assert fullest(arrived, 1.0) <= 26


@pytest.mark.slow
async def test_three_processes_share_sixty_a_minute(project):
    """No minute holds more than 61."""
    project.write(some_rows(130), concurrency=10)
    project.replace("[retry]", 'requests = "60/min"\n[retry]')
    processes = [await project.start("run") for _ in range(3)]
    said = await asyncio.wait_for(asyncio.gather(*(process.communicate() for process in processes)), 300)
    assert [process.returncode for process in processes] == [0, 0, 0], said
    arrived = await project.arrivals()
    assert fullest(arrived, 60.0) <= 61
    assert (len(arrived) - 1) / (arrived[-1] - arrived[0]) > 0.97


async def test_several_limits(project):
    """With two limits the narrower one holds at each time: a burst of neither is doubled."""
    project.write(some_rows(12), concurrency=10)
    project.replace("[retry]", 'requests = ["40/s", "600/min"]\n[retry]')
    report = await project.pipeline().run()
    assert report.done == 12
    arrived = await project.arrivals()
    assert fullest(arrived, 1.0) <= 10 + 6 + 1


async def test_tokens_are_kept_to(project):
    """A limit on tokens spaces calls by their size, learned from what replies report; nothing else limits them."""
    project.api.respond = lambda call: web.json_response(
        {
            "choices": [{"message": {"content": '{"label": "positive"}'}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 90, "completion_tokens": 10},
        }
    )
    project.write(some_rows(12), concurrency=10)
    project.replace("[retry]", 'tokens = "1000/s"\n[retry]')
    report = await project.pipeline().run()
    assert report.done == 12
    arrived = await project.arrivals()
    assert fullest(arrived, 1.0) <= 12
    assert arrived[-1] - arrived[3] > 0.6


async def test_a_record_bigger_than_the_bucket_goes(project, start):
    """It is called at once, and what comes next waits, in the store and not in a slot."""
    rows = some_rows(3)
    rows[0][1] = "good " * 2000
    project.write(rows)
    project.replace("[retry]", 'tokens = { input = "1000/min" }\n[retry]')
    pipeline = project.pipeline()
    running = start(pipeline)
    await project.api.wait_for_calls(1)
    async with asyncio.timeout(3):
        while (held := pipeline.view.held_up) is None or pipeline.view.in_flight:  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.02)
    assert held.by == "rate limit"
    assert not running.done()
    assert len(project.api.calls) == 1


async def test_without_limits_no_store_traffic(project):
    """Where no limit is set, no call writes a row of limits."""
    project.write(some_rows(20))
    await project.pipeline().run()
    assert project.sql("SELECT count(*) FROM limits") == [(0,)]


async def test_a_429_to_one_rests_all(project, start):
    """While one process rests as it was asked to, another one on the store sends nothing either."""
    told = []

    def refuse_once(call):
        if "number 20 " in call.text and not told:
            told.append(call)
            return web.Response(status=429, headers={"Retry-After": "1.5"})
        return None

    project.api.respond = refuse_once
    project.api.latency = 0.02
    project.write(some_rows(80), concurrency=2)
    project.replace("[retry]", 'requests = "60/s"\n[retry]')
    for running in [start(project.pipeline()) for _ in range(2)]:
        await running
    (call,) = told
    after = [arrived - call.ended for arrived in await project.arrivals() if arrived > call.ended + 0.5]
    assert min(after) >= 1.45


async def test_two_kinds_with_different_targets(project, start):
    """On one store, the rest of one target holds up nothing at the other; what rests is in the store, in no slot."""
    from rowcall.mock import MockAPI

    project.write(some_rows(30))
    async with MockAPI(latency=0.005) as other:
        other.respond = lambda call: web.Response(status=429, headers={"Retry-After": "60"})
        apart = {"name": "other", "api.base_url": other.url, "output.path": "other.csv", "store.path": "t.db"}
        resting = project.pipeline(**apart)
        start(resting)
        await other.wait_for_calls(1)
        report = await project.pipeline().run()
    assert report.done == 30
    answer = resting.view.answer
    assert (answer.reason, answer.at - monotonic() > 50) == (Reason.RESTING, True)
    assert resting.view.in_flight == 0
    assert project.sql("SELECT DISTINCT status FROM jobs WHERE kind = 'other'") == [("pending",)]


async def test_a_longer_wait_than_max_wait(project):
    """The run stops with the time to come back, the next one too without a call; the record paid nothing."""
    project.api.respond = lambda call: web.Response(status=429, headers={"Retry-After": "3600"})
    project.write(some_rows(5))
    project.replace("[stop]", 'max_wait = "15m"\n[stop]')
    report = await project.pipeline().run()
    assert report.ending.reason == "max_wait"
    assert "until" in report.ending.message
    calls = len(project.api.calls)
    assert (await project.pipeline().run()).ending.reason == "max_wait"
    assert len(project.api.calls) == calls
    await project.pipeline().run(Options(now=True))
    assert len(project.api.calls) == calls + 1
    assert set(project.attempts().values()) == {0}
    assert project.statuses() == {"pending": 5}

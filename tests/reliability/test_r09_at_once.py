"""R9: an API that takes only so many calls at once, and one that refuses a single call among many."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import web
from plainjob import plain_job

from rowcall.mock import Faults, MockAPI
from rowcall.model.events import Slowed


def pipeline(folder, api, records, *, concurrency=200, emit=None):
    more = f'[pace]\nconcurrency = {concurrency}\n[stop]\ngrace = "100ms"\n'
    return plain_job(folder, api.url, records, emit=emit, more=more)


async def test_too_many_at_once(tmp_path):
    """An API that takes 20 calls at once gets all of them done, a fifth of them refused at most, and it is said."""
    told = []
    async with MockAPI(latency=0.1, capacity=20, faults=Faults(retry_after=0.2)) as api:
        run = pipeline(tmp_path, api, 150, emit=lambda event: isinstance(event, Slowed) and told.append(event))
        report = await run.run()
    assert (report.done, report.failed) == (150, 0)
    assert report.tally.by_status["429"] <= 30
    assert told
    assert all(event.slots < 200 and "429" in event.cause for event in told)


async def answered(api, seconds):
    """Good answers in a second, over so many of them; they come in waves, so the first one only begins the count."""
    began = time.monotonic()
    await asyncio.sleep(seconds)
    ends = sorted(call.ended for call in api.calls if call.status == 200 and call.ended > began)
    return sum(end > ends[0] + 0.1 for end in ends) / (ends[-1] - ends[0])


@pytest.mark.slow
async def test_twenty_at_once_then_sixty(tmp_path):
    """Slots settle between 16 and 20 at 90 % of what the API can give, and come to 90 % of three times as much."""
    latency = 1.0
    async with MockAPI(latency=latency, capacity=20, faults=Faults(retry_after=1.0)) as api:
        run = pipeline(tmp_path, api, 8000)
        working = asyncio.create_task(run.run())
        await asyncio.sleep(9)
        rate, slots = await answered(api, 15), run.view.slots
        api.capacity, began = 60, time.monotonic()
        while await answered(api, 4) < 0.9 * 60 / latency:
            assert time.monotonic() < began + 90
        print(f"90 % of three times as much after {time.monotonic() - began:.0f} s")
        run.stop("interrupted")
        report = await working
    assert 16 <= slots <= 21
    assert rate >= 0.9 * 20 / latency
    assert report.failed == 0


@pytest.mark.slow
async def test_one_refusal_among_two_hundred_slots(tmp_path):
    """A single 429 with Retry-After 1 makes a run 1 to 2 s longer."""
    took = []
    for refuses in (False, True):
        refused = []

        def refuse_one(call, refuses=refuses, refused=refused):
            if refuses and "number 700 " in call.text and not refused:
                refused.append(call)
                return web.Response(status=429, headers={"Retry-After": "1"})
            return None

        folder = tmp_path / str(refuses)
        folder.mkdir()
        async with MockAPI(latency=0.3) as api:
            api.respond = refuse_one
            started = time.monotonic()
            report = await pipeline(folder, api, 1500).run()
            took.append(time.monotonic() - started)
        assert (report.done, report.failed, len(refused)) == (1500, 0, int(refuses))
    over = refused[0].ended
    assert not [call for call in api.calls if over + 0.1 < call.arrived < over + 0.95], "nothing leaves while it rests"
    assert took[1] - took[0] <= 3.0  # a second more than promised, for a machine that is busy

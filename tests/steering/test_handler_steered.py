"""Handlers keep to limits and to a pause with every request they make."""

from __future__ import annotations

import asyncio
from bisect import bisect_left

import pytest
from project import some_rows

HANDLER = """
async def label(row, call):
    body = {"model": "m", "messages": [{"role": "user", "content": row["text"]}]}
    replies = [await call.post("/chat/completions", json=body) for _ in range(2)]
    return {"label": replies[-1].json()["choices"][0]["message"]["content"]}
"""


@pytest.fixture
def handled(project):
    """A project whose handler makes two requests for each record."""
    project.write(some_rows(20), concurrency=6)
    (project.folder / "tasks.py").write_text(HANDLER)
    text = (project.folder / "config.toml").read_text()
    before, rest = text.split("[request.body]")
    _, after = rest.split("[output]")
    handler = '[handler]\npath = "tasks.py:label"\n[output]'
    project.config(before + handler + after.replace('columns = { label = "label" }\n', ""))
    return project


async def test_each_request_takes_a_place(handled):
    """Forty requests of twenty records at 25/s: no second holds more than 26."""
    handled.replace("[retry]", 'requests = "25/s"\n[retry]')
    report = await handled.pipeline().run()
    assert report.done == 20
    arrived = await handled.arrivals()
    assert len(arrived) == 40
    assert max(bisect_left(arrived, moment + 0.9) - n for n, moment in enumerate(arrived)) <= 26


async def test_a_pause_holds_the_second_request_too(handled, start):
    """While it is paused, a handler that is at work makes no further request; then it goes on."""
    handled.api.latency = 0.3
    pipeline = handled.pipeline()
    running = start(pipeline)
    await handled.api.wait_for_calls(1)
    await handled.set(pause="true")
    async with asyncio.timeout(4):
        while not (pipeline.view.held_up and pipeline.view.held_up.by == "paused"):  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.02)
    await handled.api.wait_in_flight(0)
    calls = handled.api.arrived
    await asyncio.sleep(0.4)
    assert handled.api.arrived == calls < 40
    await handled.set(pause=None, concurrency="20")
    assert (await running).done == 20
    assert handled.api.arrived == 40

"""Workers without an input: four of them on what one enqueueing brought in."""

from __future__ import annotations

import asyncio
import json

import pytest
from aftermath import ended_once
from lives import key_of
from project import some_rows

pytestmark = pytest.mark.postgres

CONCURRENCY = 8
WORKERS = 4


@pytest.mark.parametrize("records", [1000, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_four_workers(project, records):
    """They share the records, one of them is killed, and what it had in hand is called once more and no oftener."""
    project.api.latency = 0.1
    project.write(some_rows(records), concurrency=CONCURRENCY)
    assert (await project.run("enqueue")).code == 0
    workers = [await project.start("work", "--json") for _ in range(WORKERS)]
    await asyncio.wait_for(project.api.wait_in_flight(WORKERS * CONCURRENCY), 60)
    await project.kill(workers.pop())
    ran = await asyncio.gather(*map(project.end, workers))
    assert [one.code for one in ran] == [0] * len(workers), ran
    assert (await project.run("export")).code == 0
    ended_once(project, records)
    calls = [key_of(call) for call in project.api.calls]
    assert set(calls) == {f"k{number}" for number in range(records)}
    assert len(calls) - records <= 3 * CONCURRENCY
    assert all(json.loads(one.out)["done"] == records for one in ran)
    print(f"{records} records by {WORKERS} workers, one killed: {len(calls) - records} calls repeated")

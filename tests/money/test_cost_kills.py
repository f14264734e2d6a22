"""Cost over kill -9: real processes."""

from __future__ import annotations

import asyncio

from project import some_rows
from till import cost

from rowcall.engine.options import Options

CONCURRENCY = 8


async def test_cost_over_kills(project, till):
    """Killed twice, resumed, retried: the cost is the server's own, lower by what was in hand at the kills at most."""
    till.latency = 0.03
    till.broken = lambda call: "7 is" in call.text
    project.write(some_rows(150), concurrency=CONCURRENCY)
    lost = 0
    for calls in (40, 90):
        process = await project.start("run")
        await asyncio.wait_for(till.wait_for_calls(calls), 20)
        await project.kill(process)
        await asyncio.wait_for(till.wait_in_flight(0), 5)
        missing = till.billed - project.spent() - lost
        assert 0 <= missing <= 3 * CONCURRENCY * cost("150")
        lost += missing
    await project.go()
    assert till.billed - project.spent() == lost
    till.broken = lambda call: False
    report = await project.go(Options(retry_failed=True))
    assert report.done == 150
    assert till.billed - project.spent() == lost

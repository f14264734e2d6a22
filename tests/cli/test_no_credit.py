"""Credit that runs out in the middle of a run."""

from __future__ import annotations

import json
from itertools import count

from aiohttp import web
from project import some_rows

BODY = {
    "error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}
}


async def test_credit_that_is_gone_stops_the_run_and_costs_nothing(project):
    """From call 501 of 1,000 on there is no credit: exit 3, 500 done, 500 pending, none charged; then it goes on."""
    api = project.api
    api.latency = 0.001
    answered = count(1)
    api.respond = lambda call: web.json_response(BODY, status=429) if next(answered) > 500 else None
    project.write(some_rows(1000))
    stopped = await project.run("run")
    assert stopped.code == 3
    assert "Credit or quota is used up" in stopped.err
    assert "Resume with: rowcall run" in stopped.err
    assert project.statuses() == {"done": 500, "pending": 500}
    assert sum(project.attempts().values()) == 500
    assert len(api.calls) <= 500 + 8
    api.respond = None
    again = await project.run("run", "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["done"] == 1000
    assert api.served[200] == 1000
    assert set(project.attempts().values()) == {1}

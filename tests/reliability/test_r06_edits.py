"""R6: the input is edited while its records are in every state."""

from __future__ import annotations

import asyncio

from aiohttp import web
from project import some_rows

EDITED = "this is terrible and awful"


async def test_edited_in_every_state(project):
    """Done, failed, waiting for a retry, running, never called: the old answer never stands as the current one."""
    failed, waiting, running = 1, 2, 3
    rows = some_rows(8)  # the next few may be claimed ahead

    def by_state(call):
        if call.text == rows[failed][1]:
            return web.Response(status=400)
        return web.Response(status=500) if call.text == rows[waiting][1] else None

    project.api.respond = by_state
    project.write(rows, concurrency=1)
    project.replace('first = "50ms", max = "200ms"', 'first = "30s", max = "60s"')
    project.api.latency = 0.05
    first = await project.start("run")
    await asyncio.wait_for(project.api.until(lambda: project.api.calls_of(rows[waiting][1])), 20)
    project.api.latency = 1.5
    await asyncio.wait_for(project.api.until(lambda: project.api.calls_of(rows[running][1])), 20)
    states = dict(project.sql("SELECT id, status FROM jobs"))
    assert [states[key] for key in ("k0", "k1", "k3", "k7")] == ["done", "failed", "running", "pending"]
    assert states["k2"] in ("pending", "running")
    project.api.latency = 0.05
    project.rows([[key, EDITED, note] for key, _, note in rows])
    other = await project.run("run")
    ran = await project.end(first)
    assert (ran.code, other.code) == (0, 0), (ran, other)
    assert project.statuses() == {"done": 8}
    assert [row["label"] for row in project.exported()] == ["negative"] * 8
    assert len(project.api.calls_of(EDITED)) == 8

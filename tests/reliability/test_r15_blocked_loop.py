"""R15: a handler blocks the event loop for longer than the lease."""

from __future__ import annotations

import asyncio

from aftermath import ended_once

TASKS = """
import asyncio, pathlib, time

async def label(row, call):
    await asyncio.sleep(0.05)
    mark = pathlib.Path(__file__).with_name("blocked")
    if row["id"] == "k3" and not mark.exists():
        mark.touch()
        until = time.monotonic() + 30
        while not mark.with_name("go on").exists() and time.monotonic() < until:
            time.sleep(0.05)
    return {"label": row["text"]}
"""


def write(project, rows):
    project.write([[f"k{n}", f"sentence {n}", ""] for n in range(rows)], concurrency=4)
    text = (project.folder / "config.toml").read_text()
    head, _, tail = text.partition("[request.body]")
    handler = '[handler]\npath = "tasks.py:label"\n[store]\nlease = "1.2s"\n[output]'
    project.config(head + handler + tail.partition("[output]")[2])
    (project.folder / "tasks.py").write_text(TASKS)


async def test_blocked_for_longer_than_the_lease(project):
    """Another run takes the jobs over and keeps them; what the blocked one gives is late; a warning names the line."""
    write(project, 20)
    blocked = await project.start("run")
    while not (project.folder / "blocked").exists():  # noqa: ASYNC110  another process makes it
        await asyncio.sleep(0.02)
    other = await project.run("run")
    assert other.code == 0, other.err
    assert "joins it, each record is called once" in other.err
    assert project.statuses() == {"done": 20}
    before = project.sql("SELECT * FROM jobs ORDER BY rowid")
    (project.folder / "go on").touch()
    ran = await project.end(blocked)
    assert ran.code == 0, ran.err
    assert "label (tasks.py:11) blocks the event loop" in ran.err
    assert project.sql("SELECT * FROM jobs ORDER BY rowid") == before
    late = "SELECT count(*) FROM results WHERE superseded = 1"
    assert 1 <= project.sql(late)[0][0] <= 4
    ended_once(project, 20)

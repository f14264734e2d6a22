"""``rowcall enqueue``: records come in, and nothing is called."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sqlite3
from pathlib import Path

import pytest
from project import some_rows
from workkit import until

from rowcall.model.errors import ConfigError


async def test_records_come_in_and_nothing_is_called(project):
    """The input stands in the store, pending; no call is made, no export written; the next command is named."""
    ran = await project.run("enqueue")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "t: 40 records: 40 new\nCall the API for them with: rowcall work\n"
    assert project.statuses() == {"pending": 40}
    assert not project.api.calls
    assert not (project.folder / "out.csv").exists()
    assert "stopped (enqueued)" in (await project.run("status")).out


async def test_again_says_what_is_new_changed_and_done(project):
    """Doing it again changes nothing; what is new, changed or done is counted, as JSON too."""
    await project.run("enqueue")
    await project.work_off()
    project.rows([*some_rows(39), ["k39", "another sentence", "n"], ["k40", "one more", "n"]])
    said = json.loads((await project.run("enqueue", "--json", "--batch", "b2")).out)
    assert {name: said[name] for name in ("kind", "total", "new", "changed", "done")} == {
        "kind": "t",
        "total": 41,
        "new": 1,
        "changed": 1,
        "done": 39,
    }
    assert project.statuses() == {"done": 39, "pending": 2}
    assert project.sql("SELECT count(*) FROM jobs WHERE batch = 'b2'") == [(2,)]


async def test_no_key_is_needed(project):
    """Who only brings records in needs neither the key nor the proxy of those who call."""
    project.replace('timeout = "5s"', 'timeout = "5s"\napi_key = { env = "NO_KEY" }\nproxy = { env = "NO_PROXY_HERE" }')
    assert (await project.run("enqueue")).code == 0
    with pytest.raises(ConfigError, match="needs the variable NO_KEY"):
        await project.work_off()


async def test_a_changed_request_is_not_brought_in_unasked(project):
    """As with run, a request that has changed since records were done stops it, until somebody says what to do."""
    await project.run("enqueue")
    await project.work_off()
    (project.folder / "prompt.md").write_text("Another prompt.")
    ran = await project.run("enqueue")
    assert ran.code == 2
    assert "the request has changed since 40 records were done" in ran.err
    assert "40 records: 40 changed" in (await project.run("enqueue", "--if-changed", "redo")).err
    assert project.statuses() == {"pending": 40}


async def test_several_are_one_pass_until_somebody_works(project):
    """What several enqueues bring in is worked on together; what an earlier pass left is brought in again by key."""
    await project.run("enqueue")
    project.rows([[f"x{n}", "other records", "n"] for n in range(10)])
    await project.run("enqueue")
    assert (await project.work_off()).done == 50


async def test_a_bad_line_stops_it_and_keeps_what_came_before(project):
    """A line that cannot be read is named, exit 2; what came before it is in the store."""
    rows = some_rows(3)
    project.rows([*rows, ["k0", "another text", "n"]])
    ran = await project.run("enqueue")
    assert ran.code == 2
    assert "in.csv:5" in ran.err
    assert project.statuses() == {"pending": 3}


async def test_an_interrupt_leaves_what_is_in(project):
    """Ctrl+C ends it with 130 though its input goes on; what came before is in, and the run says what it was."""
    project.replace('path = "in.csv"', 'path = "-"\nformat = "jsonl"')
    process = await project.start("enqueue", stdin=asyncio.subprocess.PIPE)
    process.stdin.write(b"".join(b'{"id": "%d", "text": "%s"}\n' % (n, b"a good one " * 200) for n in range(150)))
    await process.stdin.drain()
    await until(lambda: (project.folder / "t.db").exists() and project.statuses())
    process.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(process.wait(), 20) == 130
    assert project.statuses()["pending"] > 0
    assert project.sql("SELECT stop_reason FROM runs") == [("enqueued",)]


async def test_an_interrupt_of_a_silent_input(project):
    """Ctrl+C ends it at once where nobody has said anything on stdin yet."""
    project.replace('path = "in.csv"', 'path = "-"\nformat = "jsonl"')
    process = await project.start("enqueue", stdin=asyncio.subprocess.PIPE)
    await until(lambda: _waits_for_a_pipe(process.pid))
    process.send_signal(signal.SIGINT)
    _, said = await asyncio.wait_for(process.communicate(), 4)
    assert (process.returncode, said) == (130, b"Interrupted; nothing is lost. Resume with the same command\n")


def _waits_for_a_pipe(pid):
    """Whether a thread of a process is reading from a pipe that holds nothing."""
    threads = Path(f"/proc/{pid}/task")
    if not threads.exists():
        pytest.skip("only Linux tells what a thread waits for")
    return any("pipe_read" in (thread / "wchan").read_text() for thread in threads.iterdir())


async def test_who_brings_records_in_gives_signs_of_life(project):
    """However long the input lasts, workers do not take whoever reads it for dead, and so wait for what it brings."""
    project.replace('path = "in.csv"', 'path = "-"\nformat = "jsonl"')
    project.replace('timeout = "5s"', 'timeout = "5s"\n[store]\nlease = "1s"')
    process = await project.start("enqueue", stdin=asyncio.subprocess.PIPE)
    process.stdin.write(b"".join(b'{"id": "%d", "text": "%s"}\n' % (n, b"a good one " * 200) for n in range(150)))
    try:
        await until(lambda: _beats(project) > 3)
    finally:
        process.stdin.close()
        await project.end(process)


def _beats(project):
    """How often a session has given a sign of life; 0 while there is no store yet."""
    with contextlib.suppress(sqlite3.OperationalError):
        return sum(beat for (beat,) in project.sql("SELECT beat FROM sessions"))
    return 0

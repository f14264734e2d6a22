"""Claim and settle in groups of 64 with durability full, beside as many pending, done and failed rows as told.

Usage: python claims.py ROWS; prints jobs/s and the p99 of a claim in ms as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from machinery import HERE, markdown

from rowcall.outcome import Action, Settlement, Success, Usage
from rowcall.store.sqlite import SQLiteStore

GROUP = 64
JOBS = 20_000
"""Worked off, at most."""

_FILL = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
    INSERT INTO jobs (id, kind, batch, request, input_hash, status, attempts, pass, reason, created_at, updated_at)
    SELECT :status || i, 'k', 'b', :request, 'h', :status, :attempts, :pass, iif(:status = 'failed', 'http_500', NULL),
        '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z' FROM n
"""
_PAYLOADS = 'INSERT INTO payloads SELECT rowid, \'{"id":"k1","text":"sentence"}\' FROM jobs WHERE status = \'pending\''

ANSWER = Success({"label": "positive", "score": 0.93}, 200, "req", 0.05, Usage(57, 11))


def bench(folder, sizes, rounds):
    """The table: one line a size."""
    from machinery import command, middle

    lines = []
    for size in sizes:
        found = []
        for _ in range(rounds if size < 10**6 else 1):
            command(sys.executable, HERE / "claims.py", str(size), cwd=folder)
            found.append(json.loads((folder / "said.txt").read_text()))
        rate, p99 = (middle(one[name] for one in found) for name in ("rate", "p99"))
        lines.append([f"{size:,}", f"{rate:,.0f}", f"{p99:.1f} ms"])
    return markdown(["rows each pending, done, failed", "claim + settle, jobs/s", "claim p99"], lines)


async def measure(path, count):
    async with await SQLiteStore.open(path) as store:
        session = await store.begin_session()
        run = await store.begin_run(session, "k", {})
        request = await store.request("k", "r")
        fill(path, count, request, run.pass_)
        took, done, started = [], 0, time.perf_counter()
        while done < min(count, JOBS) and (jobs := await claimed(store, session, run, took)):
            await store.settle([Settlement(job, Action.DONE, outcome=ANSWER) for job in jobs])
            done += len(jobs)
        return done / (time.perf_counter() - started), 1000 * sorted(took)[int(0.99 * len(took))]


async def claimed(store, session, run, took):
    began = time.perf_counter()
    jobs = await store.claim(session, "k", run.pass_, GROUP)
    took.append(time.perf_counter() - began)
    return jobs


def fill(path, count, request, pass_):
    with closing(sqlite3.connect(path)) as connection, connection:
        for status, attempts in (("done", 1), ("failed", 3), ("pending", 0)):
            told = {"count": count, "status": status, "attempts": attempts, "request": request, "pass": pass_}
            connection.execute(_FILL, told)
        connection.execute(_PAYLOADS)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        rate, p99 = asyncio.run(measure(Path(folder) / "k.db", int(sys.argv[1])))
    json.dump({"rate": rate, "p99": p99}, sys.stdout)

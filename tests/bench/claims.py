"""Claim and settle in groups of 64 with durability full, beside as many pending, done and failed rows as told.

Usage: python claims.py ROWS [URL], in a file or in an empty PostgreSQL database; prints jobs/s and the p99 of a claim
in ms as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from machinery import HERE, markdown

from rowcall.model.outcome import Action, Settlement, Success, Usage
from rowcall.store.sqlite import SQLiteStore

sys.path.append(str(HERE.parent / "store"))  # where the kit with the PostgreSQL server is

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

_FILL_DATABASE = """
    INSERT INTO rowcall.jobs
        (id, kind, batch, request, input_hash, status, attempts, pass, reason, created_at, updated_at)
    SELECT %(status)s || i, 'k', 'b', %(request)s, 'h', %(status)s, %(attempts)s, %(pass)s,
        CASE WHEN %(status)s = 'failed' THEN 'http_500' END, now(), now() FROM generate_series(1, %(count)s) AS i
"""
_DATABASE_PAYLOADS = """
    INSERT INTO rowcall.payloads
    SELECT rowid, '{"id":"k1","text":"sentence"}' FROM rowcall.jobs WHERE status = 'pending'
"""

ANSWER = Success({"label": "positive", "score": 0.93}, 200, "req", 0.05, Usage(57, 11))


def bench(folder, sizes, rounds):
    """The table: one line a store and size."""
    lines = [["SQLite", *_measured(folder, size, rounds)] for size in sizes]
    with _server() as server:
        for size in sizes if server else ():
            with server.database() as name:
                lines.append(["PostgreSQL", *_measured(folder, size, rounds, server.url(name))])
    return markdown(["store", "rows each pending, done, failed", "claim + settle, jobs/s", "claim p99"], lines)


def _measured(folder, size, rounds, *url):
    from machinery import command, middle

    found = []
    for _ in range(rounds if size < 10**6 else 1):
        command(sys.executable, HERE / "claims.py", str(size), *url, cwd=folder)
        found.append(json.loads((folder / "said.txt").read_text()))
    rate, p99 = (middle(one[name] for one in found) for name in ("rate", "p99"))
    return f"{size:,}", f"{rate:,.0f}", f"{p99:.1f} ms"


@contextmanager
def _server():
    """A PostgreSQL server that keeps what it confirms; None where there are no binaries."""
    import pgkit

    if pgkit.binaries() is None:
        yield None
        return
    server = pgkit.Server(fsync="on", full_page_writes="on", synchronous_commit="on").start()
    try:
        yield server
    finally:
        server.throw_away()


async def measure(opening, fill, count):
    async with await opening as store:
        session = await store.begin_session()
        run = await store.begin_run(session, "k", {})
        request = await store.request("k", "r")
        fill(count, request, run.pass_)
        took, done, started = [], 0, time.perf_counter()
        while done < min(count, JOBS) and (jobs := await claimed(store, session, run, took)):
            await store.settle([Settlement(job, Action.DONE, outcome=ANSWER) for job in jobs])
            done += len(jobs)
        rate = done / (time.perf_counter() - started)
        await store.end_session(session)
        return rate, 1000 * sorted(took)[int(0.99 * len(took))]


async def claimed(store, session, run, took):
    began = time.perf_counter()
    jobs = await store.claim(session, "k", run.pass_, GROUP)
    took.append(time.perf_counter() - began)
    return jobs


def fills(count, request, pass_):
    """What fills the store, one status at a time."""
    for status, attempts in (("done", 1), ("failed", 3), ("pending", 0)):
        yield {"count": count, "status": status, "attempts": attempts, "request": request, "pass": pass_}


def fill_file(path, count, request, pass_):
    with closing(sqlite3.connect(path)) as connection, connection:
        for told in fills(count, request, pass_):
            connection.execute(_FILL, told)
        connection.execute(_PAYLOADS)


def fill_database(url, count, request, pass_):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE rowcall.jobs, rowcall.payloads, rowcall.results")
        for told in fills(count, request, pass_):
            connection.execute(_FILL_DATABASE, told)
        connection.execute(_DATABASE_PAYLOADS)
        connection.execute("VACUUM ANALYZE")


def main(rows, url=None):
    if url is None:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            path = Path(folder) / "k.db"
            return asyncio.run(measure(SQLiteStore.open(path), partial(fill_file, path), int(rows)))
    from rowcall.store.postgres import PostgresStore

    return asyncio.run(measure(PostgresStore.open(url), partial(fill_database, url), int(rows)))


if __name__ == "__main__":
    rate, p99 = main(*sys.argv[1:])
    json.dump({"rate": rate, "p99": p99}, sys.stdout)

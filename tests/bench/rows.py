"""What rows cost by the real commands, as they grow: bring in, go on unchanged, first call, export, memory."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

from clients.meter import config
from machinery import markdown, middle, rowcall, serving, write_rows

OUTPUT = """
[output]
columns = { label = "label", score = "score" }
"""

_ANSWER = """
    INSERT OR IGNORE INTO results (job, epoch, request, input_hash, batch, at,
        input_tokens, output_tokens, cached_tokens, reasoning_tokens, value)
    SELECT rowid, epoch + 1, request, input_hash, batch, created_at, 57, 11, 0, 0, '{"label":"positive","score":0.93}'
    FROM jobs WHERE status = 'pending'
"""
_DONE = "UPDATE jobs SET status = 'done', epoch = epoch + 1, attempts = 1, http_status = 200 WHERE status = 'pending'"


def bench(folder, sizes, rounds):
    """The table: one line a size."""
    with serving(0.0) as server:
        lines = [_line(folder / f"rows-{size}", size, server, rounds if size < 10**6 else 1) for size in sizes]
    head = ["rows", "bring in, rows/s", "again unchanged, rows/s", "first call after", "export, rows/s"]
    return markdown([*head, "memory: bring in", "again", "export"], lines)


def _line(folder, size, server, rounds):
    folder.mkdir()
    (folder / "config.toml").write_text(config(server.url, more=OUTPUT))
    write_rows(folder / "in.csv", size)
    brought = [_bring_in(folder) for _ in range(rounds)]
    _answer_all(folder)
    again = [rowcall("run", "-q", cwd=folder) for _ in range(rounds)]
    exported = [rowcall("export", "-o", "out.csv", cwd=folder) for _ in range(rounds)]
    first = middle(_first_call(folder, server) for _ in range(rounds))
    _check(folder, size)
    rates = [f"{size / middle(used.seconds for used in all_):,.0f}" for all_ in (brought, again)]
    memory = [f"{max(used.memory for used in all_):.0f} MB" for all_ in (brought, again, exported)]
    return [f"{size:,}", *rates, f"{first:.2f} s", f"{size / middle(u.seconds for u in exported):,.0f}", *memory]


def _bring_in(folder):
    for file in folder.glob("bench.db*"):
        file.unlink()
    return rowcall("run", "-q", "-n", "1", cwd=folder)


def _answer_all(folder):
    with closing(sqlite3.connect(folder / "bench.db")) as connection, connection:
        connection.execute(_ANSWER)
        connection.execute(_DONE)


def _first_call(folder, server):
    """Seconds from the start of the command to the first call, where the first row has changed."""
    path = folder / "in.csv"
    head, first, rest = path.read_text().split("\n", 2)
    path.write_text(f"{head}\n{first}.\n{rest}")
    server.standing()
    began = time.monotonic()
    rowcall("run", "-q", cwd=folder)
    return server.standing()["first"] - began


def _check(folder, size):
    with closing(sqlite3.connect(folder / "bench.db")) as connection:
        statuses = dict(connection.execute("SELECT status, count(*) FROM jobs GROUP BY status"))
    if statuses != {"done": size}:
        raise SystemExit(f"{folder}: {statuses} instead of {size} done")

"""Records a second with one process and with two, in turn, on all cores.

Twice: of the whole command, and once all processes are at work, which is while the last two thirds come in. And the
CPU that a record takes, the server's apart: where one process and its server keep more than one of two cores busy, a
second process cannot double the rate.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

from clients.meter import config
from machinery import markdown, middle, rowcall, serving, write_rows

HANDLER = """
async def label(row, call):
    sum(x * x for x in range(35_000))
    return {"label": "positive"}
"""
HANDLED = """
name = "bench"
[input]
path = "in.csv"
key = "id"
[api]
preset = "http"
base_url = "http://127.0.0.1:9"
[handler]
path = "tasks.py:label"
"""
PACE = """
[pace]
concurrency = {}
"""

_TIMES = "SELECT (julianday(at) - 2440587.5) * 86400 FROM results ORDER BY at"


def bench(folder, rounds, records):
    """The table: one line a case."""
    folder = folder / "processes"
    folder.mkdir()
    write_rows(folder / "in.csv", records)
    (folder / "tasks.py").write_text(HANDLER)
    with serving(0.05) as server:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        cases = {
            "a handler of 1 ms CPU, no call, 128 at a time": HANDLED + PACE.format(128),
            "calls, answered after 50 ms, 600 at a time": config(server.url, more=PACE.format(600)),
        }
        lines = [_line(folder, server, name, text, rounds, records) for name, text in cases.items()]
    head = [
        f"{records:,} records, {cores} cores",
        "1 process, records/s",
        "2 processes",
        "ratio",
        "of the whole command",
    ]
    return markdown([*head, "CPU a record, 1 process", "2 processes", "its server"], lines)


def _line(folder, server, name, text, rounds, records):
    (folder / "config.toml").write_text(text)
    found = {1: [], 2: []}
    for _ in range(rounds):
        for count, rates in found.items():
            rates.append(_one(folder, server, count, records))
    middles = [[middle(column) for column in zip(*rates, strict=True)] for rates in found.values()]
    (one, whole_one, cpu_one, _), (two, whole_two, cpu_two, served) = middles
    cpus = [f"{cpu:.2f} ms" for cpu in (cpu_one, cpu_two, served)]
    return [name, f"{one:,.0f}", f"{two:,.0f}", f"{two / one:.2f}", f"{whole_two / whole_one:.2f}", *cpus]


def _one(folder, server, count, records):
    for file in folder.glob("bench.db*"):
        file.unlink()
    before = server.standing()["cpu"]
    used = rowcall("run", "-q", "--processes", str(count), cwd=folder, core=None)
    with closing(sqlite3.connect(folder / "bench.db")) as connection:
        times = [at for (at,) in connection.execute(_TIMES)]
    assert len(times) == records
    served = server.standing()["cpu"] - before
    first, last = records // 3, records * 95 // 100
    rate = (last - first) / max(times[last] - times[first], 0.001)
    return rate, records / used.seconds, 1000 * used.cpu / records, 1000 * served / records

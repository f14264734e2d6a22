"""R19: a million rows that are done or failed stand before the ones that are claimed."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

from rowcall.model.outcome import Action, Settlement, Success
from rowcall.store.sqlite import SQLiteStore, claiming
from rowcall.store.types import Entry

ENDED = 1_000_000
GROUP = 16

_ENDED = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
    INSERT INTO jobs (id, kind, batch, request, input_hash, status, attempts, pass, reason, created_at, updated_at)
    SELECT 'old' || i, 'k', 'b', 1, 'h', iif(i % 2, 'done', 'failed'), 1, 1, iif(i % 2, NULL, 'http_500'), ?1, ?1 FROM n
"""


@pytest.mark.slow
async def test_a_claim_costs_the_same(tmp_path):
    """No claim walks over what has ended."""
    path = tmp_path / "k.db"
    async with await SQLiteStore.open(path, durability="normal") as store:
        session = await store.begin_session()
        run = await store.begin_run(session, "k", {})
        request = await store.request("k", "r")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(_ENDED, (ENDED,))
        entries = [Entry(f"{n}", "h", "{}", f"in:{n}") for n in range(20_000)]
        await store.enqueue("k", entries, pass_=run.pass_, request=request, batch="b")
        took, claimed = [], 0
        while True:
            started = time.perf_counter()
            jobs = await store.claim(session, "k", run.pass_, GROUP)
            took.append(time.perf_counter() - started)
            if not jobs:
                break
            claimed += len(jobs)
            await store.settle([Settlement(job, Action.DONE, outcome=Success(1)) for job in jobs])
        assert claimed == len(entries)
        took.sort()
        p50, p99 = (1000 * took[int(share * len(took))] for share in (0.5, 0.99))
        print(f"claims of {GROUP} beside {ENDED:,} ended rows: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
        plan = await store._thread.run(plan_of_a_claim)
        assert not [step for step in plan if "SCAN jobs" in step and "USING" not in step], plan


def plan_of_a_claim(connection):
    names = ("session", "kind", "pass", "limit", "at", "due", "crashes")
    rows = connection.execute(f"EXPLAIN QUERY PLAN {claiming._CLAIM}", dict.fromkeys(names, 1))
    return [row[-1] for row in rows]

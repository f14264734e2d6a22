"""Duplicates: records of one kind with the same request and input, which share one answer.

An answer is shared only if it came from a call (``origin`` is NULL), counts, and was superseded for none of the jobs
that got it. Only jobs without an answer of their own that counts get it: a job that has one was set back by hand, to be
called again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from rowcall.model.job import Job
from rowcall.store.sqlite.clock import stamp

MOST = 10_000
"""Pending jobs that one transaction gives answers to; about 0.2 s."""

# Made when duplicates are first looked for, since they slow down the claims and settlements of everyone else.
_INDEXES = (
    "CREATE INDEX IF NOT EXISTS jobs_twins ON jobs (kind, input_hash) WHERE status = 'pending'",
    "CREATE INDEX IF NOT EXISTS results_called ON results (input_hash) WHERE origin IS NULL",
    "CREATE INDEX IF NOT EXISTS results_taken_back ON results (origin) WHERE superseded = 1 AND origin IS NOT NULL",
)

_ANSWER = """
    SELECT results.id, donors.kind FROM results JOIN jobs AS donors ON donors.rowid = results.job
    WHERE results.input_hash = :hash AND origin IS NULL AND superseded = 0
    AND results.request IN (SELECT id FROM requests WHERE id = :request OR adopted_as = :request)
    AND donors.kind = (SELECT kind FROM jobs WHERE rowid = :row)
    AND NOT EXISTS (SELECT 1 FROM results AS given WHERE given.origin = results.id AND given.superseded = 1)
    ORDER BY results.id DESC LIMIT 1
"""
_DONE = """
    UPDATE jobs SET status = 'done', epoch = epoch + :later, crashes = 0, session = NULL, run_after = NULL,
        wait_ms = NULL, error = NULL, reason = NULL, updated_at = :at
"""
_HAS_ONE = """
    EXISTS (
        SELECT 1 FROM results
        WHERE job = jobs.rowid AND request = jobs.request AND input_hash = jobs.input_hash AND superseded = 0)
"""
_CLAIMED = """
    WHERE rowid = :row AND epoch = :epoch AND status = 'running' AND request = :request AND input_hash = :hash
    AND NOT HAS_ONE RETURNING rowid
""".replace("HAS_ONE", _HAS_ONE)
_PENDING = """
    WHERE rowid IN (
        SELECT rowid FROM jobs INDEXED BY jobs_twins
        WHERE status = 'pending' AND kind = :kind AND input_hash = :hash AND request = :request
        AND (pass IS NULL OR pass = (SELECT pass FROM jobs WHERE rowid = :row)) AND NOT HAS_ONE LIMIT :most)
    RETURNING rowid
""".replace("HAS_ONE", _HAS_ONE)
_GIVE = """
    INSERT INTO results (job, epoch, request, input_hash, batch, at,
        input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, value, origin)
    SELECT jobs.rowid, jobs.epoch, jobs.request, jobs.input_hash, jobs.batch, ?,
        0, 0, 0, 0, iif(cost_known, 0, NULL), value, answer
    FROM jobs, (SELECT id AS answer, value, cost IS NOT NULL AS cost_known FROM results WHERE id = ?)
    WHERE jobs.rowid = ?
"""


def answer_claimed(connection: sqlite3.Connection, now: float, claimed: Sequence[Job]) -> list[Job]:
    """Settle the claims for which a duplicate has an answer; returns them."""
    _index(connection)
    return [job for job in claimed if _give(connection, now, job, _CLAIMED, later=0, most=1)]


def answer_pending(connection: sqlite3.Connection, now: float, answered: Sequence[Job]) -> int:
    """Give the answers of these jobs to their pending duplicates; returns how many got one."""
    _index(connection)
    given = 0
    for job in answered:
        given += _give(connection, now, job, _PENDING, later=1, most=MOST - given)
    return given


def _index(connection: sqlite3.Connection) -> None:
    for statement in _INDEXES:
        connection.execute(statement)


def _give(connection: sqlite3.Connection, now: float, job: Job, which: str, *, later: int, most: int) -> int:
    """Give the answer of a duplicate, if there is one, to the jobs of a condition; returns how many got it."""
    wanted: dict[str, Any] = {"row": job.row, "epoch": job.epoch, "request": job.request, "hash": job.input_hash}
    answer = connection.execute(_ANSWER, wanted).fetchone()
    if answer is None:
        return 0
    number, kind = answer
    wanted |= {"kind": kind, "later": later, "most": most, "at": stamp(now)}
    rows = connection.execute(_DONE + which, wanted).fetchall()
    connection.executemany(_GIVE, [(wanted["at"], number, row) for (row,) in rows])
    return len(rows)

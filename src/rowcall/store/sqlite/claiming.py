"""Claiming jobs, and what is left to claim."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from rowcall.model import json_values
from rowcall.model.job import Job
from rowcall.store.liveness import ANY_NUMBER, SUSPECT
from rowcall.store.sqlite.clock import seconds, stamp
from rowcall.store.sqlite.sessions import ensure
from rowcall.store.types import Left

_TAKE = """
    UPDATE jobs SET status = 'running', epoch = epoch + 1, session = :session, updated_at = :at
    WHERE rowid IN (
"""
# Four arms, each with its own limit, so that a claim costs the same however many jobs are pending.
_NEXT = """
    SELECT rowid FROM (
        SELECT * FROM (
            SELECT rowid, run_after FROM jobs
            WHERE status = 'pending' AND kind = :kind AND pass = :pass AND run_after <= :due AND crashes < :crashes
            ORDER BY run_after, rowid LIMIT :limit)
        UNION ALL SELECT * FROM (
            SELECT rowid, run_after FROM jobs
            WHERE status = 'pending' AND kind = :kind AND pass IS NULL AND run_after <= :due AND crashes < :crashes
            ORDER BY run_after, rowid LIMIT :limit)
        UNION ALL SELECT * FROM (
            SELECT rowid, run_after FROM jobs
            WHERE status = 'pending' AND kind = :kind AND pass = :pass AND run_after IS NULL AND crashes < :crashes
            ORDER BY rowid LIMIT :limit)
        UNION ALL SELECT * FROM (
            SELECT rowid, run_after FROM jobs
            WHERE status = 'pending' AND kind = :kind AND pass IS NULL AND run_after IS NULL AND crashes < :crashes
            ORDER BY rowid LIMIT :limit)
    ) ORDER BY run_after IS NULL, run_after, rowid LIMIT :limit
"""
_AMONG = """
    SELECT rowid FROM jobs NOT INDEXED
    WHERE rowid IN (SELECT value FROM json_each(:only)) AND status = 'pending' AND kind = :kind
    AND (pass = :pass OR pass IS NULL) AND (run_after IS NULL OR run_after <= :due) AND crashes < :crashes
    ORDER BY run_after IS NULL, run_after, rowid LIMIT :limit
"""
_GIVING = """
    ) RETURNING run_after, rowid, id, epoch, attempts, crashes, request, input_hash,
        (SELECT record FROM payloads WHERE job = jobs.rowid)
"""
_CLAIM = _TAKE + _NEXT + _GIVING
_CLAIM_AMONG = _TAKE + _AMONG + _GIVING

_SUSPECT_RUNS = "SELECT 1 FROM jobs WHERE status = 'running' AND session = ? AND crashes >= ? LIMIT 1"
_RUNS = "SELECT 1 FROM jobs WHERE status = 'running' AND session = ? LIMIT 1"

_REJECTED = """
    SELECT reason FROM (SELECT class, reason FROM tries WHERE job = ? AND charged = 1 ORDER BY epoch DESC LIMIT ?)
    WHERE class = 'answer'
"""

_RUNNING = """
    SELECT EXISTS (
        SELECT 1 FROM jobs INDEXED BY jobs_running
        WHERE status = 'running' AND kind = ? AND (pass = ? OR pass IS NULL))
"""
_NEVER_CALLED = """
    SELECT 1 FROM jobs
    WHERE status = 'pending' AND kind = :kind AND pass IS :pass AND run_after IS NULL AND crashes < :crashes LIMIT 1
"""
_NEXT_DUE = """
    SELECT run_after FROM jobs
    WHERE status = 'pending' AND kind = :kind AND pass IS :pass AND run_after > '' AND crashes < :crashes
    ORDER BY run_after LIMIT 1
"""

# A job that may kill its process waits while any other of them runs; a worker that waits is woken when one ends.
_LEFT_AMONG = """
    WITH among AS (SELECT status, crashes, run_after FROM jobs WHERE rowid IN (SELECT value FROM json_each(:rows))),
        at_work AS (SELECT EXISTS (SELECT 1 FROM among WHERE status = 'running') AS any_runs),
        due AS (SELECT run_after FROM among, at_work WHERE status = 'pending' AND (crashes < :suspect OR NOT any_runs))
    SELECT any_runs, (SELECT count(*) FROM due WHERE run_after IS NULL), (SELECT min(run_after) FROM due) FROM at_work
"""

Taken = tuple[Any, ...]


def claim(
    connection: sqlite3.Connection,
    now: float,
    session: int,
    kind: str,
    pass_: int,
    limit: int,
    fresh_only: bool,
    only: Sequence[int] | None,
) -> list[Taken]:
    """Take jobs. A job with which processes died three times runs alone in its session."""
    ensure(connection, now, session)
    if connection.execute(_SUSPECT_RUNS, (session, SUSPECT)).fetchone():
        return []
    at = stamp(now)
    wanted = {
        "session": session,
        "kind": kind,
        "pass": pass_,
        "limit": limit,
        "at": at,
        "due": "" if fresh_only else at,
        "only": None if only is None else json.dumps(list(only)),
        "crashes": SUSPECT,
    }
    taken = _take(connection, wanted)
    if taken or connection.execute(_RUNS, (session,)).fetchone():
        return taken
    return _take(connection, wanted | {"crashes": ANY_NUMBER, "limit": min(limit, 1)})


def _take(connection: sqlite3.Connection, wanted: dict[str, Any]) -> list[Taken]:
    statement = _CLAIM if wanted["only"] is None else _CLAIM_AMONG
    rows = connection.execute(statement, wanted).fetchall()
    rows.sort(key=lambda row: (row[0] is None, row[0], row[1]))
    return [(*row, _rejected(connection, row)) for row in rows]


def _rejected(connection: sqlite3.Connection, row: Taken) -> tuple[str, ...]:
    """Why answers were rejected since attempts were last 0: the reasons of that many charged tries."""
    _, number, _, _, attempts, *_ = row
    if not attempts:
        return ()
    return tuple(reason for (reason,) in connection.execute(_REJECTED, (number, attempts)))


def read_job(taken: Taken) -> Job:
    """The job that a row of ``claim`` holds."""
    run_after, row, key, epoch, attempts, crashes, request, input_hash, record, rejected = taken
    data = json_values.read_back(record) if record else {}
    return Job(row, key, epoch, attempts, crashes, rejected, run_after is None, request, input_hash, data)


def left(connection: sqlite3.Connection, kind: str, pass_: int, now: float, only: Sequence[int] | None = None) -> Left:
    """What a pass still has to do. A job that runs alone is not due while anything runs."""
    if only is not None:
        return _left_among(connection, only, now)
    (running,) = connection.execute(_RUNNING, (kind, pass_)).fetchone()
    arms = [{"kind": kind, "pass": each, "crashes": SUSPECT if running else ANY_NUMBER} for each in (pass_, None)]
    if any(connection.execute(_NEVER_CALLED, arm).fetchone() for arm in arms):
        return Left(bool(running), 0.0)
    waits = [_value(connection.execute(_NEXT_DUE, arm)) for arm in arms]
    ends = [seconds(wait) for wait in waits if wait is not None]
    return Left(bool(running), max(0.0, min(ends) - now) if ends else None)


def _left_among(connection: sqlite3.Connection, rows: Sequence[int], now: float) -> Left:
    among = {"rows": json.dumps(list(rows)), "suspect": SUSPECT}
    running, never_called, wait = connection.execute(_LEFT_AMONG, among).fetchone()
    due_in = max(0.0, seconds(wait) - now) if wait else None
    return Left(bool(running), 0.0 if never_called else due_in)


def _value(cursor: sqlite3.Cursor) -> Any:
    row = cursor.fetchone()
    return row[0] if row else None

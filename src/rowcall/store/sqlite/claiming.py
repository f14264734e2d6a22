"""Taking jobs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from rowcall.model import json_values
from rowcall.model.job import Job
from rowcall.store.liveness import ANY_NUMBER, SUSPECT
from rowcall.store.sqlite.clock import stamp
from rowcall.store.sqlite.sessions import ensure

_TAKE = """
    UPDATE jobs SET status = 'running', epoch = epoch + 1, session = :session, updated_at = :at
    WHERE rowid IN (
"""
# Four arms, each with its own limit, so that a claim costs the same whatever waits behind it.
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
    """Take jobs; one whose processes died three times runs with nothing beside it in its session."""
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
    """Why answers were rejected in the job's present life, which is as long as its attempts are many."""
    _, number, _, _, attempts, *_ = row
    if not attempts:
        return ()
    return tuple(reason for (reason,) in connection.execute(_REJECTED, (number, attempts)))


def read_job(taken: Taken) -> Job:
    """The job that a row of ``claim`` holds."""
    run_after, row, key, epoch, attempts, crashes, request, input_hash, record, rejected = taken
    data = json_values.read_back(record) if record else {}
    return Job(row, key, epoch, attempts, crashes, rejected, run_after is None, request, input_hash, data)

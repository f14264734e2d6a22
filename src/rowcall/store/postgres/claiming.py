"""Claiming jobs, and what is left to claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rowcall.model import json_values
from rowcall.model.job import Job
from rowcall.store.liveness import ANY_NUMBER, SUSPECT
from rowcall.store.postgres.pool import Connection, fetched
from rowcall.store.types import Left

# Four arms, each with its own limit, so that a claim costs the same however many jobs are pending. Rows that another
# transaction is taking are skipped. Ordering by all columns of the index makes the planner read from the index.
_DUE = """
    SELECT rowid, run_after FROM rowcall.jobs
    WHERE status = 'pending' AND kind = %(kind)s AND {whose} AND crashes < %(crashes)s
    AND run_after <= (SELECT CASE WHEN %(fresh_only)s THEN '-infinity' ELSE rowcall.moment() END)
    ORDER BY pass, run_after, rowid LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
"""
_FRESH = """
    SELECT rowid FROM rowcall.jobs
    WHERE status = 'pending' AND kind = %(kind)s AND {whose} AND crashes < %(crashes)s
    AND run_after IS NULL AND rowid > %(floor)s
    ORDER BY pass, run_after, rowid LIMIT (SELECT %(limit)s - count(*) FROM due) FOR NO KEY UPDATE SKIP LOCKED
"""
_OURS, _ANYONES = "pass = %(pass)s", "pass IS NULL"
_NEXT = f"""
    WITH due_ours AS MATERIALIZED ({_DUE.format(whose=_OURS)}),
    due_anyones AS MATERIALIZED ({_DUE.format(whose=_ANYONES)}),
    due AS MATERIALIZED (
        SELECT rowid FROM (SELECT * FROM due_ours UNION ALL SELECT * FROM due_anyones) AS arms
        ORDER BY run_after, rowid LIMIT %(limit)s),
    fresh_ours AS MATERIALIZED ({_FRESH.format(whose=_OURS)}),
    fresh_anyones AS MATERIALIZED ({_FRESH.format(whose=_ANYONES)}),
    fresh AS MATERIALIZED (
        SELECT rowid FROM (SELECT * FROM fresh_ours UNION ALL SELECT * FROM fresh_anyones) AS arms
        ORDER BY rowid LIMIT (SELECT %(limit)s - count(*) FROM due)),
    next AS (SELECT rowid FROM due UNION ALL SELECT rowid FROM fresh)
"""  # noqa: S608  constants
_AMONG = """
    WITH next AS MATERIALIZED (
        SELECT rowid FROM rowcall.jobs
        WHERE rowid = ANY(%(only)s::bigint[]) AND status = 'pending' AND kind = %(kind)s
        AND (pass = %(pass)s OR pass IS NULL) AND crashes < %(crashes)s
        AND (run_after IS NULL OR (NOT %(fresh_only)s AND run_after <= (SELECT rowcall.moment())))
        ORDER BY run_after NULLS LAST, rowid LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED)
"""
_TAKE = """
    UPDATE rowcall.jobs SET status = 'running', epoch = epoch + 1, session = %(session)s, take = %(take)s,
        updated_at = (SELECT rowcall.moment())
    WHERE rowid = ANY(ARRAY(SELECT rowid FROM next))
    RETURNING
"""
_COLUMNS = """
    run_after, rowid, id, epoch, attempts, crashes, request, input_hash,
    (SELECT record FROM rowcall.payloads WHERE job = rowid)
"""
_CLAIM = _NEXT + _TAKE + _COLUMNS
_CLAIM_AMONG = _AMONG + _TAKE + _COLUMNS
_TAKEN = f"""
    SELECT {_COLUMNS} FROM rowcall.jobs WHERE status = 'running' AND session = %(session)s AND take = %(take)s
"""  # noqa: S608  constants

_SUSPECT_RUNS = "SELECT 1 FROM rowcall.jobs WHERE status = 'running' AND session = %s AND crashes >= %s LIMIT 1"
_RUNS = "SELECT 1 FROM rowcall.jobs WHERE status = 'running' AND session = %s LIMIT 1"

# Why answers were rejected since attempts were last 0: the reasons of that many charged tries.
_REJECTED = """
    SELECT job, array(
        SELECT reason FROM (
            SELECT class, reason, epoch FROM rowcall.tries WHERE tries.job = given.job AND charged
            ORDER BY epoch DESC LIMIT given.attempts) AS charged
        WHERE class = 'answer' ORDER BY epoch DESC)
    FROM unnest(%s::bigint[], %s::bigint[]) AS given(job, attempts)
"""

# Each arm is ordered, so that the planner reads it from the index of pending jobs, whatever it guesses of their number.
_LEFT = """
    WITH at_work AS MATERIALIZED (
        SELECT EXISTS (
            SELECT 1 FROM rowcall.jobs
            WHERE status = 'running' AND kind = %(kind)s AND (pass = %(pass)s OR pass IS NULL) ORDER BY session LIMIT 1
        ) AS any_runs),
    most AS (SELECT any_runs, CASE WHEN any_runs THEN %(suspect)s ELSE %(any)s END AS crashes FROM at_work)
    SELECT any_runs,
        (SELECT true FROM rowcall.jobs
            WHERE status = 'pending' AND kind = %(kind)s AND pass = %(pass)s AND run_after IS NULL
            AND jobs.crashes < most.crashes ORDER BY run_after LIMIT 1) IS NOT NULL
        OR (SELECT true FROM rowcall.jobs
            WHERE status = 'pending' AND kind = %(kind)s AND pass IS NULL AND run_after IS NULL
            AND jobs.crashes < most.crashes ORDER BY run_after LIMIT 1) IS NOT NULL,
        extract(epoch FROM least(
            (SELECT run_after FROM rowcall.jobs
                WHERE status = 'pending' AND kind = %(kind)s AND pass = %(pass)s AND run_after IS NOT NULL
                AND jobs.crashes < most.crashes ORDER BY run_after LIMIT 1),
            (SELECT run_after FROM rowcall.jobs
                WHERE status = 'pending' AND kind = %(kind)s AND pass IS NULL AND run_after IS NOT NULL
                AND jobs.crashes < most.crashes ORDER BY run_after LIMIT 1)
        ) - (SELECT rowcall.moment()))::double precision
    FROM most
"""
# A job that may kill its process waits while any other of them runs; a worker that waits is woken when one ends.
_LEFT_AMONG = """
    WITH among AS (SELECT status, crashes, run_after FROM rowcall.jobs WHERE rowid = ANY(%(rows)s)),
        at_work AS (SELECT EXISTS (SELECT 1 FROM among WHERE status = 'running') AS any_runs),
        due AS (
            SELECT run_after FROM among, at_work
            WHERE status = 'pending' AND (crashes < %(suspect)s OR NOT any_runs))
    SELECT any_runs, EXISTS (SELECT 1 FROM due WHERE run_after IS NULL),
        extract(epoch FROM (SELECT min(run_after) FROM due) - (SELECT rowcall.moment()))::double precision
    FROM at_work
"""

Taken = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What a claim asks for.

    Attributes:
        take: the number of the claim within its session.
        only: among these rows.
        floor: never-called jobs are looked for above this row.
    """

    session: int
    take: int
    kind: str
    pass_: int
    limit: int
    fresh_only: bool = False
    only: Sequence[int] | None = None
    floor: int = 0

    def parameters(self) -> dict[str, Any]:
        """By the names of the statements."""
        wanted = {name: getattr(self, name) for name in ("session", "take", "kind", "limit", "fresh_only", "floor")}
        return wanted | {"pass": self.pass_, "only": None if self.only is None else list(self.only)}


async def claim(connection: Connection, asked: ClaimRequest) -> list[Taken]:
    """Take jobs. A job with which processes died three times runs alone in its session."""
    if await _any(connection, _SUSPECT_RUNS, asked.session, SUSPECT):
        return []
    taken = await _take(connection, asked.parameters() | {"crashes": SUSPECT})
    if asked.floor and (missing := asked.limit - len(taken)):
        from_start = {"crashes": SUSPECT, "floor": 0, "limit": missing}
        taken = sorted(taken + await _take(connection, asked.parameters() | from_start), key=_place)
    if taken or await _any(connection, _RUNS, asked.session):
        return taken
    return await _take(connection, asked.parameters() | {"crashes": ANY_NUMBER, "limit": min(asked.limit, 1)})


async def taken_before(connection: Connection, asked: ClaimRequest) -> list[Taken]:
    """What a claim took if its reply was lost."""
    cursor = await connection.execute(_TAKEN, asked.parameters())
    return await _in_order(connection, await cursor.fetchall())


async def _take(connection: Connection, wanted: dict[str, Any]) -> list[Taken]:
    statement = _CLAIM if wanted["only"] is None else _CLAIM_AMONG
    return await _in_order(connection, await (await connection.execute(statement, wanted)).fetchall())


async def _in_order(connection: Connection, rows: list[Taken]) -> list[Taken]:
    rejected = await _rejected(connection, rows)
    return [(*row, rejected.get(row[1], ())) for row in sorted(rows, key=_place)]


def _place(row: Taken) -> tuple[Any, ...]:
    """The order of jobs that are claimed together."""
    run_after, number, *_ = row
    return run_after is None, run_after, number


async def _rejected(connection: Connection, rows: Sequence[Taken]) -> dict[int, tuple[str, ...]]:
    called = {number: attempts for _, number, _, _, attempts, *_ in rows if attempts}
    if not called:
        return {}
    cursor = await connection.execute(_REJECTED, (list(called), list(called.values())))
    return {number: tuple(reasons) for number, reasons in await cursor.fetchall()}


async def _any(connection: Connection, statement: str, *parameters: int) -> bool:
    return await (await connection.execute(statement, parameters)).fetchone() is not None


def read_job(taken: Taken) -> Job:
    """The job that a row of ``claim`` holds."""
    run_after, row, key, epoch, attempts, crashes, request, input_hash, record, rejected = taken
    data = json_values.read_back(record) if record else {}
    return Job(row, key, epoch, attempts, crashes, rejected, run_after is None, request, input_hash, data)


async def left(connection: Connection, kind: str, pass_: int, only: Sequence[int] | None = None) -> Left:
    """What a pass still has to do. A job that runs alone is not due while anything runs."""
    wanted = {"kind": kind, "pass": pass_, "suspect": SUSPECT, "any": ANY_NUMBER}
    if only is not None:
        wanted["rows"] = list(only)
    running, never_called, due_in = await fetched(connection, _LEFT if only is None else _LEFT_AMONG, wanted)
    waits = None if due_in is None else max(0.0, due_in)
    return Left(running, 0.0 if never_called else waits)

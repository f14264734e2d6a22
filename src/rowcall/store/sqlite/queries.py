"""What people and exports ask: plain functions that read within one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from rowcall.model.errors import StoreError
from rowcall.model.job import Status
from rowcall.store.liveness import ANY_NUMBER, SUSPECT
from rowcall.store.sqlite.clock import seconds
from rowcall.store.types import (
    Counts,
    ErrorGroup,
    JobRow,
    LastCall,
    Left,
    RequestStanding,
    Role,
    RunRow,
    Selected,
    Selection,
    Try,
)

Name = TypeVar("Name")

_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")

_KINDS = "SELECT DISTINCT kind FROM requests ORDER BY kind"

_COUNTS = """
    SELECT status, run_after IS NOT NULL AND status = 'pending' AS retrying, http_status, count(*)
    FROM jobs NOT INDEXED WHERE kind = ? GROUP BY 1, 2, 3
"""
_TOTALS = """
    SELECT attempts, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost FROM totals WHERE kind = ?
"""
_SPENT = "SELECT cost FROM totals WHERE kind = ?"

_ERRORS = """
    SELECT coalesce(reason, ''), count(*) AS count, id, coalesce(error, ''), min(rowid)
    FROM jobs WHERE kind = ? AND status = 'failed' GROUP BY reason ORDER BY count DESC, reason
"""

_JOB_ROW = """
    SELECT rowid, id, kind, batch, status, attempts, crashes, error, reason, run_after, created_at, updated_at,
        http_status, request_id, latency_ms / 1000, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost
"""
_BY_KEY = _JOB_ROW + " FROM jobs WHERE kind = ? AND id = ?"
_PAGE = (
    _JOB_ROW
    + """
    FROM jobs NOT INDEXED WHERE rowid > :after AND kind = :kind AND (:status IS NULL OR status = :status)
    ORDER BY rowid LIMIT :limit
"""
)

_PAYLOAD = "SELECT record FROM payloads WHERE job = ?"

_TRIES = """
    SELECT at, epoch, class, reason, message, charged, http_status, request_id, latency_ms / 1000, body, cost
    FROM tries WHERE job = ? ORDER BY epoch
"""

_ANSWERS = """
    SELECT id, status, input_hash, reason, error, CASE WHEN status = 'done' THEN (
        SELECT value FROM results
        WHERE job = jobs.rowid AND request = jobs.request AND input_hash = jobs.input_hash AND superseded = 0
        ORDER BY epoch DESC LIMIT 1
    ) END
    FROM jobs WHERE kind = ? AND id IN (SELECT value FROM json_each(?))
"""

_LAST_CALLS = """
    SELECT id, updated_at, http_status, request_id, (
        SELECT body FROM tries WHERE job = jobs.rowid ORDER BY epoch DESC LIMIT 1
    )
    FROM jobs WHERE kind = ? AND id IN (SELECT value FROM json_each(?))
"""

_STRAYS = """
    SELECT count(*) FROM jobs NOT INDEXED WHERE kind = ? AND status IN ('pending', 'failed') AND pass <> ?
"""

_RUNS = """
    SELECT runs.id, kind, pass, runs.started_at, ended_at, stop_reason, settings, totals, session, role, host, pid
    FROM runs LEFT JOIN sessions ON sessions.id = session WHERE kind = ?
"""
_LAST_RUN = _RUNS + " ORDER BY coalesce(ended_at, runs.started_at) DESC, runs.id DESC LIMIT 1"
_OPEN_RUNS = _RUNS + " AND ended_at IS NULL ORDER BY runs.id DESC"
_ALL_RUNS = _RUNS + " ORDER BY runs.id"

_REQUEST = "SELECT id FROM requests WHERE kind = ? AND hash = ?"
_LATEST = "SELECT id FROM requests WHERE kind = ? ORDER BY used DESC LIMIT 1"
_DONE = """
    SELECT count(*) FILTER (WHERE request IN (SELECT id FROM requests WHERE id = :number OR adopted_as = :number)),
        count(*)
    FROM jobs NOT INDEXED WHERE kind = :kind AND status = 'done'
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

# A suspect waits while any other of them runs; a running one wakes whoever waits for it when it ends.
_LEFT_AMONG = """
    WITH among AS (SELECT status, crashes, run_after FROM jobs WHERE rowid IN (SELECT value FROM json_each(:rows))),
        at_work AS (SELECT EXISTS (SELECT 1 FROM among WHERE status = 'running') AS any_runs),
        due AS (SELECT run_after FROM among, at_work WHERE status = 'pending' AND (crashes < :suspect OR NOT any_runs))
    SELECT any_runs, (SELECT count(*) FROM due WHERE run_after IS NULL), (SELECT min(run_after) FROM due) FROM at_work
"""

# No pair of column and value that the record does not have; names and values are data of the query, never a part of it.
_HAS_ALL = """
    AND (:cells IS NULL OR NOT EXISTS (
        SELECT 1 FROM json_each(:cells) AS asked WHERE NOT EXISTS (
            SELECT 1 FROM payloads, json_each(payloads.record) AS cell
            WHERE payloads.job = jobs.rowid AND cell.key = json_extract(asked.value, '$[0]')
            AND json_extract(asked.value, '$[1]') = CASE cell.type
                WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN '' ELSE CAST(cell.value AS TEXT)
            END)))
"""
_CHOSEN = """
    SELECT rowid FROM jobs NOT INDEXED WHERE kind = :kind
    AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
    AND (:batch IS NULL OR batch = :batch) HAS_ALL
""".replace("HAS_ALL", _HAS_ALL)
_CHOSEN_BY_WORDS = """
    SELECT rowid FROM jobs WHERE rowid IN (
        SELECT rowid FROM jobs WHERE kind = :kind AND id IN (SELECT value FROM json_each(:words))
        UNION ALL
        SELECT rowid FROM jobs WHERE kind = :kind AND reason IN (SELECT value FROM json_each(:words)))
    AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
    AND (:batch IS NULL OR batch = :batch) HAS_ALL
""".replace("HAS_ALL", _HAS_ALL)
_BY_STATUS = "SELECT status, count(*) FROM jobs WHERE rowid IN (CHOSEN) GROUP BY status"
_SAMPLE = "SELECT id FROM jobs WHERE rowid IN (CHOSEN) ORDER BY rowid LIMIT 5"
_UNMATCHED = """
    SELECT value FROM json_each(:words) AS word
    WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE kind = :kind AND id = word.value)
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE kind = :kind AND reason = word.value)
"""


def kinds(connection: sqlite3.Connection) -> list[str]:
    """The kinds in the store, by name."""
    return [kind for (kind,) in connection.execute(_KINDS)]


def counts(connection: sqlite3.Connection, kind: str) -> Counts:
    """A kind at a glance: one walk over its jobs."""
    groups = connection.execute(_COUNTS, (kind,)).fetchall()
    attempts, *tokens, cost = connection.execute(_TOTALS, (kind,)).fetchone() or (0, 0, 0, 0, 0, None)
    return Counts(
        by_status=_added((Status(status), count) for status, _, _, count in groups),
        retrying=sum(count for _, retrying, _, count in groups if retrying),
        attempts=attempts,
        **dict(zip(_TOKENS, tokens, strict=True)),
        cost=cost,
        by_http_status=_added((http, count) for _, _, http, count in groups if http is not None),
    )


def spent(connection: sqlite3.Connection, kind: str) -> int:
    """What the calls of a kind have cost, in nano-dollars."""
    return _first(connection.execute(_SPENT, (kind,))) or 0


def _added(pairs: Iterable[tuple[Name, int]]) -> dict[Name, int]:
    sums: dict[Name, int] = {}
    for name, count in pairs:
        sums[name] = sums.get(name, 0) + count
    return sums


def errors(connection: sqlite3.Connection, kind: str) -> list[ErrorGroup]:
    """Failed jobs by reason, most first."""
    return [ErrorGroup(*row[:4]) for row in connection.execute(_ERRORS, (kind,))]


def job(connection: sqlite3.Connection, kind: str, key: str) -> JobRow | None:
    """One job by its key."""
    row = connection.execute(_BY_KEY, (kind, key)).fetchone()
    return _job_row(row) if row else None


def page(connection: sqlite3.Connection, kind: str, after: int, limit: int, status: Status | None) -> list[JobRow]:
    """Jobs in the order of their rows."""
    wanted = {"kind": kind, "after": after, "limit": limit, "status": status}
    return [_job_row(row) for row in connection.execute(_PAGE, wanted)]


def _job_row(row: tuple[Any, ...]) -> JobRow:
    before, status, after = row[:4], Status(row[4]), row[5:]
    return JobRow(*(*before, status, *after))


def payload(connection: sqlite3.Connection, row: int) -> str | None:
    """The record of a job, as JSON."""
    found = connection.execute(_PAYLOAD, (row,)).fetchone()
    return found[0] if found else None


def tries(connection: sqlite3.Connection, row: int) -> list[Try]:
    """A job's unsuccessful calls."""
    return [Try(*(*each[:5], bool(each[5]), *each[6:])) for each in connection.execute(_TRIES, (row,))]


def answers(connection: sqlite3.Connection, kind: str, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows for ``Answer``, with the value as JSON or None."""
    return connection.execute(_ANSWERS, (kind, json.dumps(list(keys)))).fetchall()


def last_calls(connection: sqlite3.Connection, kind: str, keys: Sequence[str]) -> dict[str, LastCall]:
    """What the last calls of jobs came to."""
    return {key: LastCall(*rest) for key, *rest in connection.execute(_LAST_CALLS, (kind, json.dumps(list(keys))))}


def strays(connection: sqlite3.Connection, kind: str, pass_: int) -> int:
    """Pending and failed jobs of other passes."""
    (count,) = connection.execute(_STRAYS, (kind, pass_)).fetchone()
    return int(count)


def last_run(connection: sqlite3.Connection, kind: str, lives: Callable[[int], bool]) -> RunRow | None:
    """The run of the kind that was last heard to begin or end; ``lives`` tells whether a session does."""
    row = connection.execute(_LAST_RUN, (kind,)).fetchone()
    return _run_row(row, lives) if row else None


def live_runs(connection: sqlite3.Connection, kind: str, lives: Callable[[int], bool]) -> list[RunRow]:
    """The runs of the kind whose session lives."""
    rows = connection.execute(_OPEN_RUNS, (kind,)).fetchall()
    return [run for run in (_run_row(row, lives) for row in rows) if run.alive]


def runs(connection: sqlite3.Connection, kind: str, lives: Callable[[int], bool]) -> list[RunRow]:
    """The runs of the kind, oldest first."""
    return [_run_row(row, lives) for row in connection.execute(_ALL_RUNS, (kind,)).fetchall()]


def _run_row(row: tuple[Any, ...], lives: Callable[[int], bool]) -> RunRow:
    *facts, settings, totals, session, role, host, pid = row
    alive = facts[4] is None and lives(session)
    return RunRow(*(*facts, json.loads(settings), json.loads(totals), alive, Role(role), host, pid))


def request_standing(connection: sqlite3.Connection, kind: str, hash_: str) -> RequestStanding:
    """How a request stands to what is in the store: one walk over the kind's jobs."""
    number = _first(connection.execute(_REQUEST, (kind, hash_)))
    latest = _first(connection.execute(_LATEST, (kind,)))
    counting, done = connection.execute(_DONE, {"kind": kind, "number": number}).fetchone()
    return RequestStanding(number, latest in (number, None), counting, done - counting)


def left(connection: sqlite3.Connection, kind: str, pass_: int, now: float, only: Sequence[int] | None = None) -> Left:
    """What a pass still has. A suspect is not due while anything runs, since it runs alone."""
    if only is not None:
        return _left_among(connection, only, now)
    (running,) = connection.execute(_RUNNING, (kind, pass_)).fetchone()
    arms = [{"kind": kind, "pass": each, "crashes": SUSPECT if running else ANY_NUMBER} for each in (pass_, None)]
    if any(connection.execute(_NEVER_CALLED, arm).fetchone() for arm in arms):
        return Left(bool(running), 0.0)
    waits = [_first(connection.execute(_NEXT_DUE, arm)) for arm in arms]
    ends = [seconds(wait) for wait in waits if wait is not None]
    return Left(bool(running), max(0.0, min(ends) - now) if ends else None)


def _left_among(connection: sqlite3.Connection, rows: Sequence[int], now: float) -> Left:
    among = {"rows": json.dumps(list(rows)), "suspect": SUSPECT}
    running, never_called, wait = connection.execute(_LEFT_AMONG, among).fetchone()
    due_in = max(0.0, seconds(wait) - now) if wait else None
    return Left(bool(running), 0.0 if never_called else due_in)


def choice(kind: str, selection: Selection) -> tuple[str, dict[str, Any]]:
    """The query for the rows that a selection holds, and its parameters.

    Raises:
        StoreError: a word with a NUL, at which SQLite would cut it.
    """
    words = selection.reasons_or_keys
    if any("\0" in word for word in (*words, *(text for cell in selection.where for text in cell))):
        raise StoreError("a key, a reason or a cell cannot contain a NUL character")
    wanted = {
        "kind": kind,
        "words": json.dumps(words),
        "statuses": json.dumps(selection.statuses) if selection.statuses else None,
        "batch": selection.batch,
        "cells": json.dumps(selection.where) if selection.where else None,
    }
    return _CHOSEN_BY_WORDS if words else _CHOSEN, wanted


def select(connection: sqlite3.Connection, kind: str, selection: Selection) -> Selected:
    """What a selection holds."""
    query, wanted = choice(kind, selection)
    groups = connection.execute(_BY_STATUS.replace("CHOSEN", query), wanted)
    by_status = {Status(status): count for status, count in groups}
    sample = connection.execute(_SAMPLE.replace("CHOSEN", query), wanted)
    return Selected(
        by_status,
        tuple(key for (key,) in sample.fetchall()),
        tuple(word for (word,) in connection.execute(_UNMATCHED, wanted)),
    )


def check(connection: sqlite3.Connection) -> list[str]:
    """Faults of the file itself."""
    try:
        found = [fault for (fault,) in connection.execute("PRAGMA quick_check")]
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        return [str(error)]
    return [] if found == ["ok"] else found


def _first(cursor: sqlite3.Cursor) -> Any:
    row = cursor.fetchone()
    return row[0] if row else None

"""What people and exports ask: plain functions that read within one transaction. Times come as the contract's text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from rowcall.model.errors import StoreError
from rowcall.model.job import Status
from rowcall.store.liveness import ANY_NUMBER, SUSPECT
from rowcall.store.postgres.pool import Connection
from rowcall.store.types import Counts, ErrorGroup, JobRow, LastCall, Left, RequestStanding, Selected, Selection, Try

Name = TypeVar("Name")

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")

_PATIENTLY = "SELECT set_config('statement_timeout', '0', true), set_config('work_mem', '64MB', true)"

_KINDS = "SELECT DISTINCT kind FROM rowcall.requests ORDER BY kind"

_COUNTS = """
    SELECT status, run_after IS NOT NULL AND status = 'pending', http_status, count(*)
    FROM rowcall.jobs WHERE kind = %s GROUP BY 1, 2, 3
"""
_TOTALS = """
    SELECT coalesce(sum(attempts), 0)::bigint, coalesce(sum(input_tokens), 0)::bigint,
        coalesce(sum(output_tokens), 0)::bigint, coalesce(sum(cached_tokens), 0)::bigint,
        coalesce(sum(reasoning_tokens), 0)::bigint, sum(cost)::bigint
    FROM rowcall.totals WHERE kind = %s
"""
_SPENT = "SELECT coalesce(sum(cost), 0)::bigint FROM rowcall.totals WHERE kind = %s"

_ERRORS = """
    SELECT coalesce(groups.reason, ''), groups.count, first.id, coalesce(first.error, '')
    FROM (
        SELECT reason, count(*) AS count, min(rowid) AS row
        FROM rowcall.jobs WHERE kind = %s AND status = 'failed' GROUP BY reason
    ) AS groups JOIN rowcall.jobs AS first ON first.rowid = groups.row
    ORDER BY groups.count DESC, groups.reason NULLS FIRST
"""

_JOB_ROW = """
    SELECT rowid, id, kind, batch, status, attempts, crashes, error, reason, run_after, created_at, updated_at,
        http_status, request_id, latency_ms / 1000, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost
"""
_BY_KEY = _JOB_ROW + " FROM rowcall.jobs WHERE kind = %s AND id = %s"
_PAGE = (
    _JOB_ROW
    + """
    FROM rowcall.jobs WHERE rowid > %(after)s AND kind = %(kind)s AND (%(status)s::text IS NULL OR status = %(status)s)
    ORDER BY rowid LIMIT %(limit)s
"""
)

_PAYLOAD = "SELECT record FROM rowcall.payloads WHERE job = %s"

_TRIES = """
    SELECT at, epoch, class, reason, message, charged, http_status, request_id, latency_ms / 1000, body, cost
    FROM rowcall.tries WHERE job = %s ORDER BY epoch
"""

_ANSWERS = """
    SELECT id, status, input_hash, reason, error, CASE WHEN status = 'done' THEN (
        SELECT value FROM rowcall.results
        WHERE job = jobs.rowid AND request = jobs.request AND input_hash = jobs.input_hash AND NOT superseded
        ORDER BY epoch DESC LIMIT 1
    ) END
    FROM rowcall.jobs WHERE kind = %s AND id = ANY(%s)
"""

_LAST_CALLS = """
    SELECT id, updated_at, http_status, request_id, (
        SELECT body FROM rowcall.tries WHERE job = jobs.rowid ORDER BY epoch DESC LIMIT 1
    )
    FROM rowcall.jobs WHERE kind = %s AND id = ANY(%s)
"""

_STRAYS = """
    SELECT count(*) FROM rowcall.jobs WHERE kind = %s AND status IN ('pending', 'failed') AND pass <> %s
"""

_REQUEST = "SELECT id FROM rowcall.requests WHERE kind = %s AND hash = %s"
_LATEST = "SELECT id FROM rowcall.requests WHERE kind = %s ORDER BY used DESC LIMIT 1"
_DONE = """
    SELECT request = ANY(ARRAY(SELECT id FROM rowcall.requests WHERE id = %(number)s OR adopted_as = %(number)s)),
        count(*)
    FROM rowcall.jobs WHERE kind = %(kind)s AND status = 'done' GROUP BY 1
"""

# Each arm says its order, so that it is read from the index of what is pending, whatever is guessed of their number.
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
# A suspect waits while any other of them runs; a running one wakes whoever waits for it when it ends.
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

_CHOSEN = """
    SELECT rowid FROM rowcall.jobs WHERE kind = %(kind)s
    AND (%(statuses)s::text[] IS NULL OR status = ANY(%(statuses)s))
    AND (%(batch)s::text IS NULL OR batch = %(batch)s)
"""
_CHOSEN_BY_WORDS = """
    SELECT rowid FROM rowcall.jobs WHERE rowid IN (
        SELECT rowid FROM rowcall.jobs WHERE kind = %(kind)s AND id = ANY(%(words)s)
        UNION ALL
        SELECT rowid FROM rowcall.jobs WHERE kind = %(kind)s AND reason = ANY(%(words)s))
    AND (%(statuses)s::text[] IS NULL OR status = ANY(%(statuses)s))
    AND (%(batch)s::text IS NULL OR batch = %(batch)s)
"""
_HAS_ALL = """
    AND EXISTS (
        SELECT 1 FROM rowcall.payloads
        WHERE job = jobs.rowid AND rowcall.has_cells(record, %(columns)s::text[], %(cells)s::text[]))
"""
_SELECTED = """
    WITH chosen AS MATERIALIZED (SELECT rowid, status, id FROM rowcall.jobs WHERE rowid IN (CHOSEN))
    SELECT status, count(*), ARRAY(SELECT id FROM chosen ORDER BY rowid LIMIT 5) FROM chosen GROUP BY status
"""
_UNMATCHED = """
    SELECT word FROM unnest(%(words)s::text[]) WITH ORDINALITY AS asked (word, place)
    WHERE NOT EXISTS (SELECT 1 FROM rowcall.jobs WHERE kind = %(kind)s AND id = word)
    AND NOT EXISTS (SELECT 1 FROM rowcall.jobs WHERE kind = %(kind)s AND reason = word)
    ORDER BY place
"""

_INVALID = """
    SELECT format('the index %s is invalid: REINDEX it', indexrelid::regclass)
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = 'rowcall'::regnamespace AND NOT indisvalid ORDER BY 1
"""
_FAILED_PAGES = """
    SELECT format('%s pages of the database failed their checksum', checksum_failures)
    FROM pg_stat_database WHERE datname = current_database() AND checksum_failures > 0
"""


async def kinds(connection: Connection) -> list[str]:
    """The kinds in the store, by name."""
    return [kind for (kind,) in await fetch(connection, _KINDS)]


async def counts(connection: Connection, kind: str) -> Counts:
    """A kind at a glance: one walk over its jobs."""
    await patiently(connection)
    groups = await fetch(connection, _COUNTS, (kind,))
    ((attempts, *tokens, cost),) = await fetch(connection, _TOTALS, (kind,))
    return Counts(
        by_status=_added((Status(status), count) for status, _, _, count in groups),
        retrying=sum(count for _, retrying, _, count in groups if retrying),
        attempts=attempts,
        **dict(zip(_TOKENS, tokens, strict=True)),
        cost=cost,
        by_http_status=_added((http, count) for _, _, http, count in groups if http is not None),
    )


async def spent(connection: Connection, kind: str) -> int:
    """What the calls of a kind have cost, in nano-dollars."""
    return int(await first(connection, _SPENT, (kind,)))


def _added(pairs: Iterable[tuple[Name, int]]) -> dict[Name, int]:
    sums: dict[Name, int] = {}
    for name, count in pairs:
        sums[name] = sums.get(name, 0) + count
    return sums


async def errors(connection: Connection, kind: str) -> list[ErrorGroup]:
    """Failed jobs by reason, most first."""
    await patiently(connection)
    return [ErrorGroup(*row) for row in await fetch(connection, _ERRORS, (kind,))]


async def job(connection: Connection, kind: str, key: str) -> JobRow | None:
    """One job by its key."""
    rows = await fetch(connection, _BY_KEY, (kind, key)) if known([key]) else []
    return _job_row(rows[0]) if rows else None


async def page(connection: Connection, kind: str, after: int, limit: int, status: Status | None) -> list[JobRow]:
    """Jobs in the order of their rows."""
    await patiently(connection)
    wanted = {"kind": kind, "after": after, "limit": limit, "status": status.value if status else None}
    return [_job_row(row) for row in await fetch(connection, _PAGE, wanted)]


def _job_row(row: tuple[Any, ...]) -> JobRow:
    before, status, after = row[:4], Status(row[4]), row[5:]
    return JobRow(*(*before, status, *after))


async def payload(connection: Connection, row: int) -> str | None:
    """The record of a job, as JSON."""
    found: str | None = await first(connection, _PAYLOAD, (row,))
    return found


async def tries(connection: Connection, row: int) -> list[Try]:
    """A job's unsuccessful calls."""
    return [Try(*each) for each in await fetch(connection, _TRIES, (row,))]


async def answers(connection: Connection, kind: str, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows for ``Answer``, with the value as JSON or None."""
    return await fetch(connection, _ANSWERS, (kind, known(keys)))


async def last_calls(connection: Connection, kind: str, keys: Sequence[str]) -> dict[str, LastCall]:
    """What the last calls of jobs came to."""
    return {key: LastCall(*rest) for key, *rest in await fetch(connection, _LAST_CALLS, (kind, known(keys)))}


def known(keys: Iterable[str]) -> list[str]:
    """The keys among these that a store can have: no text in PostgreSQL holds a NUL, or half a surrogate pair."""
    return [key for key in keys if not _NO_TEXT.search(key)]


async def strays(connection: Connection, kind: str, pass_: int) -> int:
    """Pending and failed jobs of other passes."""
    await patiently(connection)
    return int(await first(connection, _STRAYS, (kind, pass_)))


async def request_standing(connection: Connection, kind: str, hash_: str) -> RequestStanding:
    """How a request stands to what is in the store: one walk over the kind's jobs."""
    await patiently(connection)
    number = await first(connection, _REQUEST, (kind, hash_))
    latest = await first(connection, _LATEST, (kind,))
    done = dict(await fetch(connection, _DONE, {"kind": kind, "number": number}))
    return RequestStanding(number, latest in (number, None), done.get(True, 0), done.get(False, 0))


async def left(connection: Connection, kind: str, pass_: int, only: Sequence[int] | None = None) -> Left:
    """What a pass still has. A suspect is not due while anything runs, since it runs alone."""
    wanted = {"kind": kind, "pass": pass_, "suspect": SUSPECT, "any": ANY_NUMBER}
    if only is not None:
        wanted["rows"] = list(only)
    ((running, never_called, due_in),) = await fetch(connection, _LEFT if only is None else _LEFT_AMONG, wanted)
    waits = None if due_in is None else max(0.0, due_in)
    return Left(running, 0.0 if never_called else waits)


def choice(kind: str, selection: Selection) -> tuple[str, dict[str, Any]]:
    """The query for the rows that a selection holds, and its parameters.

    Raises:
        StoreError: a word with a NUL, which no text in PostgreSQL holds.
    """
    words, cells = selection.reasons_or_keys, selection.where
    if any("\0" in word for word in (*words, *(text for cell in cells for text in cell))):
        raise StoreError("a key, a reason or a cell cannot contain a NUL character")
    wanted = {
        "kind": kind,
        "words": list(words),
        "statuses": [status.value for status in selection.statuses] or None,
        "batch": selection.batch,
        "columns": [column for column, _ in cells],
        "cells": [text for _, text in cells],
    }
    return (_CHOSEN_BY_WORDS if words else _CHOSEN) + (_HAS_ALL if cells else ""), wanted


async def select(connection: Connection, kind: str, selection: Selection) -> Selected:
    """What a selection holds."""
    query, wanted = choice(kind, selection)
    await patiently(connection)
    groups = await fetch(connection, _SELECTED.replace("CHOSEN", query), wanted)
    unmatched = await fetch(connection, _UNMATCHED, wanted)
    return Selected(
        {Status(status): count for status, count, _ in groups},
        tuple(groups[0][2]) if groups else (),
        tuple(word for (word,) in unmatched),
    )


async def check(connection: Connection) -> list[str]:
    """Faults that the server knows of."""
    return [fault for query in (_INVALID, _FAILED_PAGES) for (fault,) in await fetch(connection, query)]


async def patiently(connection: Connection) -> None:
    """Let the statements of this transaction take the time and the memory that a walk over all there is needs."""
    await connection.execute(_PATIENTLY)


async def fetch(connection: Connection, query: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    return await (await connection.execute(query, parameters)).fetchall()


async def first(connection: Connection, query: str, parameters: Any = None) -> Any:
    """The first value of the one row of a query; None where there is none."""
    row = await (await connection.execute(query, parameters)).fetchone()
    return row[0] if row else None

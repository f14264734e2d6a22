"""Reading jobs one by one, in pages and by their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rowcall.model import json_values
from rowcall.model.job import Status
from rowcall.store.queries.base import Query, Row, Statement, storable
from rowcall.store.types import Answer, JobRow, LastCall, LeftBehind, Try, read_answer

_KINDS = "SELECT DISTINCT kind FROM requests ORDER BY kind"
_JOB_ROW = """
    SELECT rowid, id, kind, batch, status, attempts, crashes, error, reason, run_after, created_at, updated_at,
        http_status, request_id, latency_ms / 1000, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost
"""
_BY_KEY = f"{_JOB_ROW} FROM jobs WHERE kind = :kind AND id = :key"
_PAGE = f"{_JOB_ROW} FROM jobs NOT INDEXED WHERE rowid > :after AND kind = :kind STATUS ORDER BY rowid LIMIT :limit"
_PAYLOAD = "SELECT record FROM payloads WHERE job = :row"
_TRIES = """
    SELECT at, epoch, class, reason, message, charged, http_status, request_id, latency_ms / 1000, body, cost
    FROM tries WHERE job = :row ORDER BY epoch
"""
_ANSWERS = """
    SELECT id, status, input_hash, reason, error, CASE WHEN status = 'done' THEN (
        SELECT value FROM results
        WHERE job = jobs.rowid AND request = jobs.request AND input_hash = jobs.input_hash AND NOT superseded
        ORDER BY epoch DESC LIMIT 1
    ) END
    FROM jobs WHERE kind = :kind AND id IN :keys
"""
_LAST_CALLS = """
    SELECT id, updated_at, http_status, request_id, (
        SELECT body FROM tries WHERE job = jobs.rowid ORDER BY epoch DESC LIMIT 1
    )
    FROM jobs WHERE kind = :kind AND id IN :keys
"""
_STRAYS = """
    SELECT count(*) FROM jobs NOT INDEXED WHERE kind = :kind AND status IN ('pending', 'failed') AND pass <> :pass_
"""
_LEFT_BEHIND = """
    SELECT jobs.rowid, id, record FROM jobs NOT INDEXED JOIN payloads ON payloads.job = jobs.rowid
    WHERE jobs.rowid > :after AND kind = :kind AND status = 'pending' AND pass <> :pass_
    ORDER BY jobs.rowid LIMIT :limit
"""
_DONOR = """
    SELECT donors.id FROM results
    JOIN results AS called ON called.id = results.origin JOIN jobs AS donors ON donors.rowid = called.job
    JOIN jobs ON jobs.rowid = results.job AND jobs.request = results.request AND jobs.input_hash = results.input_hash
    WHERE results.job = :row AND NOT results.superseded ORDER BY results.epoch DESC LIMIT 1
"""


def kinds() -> Query[list[str]]:
    """The kinds in the store, by name."""
    return [kind for (kind,) in (yield Statement(_KINDS)).rows]


def job(kind: str, key: str) -> Query[JobRow | None]:
    """One job by its key."""
    if not storable([key]):
        return None
    rows = (yield Statement(_BY_KEY, kind=kind, key=key)).rows
    return _job_row(rows[0]) if rows else None


def page(kind: str, *, after: int = 0, limit: int = 1000, status: Status | None = None) -> Query[list[JobRow]]:
    """Jobs in the order of their rows, those after row ``after``."""
    text = _PAGE.replace("STATUS", "AND status = :status" if status else "")
    only = {"status": status.value} if status else {}
    found = yield Statement(text, kind=kind, after=after, limit=limit, **only)
    return [_job_row(row) for row in found.rows]


def _job_row(row: Row) -> JobRow:
    return JobRow(*(*row[:4], Status(row[4]), *row[5:]))


def payload(row: int) -> Query[dict[str, Any] | None]:
    """The record of a job; None if it was pruned."""
    record = (yield Statement(_PAYLOAD, row=row)).value
    return None if record is None else json_values.read_back(record)


def donor(row: int) -> Query[str | None]:
    """The key of the duplicate whose answer a job was given; None if the job was called itself."""
    key: str | None = (yield Statement(_DONOR, row=row)).value
    return key


def tries(row: int) -> Query[list[Try]]:
    """The unsuccessful calls of a job, oldest first."""
    return [Try(*(*each[:5], bool(each[5]), *each[6:])) for each in (yield Statement(_TRIES, row=row)).rows]


def answers(kind: str, keys: Sequence[str]) -> Query[dict[str, Answer]]:
    """Jobs by key, with the current answer of those that are done."""
    found = yield Statement(_ANSWERS, kind=kind, keys=storable(keys))
    return {answer.key: answer for answer in map(read_answer, found.rows)}


def last_calls(kind: str, keys: Sequence[str]) -> Query[dict[str, LastCall]]:
    """What the last call of each job gave, by key."""
    found = yield Statement(_LAST_CALLS, kind=kind, keys=storable(keys))
    return {key: LastCall(*rest) for key, *rest in found.rows}


def strays(kind: str, pass_: int) -> Query[int]:
    """The number of pending and failed jobs that this pass did not bring."""
    return int((yield Statement(_STRAYS, kind=kind, pass_=pass_)).value)


def left_behind(kind: str, pass_: int, *, after: int = 0, limit: int = 1000) -> Query[list[LeftBehind]]:
    """Pending jobs with a payload that this pass did not bring."""
    found = yield Statement(_LEFT_BEHIND, kind=kind, pass_=pass_, after=after, limit=limit)
    return [LeftBehind(*row) for row in found.rows]

"""Writing decisions: each fenced by the epoch of its claim."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rowcall import values
from rowcall.errors import StoreError
from rowcall.job import Job
from rowcall.outcome import Action, Failure, Outcome, Settlement, Success, Usage
from rowcall.store.sqlite.claiming import Taken, read_job
from rowcall.store.sqlite.clock import due, stamp

_STATUS = {Action.DONE: "done", Action.FAIL: "failed", Action.RETRY: "pending", Action.RELEASE: "pending"}
_CHARGED = frozenset({Action.DONE, Action.FAIL, Action.RETRY})
_ERROR_LENGTH = 500
_BODY_LENGTH = 20_000

# After a call. The fence: this very claim, and still what was claimed.
_CLOSE = """
    UPDATE jobs SET status = :status, attempts = attempts + :charged, crashes = 0, session = NULL,
        run_after = :run_after, wait_ms = :wait_ms, error = :error, reason = :reason, updated_at = :at,
        http_status = :http_status, request_id = :request_id, latency_ms = :latency_ms, input_tokens = :input,
        output_tokens = :output, cached_tokens = :cached, reasoning_tokens = :reasoning, cost = :cost
    WHERE rowid = :row AND epoch = :epoch AND status = :held AND request = :request AND input_hash = :hash
    RETURNING kind
"""
# Without one.
_PUT_BACK = """
    UPDATE jobs SET status = 'pending', crashes = 0, session = NULL, updated_at = :at,
        run_after = :run_after, wait_ms = :wait_ms
    WHERE rowid = :row AND epoch = :epoch AND status = 'running' AND request = :request AND input_hash = :hash
    RETURNING kind
"""
# It was edited while it ran: what was called is not what is wanted any more.
_START_OVER = """
    UPDATE jobs SET status = 'pending', attempts = 0, crashes = 0, session = NULL, run_after = NULL, wait_ms = NULL,
        error = NULL, reason = NULL, updated_at = :at
    WHERE rowid = :row AND epoch = :epoch AND status = 'running'
    RETURNING kind
"""
_KIND = "SELECT kind FROM jobs WHERE rowid = :row"
# A late answer to what the job still asks is outdone; one to what it asked before may be of use when that comes back.
_OUTDONE = """
    SELECT (request = :request AND input_hash = :hash) OR EXISTS (
        SELECT 1 FROM results WHERE job = :row AND request = :request AND input_hash = :hash)
    FROM jobs WHERE rowid = :row
"""
_RESULT = """
    INSERT OR IGNORE INTO results (job, epoch, request, input_hash, superseded, batch, at,
        input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, value)
    SELECT :row, :epoch, :request, :hash, :superseded, batch, :at, :input, :output, :cached, :reasoning, :cost, :value
    FROM jobs WHERE rowid = :row
"""
_TRY = """
    INSERT OR IGNORE INTO tries (job, epoch, at, class, reason, message, charged, http_status, request_id, latency_ms,
        input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, body)
    VALUES (:row, :epoch, :at, :class, :reason, :error, :charged, :http_status, :request_id, :latency_ms,
        :input, :output, :cached, :reasoning, :cost, :body)
"""
_ADD = """
    INSERT INTO totals VALUES (:kind, :attempts, :input, :output, :cached, :reasoning, :cost)
    ON CONFLICT DO UPDATE SET attempts = attempts + excluded.attempts,
        input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
        cached_tokens = cached_tokens + excluded.cached_tokens,
        reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
        cost = coalesce(cost + excluded.cost, cost, excluded.cost)
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A settlement with its parameters, ready to be written."""

    settlement: Settlement
    parameters: dict[str, Any]


def ready(settlements: Iterable[Settlement]) -> list[Entry]:
    """Make settlements ready, outside of any transaction.

    Raises:
        StoreError: an answer that is no JSON; nothing of the group is written.
    """
    return [Entry(each, _parameters(each)) for each in settlements]


def settle(connection: sqlite3.Connection, now: float, entries: Sequence[Entry]) -> list[Settlement]:
    """Write a group; returns those that came too late."""
    used, common = _Used(), {"at": stamp(now), "held": "running"}
    late = [entry.settlement for entry in entries if not _settle_one(connection, now, entry, common, used)]
    connection.executemany(_ADD, used.parameters())
    return late


def hand_back(connection: sqlite3.Connection, now: float, taken: Iterable[Taken]) -> None:
    """Put jobs back as if they had never been claimed."""
    settle(connection, now, ready(Settlement(job, Action.RELEASE) for job in map(read_job, taken)))


@dataclass(slots=True)
class _Used:
    """What a group adds to the totals, by kind."""

    usage: dict[str, Usage] = field(default_factory=dict)
    attempts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, usage: Usage, attempts: int) -> None:
        self.usage[kind] = self.usage.get(kind, Usage()) + usage
        self.attempts[kind] += attempts

    def parameters(self) -> list[dict[str, Any]]:
        return [{"kind": kind, "attempts": self.attempts[kind], **_tokens(sum_)} for kind, sum_ in self.usage.items()]


def _settle_one(connection: sqlite3.Connection, now: float, entry: Entry, common: dict[str, Any], used: _Used) -> bool:
    """Write one; False where it came too late."""
    settlement = entry.settlement
    written = entry.parameters | common | _wait(settlement, now)
    if settlement.outcome is None:
        return bool(_kind(connection, _PUT_BACK, written) or _kind(connection, _START_OVER, written))
    kind = _kind(connection, _CLOSE, written) or _kind(connection, _START_OVER, written)
    if kind:
        _keep(connection, settlement.outcome, written, kind, used)
        return True
    return _keep_late(connection, settlement, written, used)


def _keep_late(connection: sqlite3.Connection, settlement: Settlement, written: dict[str, Any], used: _Used) -> bool:
    """Keep what came too late; True where it is there already, since a group may be written twice."""
    kind = _kind(connection, _KIND, written)
    outcome = settlement.outcome
    if kind is None or outcome is None:
        return False
    if isinstance(outcome, Success) and not _kind(connection, _CLOSE, written | {"held": "pending"}):
        (written["superseded"],) = connection.execute(_OUTDONE, written).fetchone()
    written["charged"] = int(isinstance(outcome, Success))
    return not _keep(connection, outcome, written, kind, used)


def _keep(connection: sqlite3.Connection, outcome: Outcome, written: dict[str, Any], kind: str, used: _Used) -> bool:
    """Keep what a call gave, and count what it used; False where that was done before."""
    statement = _RESULT if isinstance(outcome, Success) else _TRY
    if not connection.execute(statement, written).rowcount:
        return False
    used.add(kind, outcome.usage, written["charged"])
    return True


def _kind(connection: sqlite3.Connection, statement: str, parameters: dict[str, Any]) -> str | None:
    """The kind of the one row that a statement hits."""
    row = connection.execute(statement, parameters).fetchone()
    return row[0] if row else None


def _wait(settlement: Settlement, now: float) -> dict[str, Any]:
    if settlement.action in (Action.DONE, Action.FAIL):
        return {"run_after": None, "wait_ms": None}
    if settlement.wait is None and settlement.action is Action.RELEASE and settlement.job.fresh:
        return {"run_after": None, "wait_ms": None}
    wait = settlement.wait or 0.0
    return {"run_after": due(now + wait), "wait_ms": round(wait * 1000)}


def _parameters(settlement: Settlement) -> dict[str, Any]:
    job, outcome = settlement.job, settlement.outcome
    claimed = {"row": job.row, "epoch": job.epoch, "request": job.request, "hash": job.input_hash}
    if outcome is None:
        return claimed
    return claimed | {
        "status": _STATUS[settlement.action],
        "charged": int(settlement.action in _CHARGED),
        "superseded": 0,
        "http_status": outcome.status,
        "request_id": _clean(outcome.request_id, _ERROR_LENGTH),
        "latency_ms": None if outcome.latency is None else round(outcome.latency * 1000, 1),
        **_tokens(outcome.usage),
        **(_failed(outcome) if isinstance(outcome, Failure) else _answered(outcome, job)),
    }


def _tokens(usage: Usage) -> dict[str, int | None]:
    return {
        "input": usage.input,
        "output": usage.output,
        "cached": usage.cached,
        "reasoning": usage.reasoning,
        "cost": usage.cost,
    }


def _answered(success: Success, job: Job) -> dict[str, Any]:
    try:
        return {"value": values.dumps(success.value).decode(), "error": None, "reason": None}
    except TypeError as error:
        raise StoreError(f"the answer of {job.key!r} cannot be stored: {error}") from error


def _failed(failure: Failure) -> dict[str, Any]:
    return {
        "class": failure.cls.value,
        "reason": _clean(failure.reason, _ERROR_LENGTH),
        "error": _clean(failure.message, _ERROR_LENGTH),
        "body": _clean(failure.body, _BODY_LENGTH),
    }


def _clean(text: str | None, longest: int) -> str | None:
    """Text from outside, cut, with what SQLite cannot keep replaced: a history must never stop a settle."""
    if text is None:
        return None
    return text[:longest].replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()

"""Writing decisions: each fenced by the epoch of its claim."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from rowcall.model.outcome import Action, Outcome, Settlement, Success
from rowcall.store.settlement_values import Decided, Used, ready, wait
from rowcall.store.sqlite.claiming import Taken, read_job
from rowcall.store.sqlite.clock import due, stamp
from rowcall.store.sqlite.statement import PositionalStatement

# After a call. The fence: the same claim, and the record is still what was claimed.
_CLOSE = PositionalStatement("""
    UPDATE jobs SET status = :status, attempts = attempts + :charged, crashes = 0, session = NULL,
        run_after = :run_after, wait_ms = :wait_ms, error = :error, reason = :reason, updated_at = :at,
        http_status = :http_status, request_id = :request_id, latency_ms = :latency_ms, input_tokens = :input,
        output_tokens = :output, cached_tokens = :cached, reasoning_tokens = :reasoning, cost = :cost
    WHERE rowid = :row AND epoch = :epoch AND status = :held AND request = :request AND input_hash = :hash
    RETURNING kind
""")
# Without a call.
_PUT_BACK = PositionalStatement("""
    UPDATE jobs SET status = 'pending', crashes = 0, session = NULL, updated_at = :at,
        run_after = :run_after, wait_ms = :wait_ms
    WHERE rowid = :row AND epoch = :epoch AND status = 'running' AND request = :request AND input_hash = :hash
    RETURNING kind
""")
# The record changed while it ran: what was called is no longer what is wanted.
_START_OVER = PositionalStatement("""
    UPDATE jobs SET status = 'pending', attempts = 0, crashes = 0, session = NULL, run_after = NULL, wait_ms = NULL,
        error = NULL, reason = NULL, updated_at = :at
    WHERE rowid = :row AND epoch = :epoch AND status = 'running'
    RETURNING kind
""")
_KIND = "SELECT kind FROM jobs WHERE rowid = :row"
# A late answer to what the job still asks is superseded. One to what it asked before may count if that comes back.
_OUTDONE = """
    SELECT (request = :request AND input_hash = :hash) OR EXISTS (
        SELECT 1 FROM results WHERE job = :row AND request = :request AND input_hash = :hash)
    FROM jobs WHERE rowid = :row
"""
_RESULT = PositionalStatement("""
    INSERT OR IGNORE INTO results (job, epoch, request, input_hash, superseded, batch, at,
        input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, value)
    SELECT :row, :epoch, :request, :hash, :superseded, batch, :at, :input, :output, :cached, :reasoning, :cost, :value
    FROM jobs WHERE rowid = :row
""")
_TRY = PositionalStatement("""
    INSERT OR IGNORE INTO tries (job, epoch, at, class, reason, message, charged, http_status, request_id, latency_ms,
        input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, body)
    VALUES (:row, :epoch, :at, :class, :reason, :error, :charged, :http_status, :request_id, :latency_ms,
        :input, :output, :cached, :reasoning, :cost, :body)
""")
_ADD = """
    INSERT INTO totals VALUES (:kind, :attempts, :input, :output, :cached, :reasoning, :cost)
    ON CONFLICT DO UPDATE SET attempts = attempts + excluded.attempts,
        input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
        cached_tokens = cached_tokens + excluded.cached_tokens,
        reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
        cost = coalesce(cost + excluded.cost, cost, excluded.cost)
"""


def settle(connection: sqlite3.Connection, now: float, entries: Sequence[Decided]) -> list[Settlement]:
    """Write a group; returns those that came too late."""
    used, common = Used(), {"at": stamp(now), "held": "running"}
    late = [entry.settlement for entry in entries if not _settle_one(connection, now, entry, common, used)]
    connection.executemany(_ADD, used.parameters())
    return late


def hand_back(connection: sqlite3.Connection, now: float, taken: Iterable[Taken]) -> None:
    """Put jobs back as if they had never been claimed."""
    settle(connection, now, ready(Settlement(job, Action.RELEASE) for job in map(read_job, taken)))


def _settle_one(connection: sqlite3.Connection, now: float, entry: Decided, common: dict[str, Any], used: Used) -> bool:
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


def _keep_late(connection: sqlite3.Connection, settlement: Settlement, written: dict[str, Any], used: Used) -> bool:
    """Keep what came too late; True if it is stored already, since a group may be written twice."""
    row, outcome = connection.execute(_KIND, written).fetchone(), settlement.outcome
    if row is None or outcome is None:
        return False
    if isinstance(outcome, Success) and not _kind(connection, _CLOSE, written | {"held": "pending"}):
        (written["superseded"],) = connection.execute(_OUTDONE, written).fetchone()
    written["charged"] = int(isinstance(outcome, Success))
    return not _keep(connection, outcome, written, row[0], used)


def _keep(connection: sqlite3.Connection, outcome: Outcome, written: dict[str, Any], kind: str, used: Used) -> bool:
    """Store what a call gave and count what it used; False if that was done before."""
    statement = _RESULT if isinstance(outcome, Success) else _TRY
    if not statement.execute(connection, written).rowcount:
        return False
    used.add(kind, outcome.usage, written["charged"])
    return True


def _kind(connection: sqlite3.Connection, statement: PositionalStatement, parameters: dict[str, Any]) -> str | None:
    """The kind of the one row that a statement hits."""
    row = statement.execute(connection, parameters).fetchone()
    return row[0] if row else None


def _wait(settlement: Settlement, now: float) -> dict[str, Any]:
    seconds = wait(settlement)
    if seconds is None:
        return {"run_after": None, "wait_ms": None}
    return {"run_after": due(now + seconds), "wait_ms": round(seconds * 1000)}

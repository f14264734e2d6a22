"""Writing decisions, each fenced by the epoch of its claim. A group of any size takes a few statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rowcall.model.outcome import Failure, Settlement, Success
from rowcall.store.postgres.loaders import LONGEST_WAIT
from rowcall.store.postgres.pool import Connection
from rowcall.store.settlement_values import Decided, Used, wait

_NOBODY = 0

_CLAIMED = {"row": "bigint", "epoch": "bigint", "request": "bigint", "hash": "text"}
_WAITING = _CLAIMED | {"held": "text", "wait": "float8"}
_TOKENS = {"input": "bigint", "output": "bigint", "cached": "bigint", "reasoning": "bigint", "cost": "bigint"}
_CALL = {"http_status": "integer", "request_id": "text", "latency_ms": "float8", **_TOKENS}
_CLOSED = _WAITING | {"status": "text", "charged": "integer", "error": "text", "reason": "text"} | _CALL
_ANSWERED = _CLAIMED | _TOKENS | {"superseded": "boolean", "value": "text"}
_FAILED = {"row": "bigint", "epoch": "bigint", "class": "text", "reason": "text", "error": "text", "body": "text"}
_FAILED |= _CALL | {"charged": "boolean"}
_SPENT = {"kind": "text", "attempts": "bigint", **_TOKENS}


def _given(columns: dict[str, str]) -> str:
    """Rows out of one array for each column."""
    arrays = ", ".join(f"%({name})s::{type_}[]" for name, type_ in columns.items())
    return f"unnest({arrays}) AS given({', '.join(columns)})"


_WAITS = """
    run_after = (SELECT rowcall.moment()) + make_interval(secs => given.wait), wait_ms = round(given.wait * 1000)
"""
_THIS_CLAIM = """
    WHERE rowid = given.row AND jobs.epoch = given.epoch AND jobs.request = given.request AND input_hash = given.hash
    AND jobs.status = given.held
"""
# After a call. The fence: the same claim, and the record is still what was claimed. The status is compared with a
# column, not with a constant, so that the planner does not choose a partial index.
_CLOSE = f"""
    UPDATE rowcall.jobs SET status = given.status, attempts = attempts + given.charged, crashes = 0, session = NULL,
        {_WAITS}, error = given.error, reason = given.reason, updated_at = (SELECT rowcall.moment()),
        http_status = given.http_status, request_id = given.request_id, latency_ms = given.latency_ms,
        input_tokens = given.input, output_tokens = given.output, cached_tokens = given.cached,
        reasoning_tokens = given.reasoning, cost = given.cost
    FROM {_given(_CLOSED)} {_THIS_CLAIM} RETURNING rowid, kind
"""  # noqa: S608  constants
# Without a call.
_PUT_BACK = f"""
    UPDATE rowcall.jobs SET status = 'pending', crashes = 0, session = NULL, updated_at = (SELECT rowcall.moment()),
        {_WAITS}
    FROM {_given(_WAITING)} {_THIS_CLAIM} RETURNING rowid, kind
"""  # noqa: S608  constants
# The record changed while it ran: what was called is no longer what is wanted.
_START_OVER = """
    UPDATE rowcall.jobs SET status = 'pending', attempts = 0, crashes = 0, session = NULL, run_after = NULL,
        wait_ms = NULL, error = NULL, reason = NULL, updated_at = rowcall.moment()
    WHERE rowid = %(row)s AND epoch = %(epoch)s AND status = 'running'
    RETURNING kind
"""
_KIND = "SELECT kind FROM rowcall.jobs WHERE rowid = %(row)s FOR NO KEY UPDATE"
# A late answer to what the job still asks is superseded. One to what it asked before may count if that comes back.
_OUTDONE = """
    SELECT (request = %(request)s AND input_hash = %(hash)s) OR EXISTS (
        SELECT 1 FROM rowcall.results WHERE job = %(row)s AND request = %(request)s AND input_hash = %(hash)s)
    FROM rowcall.jobs WHERE rowid = %(row)s
"""
_RESULTS = f"""
    INSERT INTO rowcall.results (job, epoch, request, input_hash, superseded, batch, at,
        input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, value)
    SELECT row, epoch, request, hash, superseded, (SELECT batch FROM rowcall.jobs WHERE rowid = row),
        (SELECT rowcall.moment()), input, output, cached, reasoning, cost, value
    FROM {_given(_ANSWERED)}
    ON CONFLICT (job, epoch) DO NOTHING RETURNING job
"""  # noqa: S608  constants
_TRIES = f"""
    INSERT INTO rowcall.tries (job, epoch, at, class, reason, message, charged, http_status, request_id, latency_ms,
        input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, body)
    SELECT row, epoch, (SELECT rowcall.moment()), class, reason, error, charged, http_status, request_id, latency_ms,
        input, output, cached, reasoning, cost, body
    FROM {_given(_FAILED)}
    ON CONFLICT (job, epoch) DO NOTHING RETURNING job
"""  # noqa: S608  constants
_ADD = f"""
    INSERT INTO rowcall.totals AS old
    SELECT kind, %(session)s, attempts, input, output, cached, reasoning, cost FROM {_given(_SPENT)}
    ON CONFLICT (kind, session) DO UPDATE SET attempts = old.attempts + excluded.attempts,
        input_tokens = old.input_tokens + excluded.input_tokens,
        output_tokens = old.output_tokens + excluded.output_tokens,
        cached_tokens = old.cached_tokens + excluded.cached_tokens,
        reasoning_tokens = old.reasoning_tokens + excluded.reasoning_tokens,
        cost = coalesce(old.cost + excluded.cost, old.cost, excluded.cost)
"""  # noqa: S608  constants
_HAND_BACK = """
    UPDATE rowcall.jobs SET status = 'pending', crashes = 0, session = NULL, updated_at = (SELECT rowcall.moment()),
        run_after = CASE WHEN run_after IS NULL THEN NULL ELSE (SELECT rowcall.moment()) END, wait_ms = 0
    WHERE status = 'running' AND session = %(session)s AND take = %(take)s
"""


async def settle(connection: Connection, decided: Sequence[Decided], session: int = _NOBODY) -> list[Settlement]:
    """Write a group; returns those that came too late. Usage is counted in the session's row of the totals."""
    used = Used()
    late = [each for group in _without_repeated_jobs(decided) for each in await _settle(connection, group, used)]
    if spent := used.parameters():
        await connection.execute(_ADD, {"session": session, **_arrays(spent, _SPENT)})
    return late


async def hand_back(connection: Connection, session: int, take: int) -> None:
    """Put back what a claim took as if it had never been claimed."""
    await connection.execute(_HAND_BACK, {"session": session, "take": take})


def _without_repeated_jobs(decided: Sequence[Decided]) -> Iterator[list[Decided]]:
    """Groups in which no job comes twice, ordered by row so that two sessions never deadlock.

    A job comes twice if its session lost a claim and claimed it again.
    """
    rest = decided
    while rest:
        firsts: dict[int, Decided] = {}
        rest = [each for each in rest if firsts.setdefault(each.settlement.job.row, each) is not each]
        yield [firsts[row] for row in sorted(firsts)]


async def _settle(connection: Connection, decided: Sequence[Decided], used: Used) -> list[Settlement]:
    kinds = await _hit(connection, decided)
    await _keep(connection, [each for each in decided if each.settlement.job.row in kinds], kinds, used)
    missed = [each for each in decided if each.settlement.job.row not in kinds]
    return [each.settlement for each in missed if not await _settle_one(connection, each, used)]


async def _hit(connection: Connection, decided: Sequence[Decided]) -> dict[int, str]:
    """Settle those claims that are still what was claimed; returns the kinds of their jobs by row."""
    called = [_waiting(each) for each in decided if each.settlement.outcome]
    uncalled = [_waiting(each) for each in decided if not each.settlement.outcome]
    kinds: dict[int, str] = {}
    if called:
        kinds |= await _pairs(connection, _CLOSE, _arrays(called, _CLOSED))
    if uncalled:
        kinds |= await _pairs(connection, _PUT_BACK, _arrays(uncalled, _WAITING))
    return kinds


async def _settle_one(connection: Connection, decided: Decided, used: Used) -> bool:
    """Write one whose job is no longer what was claimed; False if it came too late."""
    row = decided.settlement.job.row
    over = await _one(connection, _START_OVER, decided.parameters)
    if over:
        await _keep(connection, [decided], {row: over}, used)
        return True
    return await _keep_late(connection, decided, used)


async def _keep_late(connection: Connection, decided: Decided, used: Used) -> bool:
    """Keep what came too late; True if it is stored already, since a group may be written twice."""
    written, outcome = decided.parameters, decided.settlement.outcome
    kind = await _one(connection, _KIND, written)
    if kind is None or outcome is None:
        return False
    answered = isinstance(outcome, Success)
    outdone = answered and not await _close_pending(connection, decided) and await _one(connection, _OUTDONE, written)
    late = Decided(decided.settlement, written | {"charged": int(answered), "superseded": bool(outdone)})
    return not await _keep(connection, [late], {written["row"]: kind}, used)


async def _close_pending(connection: Connection, decided: Decided) -> bool:
    wanted = _waiting(decided) | {"held": "pending"}
    return bool(await _pairs(connection, _CLOSE, _arrays([wanted], _CLOSED)))


async def _keep(connection: Connection, decided: Sequence[Decided], kinds: dict[int, str], used: Used) -> int:
    """Store what calls gave and count what they used; returns how many of them are new."""
    answers = [each for each in decided if isinstance(each.settlement.outcome, Success)]
    failures = [each for each in decided if isinstance(each.settlement.outcome, Failure)]
    kept = await _insert(connection, _RESULTS, answers, _ANSWERED) + await _insert(
        connection, _TRIES, failures, _FAILED
    )
    for each in kept:
        assert each.settlement.outcome
        used.add(kinds[each.settlement.job.row], each.settlement.outcome.usage, each.parameters["charged"])
    return len(kept)


async def _insert(
    connection: Connection, statement: str, decided: Sequence[Decided], columns: dict[str, str]
) -> list[Decided]:
    """Those that were written; the others were stored before."""
    if not decided:
        return []
    cursor = await connection.execute(statement, _arrays([each.parameters for each in decided], columns))
    new = {row for (row,) in await cursor.fetchall()}
    return [each for each in decided if each.settlement.job.row in new]


def _waiting(decided: Decided) -> dict[str, Any]:
    seconds = wait(decided.settlement)
    return decided.parameters | {"held": "running", "wait": None if seconds is None else min(seconds, LONGEST_WAIT)}


def _arrays(rows: Sequence[dict[str, Any]], columns: dict[str, str]) -> dict[str, list[Any]]:
    """One array for each column."""
    return {name: [_cast(row[name], type_) for row in rows] for name, type_ in columns.items()}


def _cast(value: Any, type_: str) -> Any:
    return bool(value) if type_ == "boolean" else value


async def _pairs(connection: Connection, statement: str, parameters: dict[str, Any]) -> dict[int, str]:
    return dict(await (await connection.execute(statement, parameters)).fetchall())


async def _one(connection: Connection, statement: str, parameters: dict[str, Any]) -> Any:
    """The one value that a statement gives, if it gives a row."""
    row = await (await connection.execute(statement, parameters)).fetchone()
    return row[0] if row else None

"""Sessions and runs: which are alive, which are dead, and the jobs that the dead ones held."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Collection, Mapping
from typing import Any

from rowcall.store.liveness import POISON, SUSPECT, SUSPECT_WAITS
from rowcall.store.postgres.locks import SESSIONS, lock_kind
from rowcall.store.postgres.pool import Connection, fetched
from rowcall.store.types import Role, Run

_CLOCK_STEP = 1.0
"""Seconds by which the server's clock must have gone back to be noticed."""

_HOST = socket.gethostname()

_NUMBER = "SELECT nextval(pg_get_serial_sequence('rowcall.sessions', 'id'))"
_BEGIN = """
    INSERT INTO rowcall.sessions (id, host, pid, locked, started_at, beat_at)
    VALUES (%(session)s, %(host)s, %(pid)s, %(locked)s, rowcall.moment(), rowcall.moment()) ON CONFLICT DO NOTHING
"""
_BEAT = """
    UPDATE rowcall.sessions SET beat = beat + 1, locked = %(locked)s, beat_at = rowcall.moment() WHERE id = %(session)s
"""
_BEATS = "SELECT id, beat FROM rowcall.sessions WHERE id <> %s"
_KNOWN = """
    SELECT extract(epoch FROM rowcall.moment())::float8 FROM rowcall.sessions WHERE id = %s FOR NO KEY UPDATE
"""
_REOPEN_RUNS = """
    UPDATE rowcall.runs SET ended_at = NULL, stop_reason = NULL WHERE session = %s AND stop_reason = 'crashed'
"""
_FORGET = "DELETE FROM rowcall.sessions WHERE id = %s"
_BURY = """
    DELETE FROM rowcall.sessions USING unnest(%s::bigint[], %s::bigint[]) AS dead (session, counter)
    WHERE id = session AND beat = counter
"""

# Sessions that have a lock which is free. Every user may read pg_locks.
UNLOCKED = f"""
    locked AND id NOT IN (
        SELECT objid::bigint FROM pg_locks
        WHERE locktype = 'advisory' AND classid = {SESSIONS}::oid AND objsubid = 2 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
"""  # noqa: S608  a constant
"""A condition on rows of ``sessions``."""
_WITH_FREE_LOCK = f"SELECT id, beat FROM rowcall.sessions WHERE {UNLOCKED}"  # noqa: S608  constants

_RELEASE_ALL = """
    UPDATE rowcall.jobs SET status = 'pending', session = NULL, crashes = 0, updated_at = (SELECT rowcall.moment()),
        run_after = CASE WHEN run_after IS NULL THEN NULL ELSE (SELECT rowcall.moment()) END, wait_ms = 0
    WHERE status = 'running' AND session = %s
"""
_PUT_BACK_ORPHANS = """
    UPDATE rowcall.jobs SET crashes = crashes + 1, session = NULL, updated_at = now,
        run_after = now + make_interval(secs => CASE WHEN crashes + 1 < %(suspect)s THEN 0 ELSE %(wait)s END),
        wait_ms = CASE WHEN crashes + 1 < %(suspect)s THEN 0 ELSE 1000 * %(wait)s END,
        status = CASE WHEN crashes + 1 < %(poison)s THEN 'pending' ELSE 'failed' END,
        reason = CASE WHEN crashes + 1 < %(poison)s THEN reason ELSE 'poison' END,
        error = 'stale lease'
    FROM (SELECT rowcall.moment() AS now) AS clock
    WHERE status = 'running' AND (session IS NULL OR session NOT IN (SELECT id FROM rowcall.sessions))
"""
_CLOSE_RUNS = """
    UPDATE rowcall.runs SET ended_at = rowcall.moment(), stop_reason = 'crashed'
    WHERE ended_at IS NULL AND session NOT IN (SELECT id FROM rowcall.sessions)
"""
# What sessions that are gone added to the totals is kept under the session 0.
_FOLD_TOTALS = """
    WITH gone AS (
        DELETE FROM rowcall.totals WHERE session <> 0 AND session NOT IN (SELECT id FROM rowcall.sessions) RETURNING *
    )
    INSERT INTO rowcall.totals AS nobody
    SELECT kind, 0, sum(attempts), sum(input_tokens), sum(output_tokens), sum(cached_tokens), sum(reasoning_tokens),
        sum(cost)
    FROM gone GROUP BY kind ORDER BY kind
    ON CONFLICT (kind, session) DO UPDATE SET attempts = nobody.attempts + excluded.attempts,
        input_tokens = nobody.input_tokens + excluded.input_tokens,
        output_tokens = nobody.output_tokens + excluded.output_tokens,
        cached_tokens = nobody.cached_tokens + excluded.cached_tokens,
        reasoning_tokens = nobody.reasoning_tokens + excluded.reasoning_tokens,
        cost = coalesce(nobody.cost + excluded.cost, nobody.cost, excluded.cost)
"""

_RUN_NUMBER = "SELECT nextval(pg_get_serial_sequence('rowcall.runs', 'id'))"
_LIVE_RUNS = f"""
    SELECT pass FROM rowcall.runs WHERE kind = %(kind)s AND ended_at IS NULL AND session <> %(session)s
    AND session <> ALL(%(silent)s) AND session IN (SELECT id FROM rowcall.sessions WHERE NOT ({UNLOCKED}))
    ORDER BY id DESC LIMIT 1
"""  # noqa: S608  constants
_NEWEST = "SELECT coalesce(max(pass), 0) FROM rowcall.runs WHERE kind = %s"
_BEGUN = "SELECT pass FROM rowcall.runs WHERE id = %s"
_BEGIN_RUN = """
    INSERT INTO rowcall.runs (id, kind, pass, session, started_at, settings, role)
    VALUES (%s, %s, %s, %s, rowcall.moment(), %s, %s)
"""
_FORGET_SETTINGS = "DELETE FROM rowcall.settings WHERE kind = %s AND NOT keep"
_TAKEN_UP = "SELECT EXISTS (SELECT 1 FROM rowcall.runs WHERE kind = %s AND pass = %s AND role <> 'enqueue')"

# Jobs that still wait for longer than their wait was: the clock has gone back since they were written.
_END_OVERLONG_WAITS = """
    UPDATE rowcall.jobs SET run_after = now, wait_ms = 0
    FROM (SELECT rowcall.moment() AS now) AS clock
    WHERE status = 'pending' AND run_after > (SELECT rowcall.moment())
    AND run_after > now + make_interval(secs => wait_ms / 1000.0 + 0.1)
"""


async def new_number(connection: Connection) -> int:
    """A number that no session ever had. It is taken in a transaction of its own, so that ``begin`` may be repeated."""
    return int((await fetched(connection, _NUMBER))[0])


async def begin(connection: Connection, session: int, locked: bool) -> None:
    """Make a session known."""
    await connection.execute(_BEGIN, {"session": session, "host": _HOST, "pid": os.getpid(), "locked": locked})
    await end_overlong_waits(connection)


async def beat(connection: Connection, session: int, locked: bool) -> tuple[float, dict[int, int]]:
    """Say that a session is alive; returns the server's time and the other sessions' counters."""
    now = await ensure(connection, session)
    await connection.execute(_BEAT, {"session": session, "locked": locked})
    return now, dict(await (await connection.execute(_BEATS, (session,))).fetchall())


async def ensure(connection: Connection, session: int) -> float:
    """Restore a session that others took for dead while its process was stopped, and lock it for this transaction.

    Returns the server's time, in seconds since 1970.
    """
    known = await (await connection.execute(_KNOWN, (session,))).fetchone()
    if known is None:
        await connection.execute(_BEGIN, {"session": session, "host": _HOST, "pid": os.getpid(), "locked": False})
        await connection.execute(_REOPEN_RUNS, (session,))
        known = await fetched(connection, _KNOWN, (session,))
    return float(known[0])


async def end(connection: Connection, session: int) -> None:
    """Release what a session holds, and forget it."""
    await connection.execute(_KNOWN, (session,))  # waits for claims that are under way
    await connection.execute(_RELEASE_ALL, (session,))
    await connection.execute(_FORGET, (session,))
    await connection.execute(_FOLD_TOTALS)


async def unlocked(connection: Connection) -> dict[int, int]:
    """The sessions whose lock is free, with their beats."""
    return dict(await (await connection.execute(_WITH_FREE_LOCK)).fetchall())


async def reap(connection: Connection, dead: Mapping[int, int]) -> int:
    """Forget sessions that have not beaten since they were taken for dead, and put their jobs back."""
    await connection.execute(_BURY, (list(dead), list(dead.values())))
    wanted = {"suspect": SUSPECT, "poison": POISON, "wait": SUSPECT_WAITS}
    count = (await connection.execute(_PUT_BACK_ORPHANS, wanted)).rowcount
    closed = (await connection.execute(_CLOSE_RUNS)).rowcount
    if closed or count:
        await connection.execute(_FOLD_TOTALS)
        await end_overlong_waits(connection)
    return count


async def new_run(connection: Connection) -> int:
    """A number that no run ever had."""
    return int((await fetched(connection, _RUN_NUMBER))[0])


async def begin_run(
    connection: Connection,
    number: int,
    silent: Collection[int],
    session: int,
    kind: str,
    settings: dict[str, Any],
    role: Role,
) -> Run:
    """Join the pass of a run whose session is alive, or take the pass that belongs to the role."""
    await lock_kind(connection, kind)
    wanted = {"kind": kind, "session": session, "silent": list(silent)}
    live = await (await connection.execute(_LIVE_RUNS, wanted)).fetchone()
    if begun := await (await connection.execute(_BEGUN, (number,))).fetchone():
        return Run(number, begun[0], live is not None)
    pass_ = live[0] if live else await _pass_of(connection, kind, role)
    if not live:
        await connection.execute(_FORGET_SETTINGS, (kind,))
    written = json.dumps(settings, default=str)
    await connection.execute(_BEGIN_RUN, (number, kind, pass_, session, written, role.value))
    return Run(number, pass_, live is not None)


async def _pass_of(connection: Connection, kind: str, role: Role) -> int:
    """The newest pass, or the one after it."""
    (newest,) = await fetched(connection, _NEWEST, (kind,))
    if role is Role.WORK:
        return max(int(newest), 1)
    (taken_up,) = await fetched(connection, _TAKEN_UP, (kind, newest))
    return int(newest) if newest and role is Role.ENQUEUE and not taken_up else int(newest) + 1


async def end_overlong_waits(connection: Connection) -> None:
    """End waits that would last longer than they were to last when they began: the clock went back."""
    await connection.execute(_END_OVERLONG_WAITS)


def clock_went_back(now: float, latest: float) -> bool:
    """Whether the server's clock went back."""
    return now < latest - _CLOCK_STEP

"""Sessions and runs: which are alive, which are dead, and the jobs that the dead ones held."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rowcall.store.liveness import POISON, SUSPECT, SUSPECT_WAITS
from rowcall.store.sqlite.clock import stamp
from rowcall.store.sqlite.locks import HOST, FileLock, session_lock
from rowcall.store.types import Role, Run

_BEGIN = "INSERT INTO sessions (host, pid, started_at, beat_at) VALUES (?, ?, ?, ?) RETURNING id"
_BEAT = "UPDATE sessions SET beat = beat + 1, beat_at = ? WHERE id = ?"
_BEATS = "SELECT id, beat FROM sessions WHERE id <> ?"
_KNOWN = "SELECT 1 FROM sessions WHERE id = ?"
_UNLOCKED = "SELECT id FROM sessions WHERE session_unlocked(id, host)"
_FORGET = "DELETE FROM sessions WHERE id = ?"
_BURY = "DELETE FROM sessions WHERE id = ? AND beat = ?"
_REVIVE = "INSERT INTO sessions (id, host, pid, started_at, beat_at) VALUES (?, ?, ?, ?, ?)"
_REOPEN_RUNS = "UPDATE runs SET ended_at = NULL, stop_reason = NULL WHERE session = ? AND stop_reason = 'crashed'"

_RELEASE_ALL = """
    UPDATE jobs SET status = 'pending', session = NULL, crashes = 0, updated_at = :at,
        run_after = CASE WHEN run_after IS NULL THEN NULL ELSE :at END, wait_ms = 0
    WHERE status = 'running' AND session = :session
"""

_PUT_BACK_ORPHANS = """
    UPDATE jobs SET crashes = crashes + 1, session = NULL, updated_at = :at,
        run_after = CASE WHEN crashes + 1 < :suspect THEN :at ELSE :later END,
        wait_ms = CASE WHEN crashes + 1 < :suspect THEN 0 ELSE :wait_ms END,
        status = CASE WHEN crashes + 1 < :poison THEN 'pending' ELSE 'failed' END,
        reason = CASE WHEN crashes + 1 < :poison THEN reason ELSE 'poison' END,
        error = 'stale lease'
    WHERE status = 'running' AND (session IS NULL OR session NOT IN (SELECT id FROM sessions))
"""
_CLOSE_RUNS = """
    UPDATE runs SET ended_at = ?, stop_reason = 'crashed'
    WHERE ended_at IS NULL AND session NOT IN (SELECT id FROM sessions)
"""

_LIVE_RUNS = """
    SELECT pass, session FROM runs WHERE kind = ? AND ended_at IS NULL AND session <> ?
    AND session IN (SELECT id FROM sessions) ORDER BY id DESC
"""
_NEWEST = "SELECT coalesce(max(pass), 0) FROM runs WHERE kind = ?"
_BEGIN_RUN = "INSERT INTO runs (kind, pass, session, started_at, settings, role) VALUES (?, ?, ?, ?, ?, ?) RETURNING id"
_FORGET_SETTINGS = "DELETE FROM settings WHERE kind = ? AND NOT keep"
_TAKEN_UP = "SELECT EXISTS (SELECT 1 FROM runs WHERE kind = ? AND pass = ? AND role <> 'enqueue')"

# Jobs that still wait for longer than their wait was: the clock has gone back since they were written.
_END_OVERLONG_WAITS = """
    UPDATE jobs INDEXED BY jobs_pending SET run_after = :at, wait_ms = 0
    WHERE status = 'pending' AND run_after > :at
    AND (julianday(run_after) - 2440587.5) * 86400 > :now + wait_ms / 1000.0 + 0.1
"""


def begin(connection: sqlite3.Connection, now: float, path: Path) -> tuple[int, FileLock]:
    """A new session, and the lock that shows that it is alive for as long as it is held."""
    at = stamp(now)
    (number,) = connection.execute(_BEGIN, (HOST, os.getpid(), at, at)).fetchone()
    end_overlong_waits(connection, now)
    return number, FileLock.fresh(session_lock(path, number))


def beat(connection: sqlite3.Connection, now: float, session: int) -> dict[int, int]:
    """Say that a session is alive; returns the other sessions' counters."""
    ensure(connection, now, session)
    connection.execute(_BEAT, (stamp(now), session))
    return dict(connection.execute(_BEATS, (session,)).fetchall())


def ensure(connection: sqlite3.Connection, now: float, session: int) -> None:
    """Restore a session that others took for dead while its process was stopped."""
    if connection.execute(_KNOWN, (session,)).fetchone():
        return
    at = stamp(now)
    connection.execute(_REVIVE, (session, HOST, os.getpid(), at, at))
    connection.execute(_REOPEN_RUNS, (session,))


def end(connection: sqlite3.Connection, now: float, session: int) -> None:
    """Release what a session holds, and forget it."""
    connection.execute(_RELEASE_ALL, {"at": stamp(now), "session": session})
    connection.execute(_FORGET, (session,))


def reap(connection: sqlite3.Connection, now: float, path: Path, silent: Mapping[int, int]) -> int:
    """Forget dead sessions and put their jobs back; ``silent`` are sessions that stopped at these beats."""
    unlocked = _unlocked(connection)
    for session in unlocked:
        connection.execute(_FORGET, (session,))
    connection.executemany(_BURY, silent.items())
    at = stamp(now)
    later = {"later": stamp(now + SUSPECT_WAITS), "wait_ms": round(SUSPECT_WAITS * 1000)}
    count = connection.execute(_PUT_BACK_ORPHANS, {"at": at, "suspect": SUSPECT, "poison": POISON} | later).rowcount
    if connection.execute(_CLOSE_RUNS, (at,)).rowcount or count:
        end_overlong_waits(connection, now)
    for session in unlocked:
        session_lock(path, session).unlink(missing_ok=True)
    return count


def begin_run(
    connection: sqlite3.Connection,
    now: float,
    silent: Collection[int],
    session: int,
    kind: str,
    settings: dict[str, Any],
    role: Role,
) -> Run:
    """Join the pass of a run whose session is alive, or take the pass that belongs to the role."""
    gone = _unlocked(connection).union(silent)
    live = [pass_ for pass_, other in connection.execute(_LIVE_RUNS, (kind, session)) if other not in gone]
    pass_ = live[0] if live else _pass_of(connection, kind, role)
    if not live:
        connection.execute(_FORGET_SETTINGS, (kind,))
    written = json.dumps(settings, default=str)
    (number,) = connection.execute(_BEGIN_RUN, (kind, pass_, session, stamp(now), written, role)).fetchone()
    return Run(number, pass_, bool(live))


def _pass_of(connection: sqlite3.Connection, kind: str, role: Role) -> int:
    """The newest pass, or the one after it."""
    newest: int = connection.execute(_NEWEST, (kind,)).fetchone()[0]
    if role is Role.WORK:
        return max(newest, 1)
    (taken_up,) = connection.execute(_TAKEN_UP, (kind, newest)).fetchone()
    return newest if newest and role is Role.ENQUEUE and not taken_up else newest + 1


def end_overlong_waits(connection: sqlite3.Connection, now: float) -> None:
    """End waits that would last longer than they were to last when they began: the clock went back."""
    connection.execute(_END_OVERLONG_WAITS, {"at": stamp(now), "now": now})


def _unlocked(connection: sqlite3.Connection) -> set[int]:
    """Sessions of this host whose process is gone: their lock is free."""
    return {session for (session,) in connection.execute(_UNLOCKED)}

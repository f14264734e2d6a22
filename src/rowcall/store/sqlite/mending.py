"""What people do to jobs by name: retry and cancel."""

from __future__ import annotations

import sqlite3

from rowcall.store.sqlite.clock import stamp
from rowcall.store.sqlite.queries import choice
from rowcall.store.types import Selection

CHOSEN = "CREATE TEMP TABLE chosen (row INTEGER PRIMARY KEY)"

_CHOOSE = "INSERT INTO chosen "
_SUPERSEDE = """
    UPDATE results SET superseded = 1
    WHERE job IN (SELECT row FROM chosen CROSS JOIN jobs ON jobs.rowid = row WHERE status = 'done')
    AND (request, input_hash) = (SELECT request, input_hash FROM jobs WHERE rowid = job)
"""
_RETRY = """
    UPDATE jobs SET status = 'pending', attempts = 0, crashes = 0, epoch = epoch + 1, run_after = NULL,
        wait_ms = NULL, error = NULL, reason = NULL, session = NULL, updated_at = :at,
        pass = CASE WHEN rowid IN (SELECT job FROM payloads) THEN NULL ELSE 0 END
    WHERE rowid IN (SELECT row FROM chosen) AND status <> 'running'
"""
_CANCEL = """
    UPDATE jobs SET status = 'cancelled', session = NULL, updated_at = :at
    WHERE rowid IN (SELECT row FROM chosen) AND status IN ('pending', 'running')
"""


def retry(connection: sqlite3.Connection, now: float, kind: str, selection: Selection) -> int:
    """Set jobs back to pending with attempts 0; a done one's answer is superseded."""
    _choose(connection, kind, selection)
    connection.execute(_SUPERSEDE)
    return connection.execute(_RETRY, {"at": stamp(now)}).rowcount


def cancel(connection: sqlite3.Connection, now: float, kind: str, selection: Selection) -> int:
    """Mark pending and running jobs cancelled."""
    _choose(connection, kind, selection)
    return connection.execute(_CANCEL, {"at": stamp(now)}).rowcount


def _choose(connection: sqlite3.Connection, kind: str, selection: Selection) -> None:
    query, wanted = choice(kind, selection)
    connection.execute("DELETE FROM chosen")
    connection.execute(_CHOOSE + query, wanted)

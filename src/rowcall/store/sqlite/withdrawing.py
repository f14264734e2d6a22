"""What was taken back: cancelled claims, and the answers of a batch."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from rowcall.store.sqlite.clock import stamp
from rowcall.store.types import Claim, RolledBack

_CANCELLED = """
    SELECT jobs.rowid, epoch FROM json_each(?) AS claim
    CROSS JOIN jobs ON jobs.rowid = json_extract(claim.value, '$[0]')
    WHERE epoch = json_extract(claim.value, '$[1]') AND status = 'cancelled'
"""

_BATCHES = """
    SELECT DISTINCT batch FROM jobs NOT INDEXED WHERE kind = :kind
    UNION SELECT results.batch FROM results JOIN jobs ON jobs.rowid = job WHERE kind = :kind ORDER BY 1
"""

# Jobs that are done with an answer of the batch, and the answer that counts without it.
_ROLLED = """
    SELECT jobs.rowid AS row, jobs.id AS key, (
        SELECT id FROM results
        WHERE job = jobs.rowid AND superseded = 0 AND batch <> :batch ORDER BY epoch DESC LIMIT 1
    ) AS previous
    FROM jobs NOT INDEXED WHERE kind = :kind AND status = 'done' AND :batch = (
        SELECT batch FROM results
        WHERE job = jobs.rowid AND request = jobs.request AND input_hash = jobs.input_hash AND superseded = 0
        ORDER BY epoch DESC LIMIT 1
    )
"""
_COUNT = f"SELECT count(previous), count(*) - count(previous) FROM ({_ROLLED})"  # noqa: S608  constants
_SAMPLE = f"SELECT key FROM ({_ROLLED}) ORDER BY row LIMIT 5"  # noqa: S608  constants

ROLLED = "CREATE TEMP TABLE rolled (row INTEGER PRIMARY KEY, previous INTEGER)"
_CHOOSE = f"INSERT INTO rolled SELECT row, previous FROM ({_ROLLED})"  # noqa: S608  constants
_SUPERSEDE = """
    UPDATE results SET superseded = 1
    WHERE batch = :batch AND superseded = 0 AND (SELECT kind FROM jobs WHERE rowid = job) = :kind
"""
# The payload is that of the newest input; where the previous answer was made with another, it is brought anew.
_DROP_OTHER_PAYLOADS = """
    DELETE FROM payloads WHERE job IN (
        SELECT row FROM rolled CROSS JOIN results ON results.id = previous CROSS JOIN jobs ON jobs.rowid = row
        WHERE results.input_hash <> jobs.input_hash)
"""
_RESTORE = """
    UPDATE jobs SET request = results.request, input_hash = results.input_hash, batch = results.batch,
        epoch = jobs.epoch + 1, attempts = 0, crashes = 0, updated_at = :at
    FROM rolled CROSS JOIN results ON results.id = rolled.previous WHERE jobs.rowid = rolled.row
"""
_SET_BACK = """
    UPDATE jobs SET status = 'pending', epoch = epoch + 1, attempts = 0, crashes = 0, run_after = NULL, wait_ms = NULL,
        error = NULL, reason = NULL, session = NULL, updated_at = :at,
        pass = CASE WHEN rowid IN (SELECT job FROM payloads) THEN NULL ELSE 0 END
    WHERE rowid IN (SELECT row FROM rolled WHERE previous IS NULL)
"""


def cancelled(connection: sqlite3.Connection, claims: Sequence[Claim]) -> list[Claim]:
    """The claims among these whose jobs were cancelled."""
    return connection.execute(_CANCELLED, (json.dumps(claims),)).fetchall() if claims else []


def batches(connection: sqlite3.Connection, kind: str) -> list[str]:
    """The batches of a kind, by name."""
    return [batch for (batch,) in connection.execute(_BATCHES, {"kind": kind})]


def batch_answers(connection: sqlite3.Connection, kind: str, batch: str) -> RolledBack:
    """What ``rollback`` would do."""
    wanted = {"kind": kind, "batch": batch}
    restored, pending = connection.execute(_COUNT, wanted).fetchone()
    return RolledBack(restored, pending, tuple(key for (key,) in connection.execute(_SAMPLE, wanted)))


def rollback(connection: sqlite3.Connection, now: float, kind: str, batch: str) -> RolledBack:
    """Supersede the answers of a batch; jobs fall back to their previous ones, or to pending."""
    rolled = batch_answers(connection, kind, batch)
    wanted = {"kind": kind, "batch": batch}
    connection.execute("DELETE FROM rolled")
    connection.execute(_CHOOSE, wanted)
    connection.execute(_SUPERSEDE, wanted)
    connection.execute(_DROP_OTHER_PAYLOADS)
    connection.execute(_RESTORE, {"at": stamp(now)})
    connection.execute(_SET_BACK, {"at": stamp(now)})
    return rolled

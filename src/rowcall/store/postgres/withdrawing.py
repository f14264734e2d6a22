"""What was taken back: cancelled claims, and the answers of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.store.postgres.mending import CHOSEN
from rowcall.store.postgres.pool import Connection
from rowcall.store.postgres.queries import fetch, patiently
from rowcall.store.types import Claim, RolledBack

_CANCELLED = """
    SELECT jobs.rowid, jobs.epoch FROM unnest(%s::bigint[], %s::bigint[]) AS claim (row, epoch)
    JOIN rowcall.jobs ON jobs.rowid = claim.row AND jobs.epoch = claim.epoch WHERE status = 'cancelled'
"""

_BATCHES = """
    SELECT batch FROM rowcall.jobs WHERE kind = %(kind)s
    UNION SELECT results.batch FROM rowcall.results JOIN rowcall.jobs ON jobs.rowid = job
    WHERE kind = %(kind)s ORDER BY 1
"""

# Jobs that are done with an answer of the batch, and the answer that counts without it.
_ROLLED = """
    SELECT jobs.rowid AS row, jobs.id AS key, (
        SELECT id FROM rowcall.results
        WHERE job = jobs.rowid AND NOT superseded AND batch <> %(batch)s ORDER BY epoch DESC LIMIT 1
    ) AS previous
    FROM rowcall.jobs WHERE kind = %(kind)s AND status = 'done' AND %(batch)s = (
        SELECT batch FROM rowcall.results
        WHERE job = jobs.rowid AND request = jobs.request AND input_hash = jobs.input_hash AND NOT superseded
        ORDER BY epoch DESC LIMIT 1)
"""
_SEEN = f"""
    WITH rolled AS MATERIALIZED ({_ROLLED})
    SELECT count(previous), count(*) - count(previous), ARRAY(SELECT key FROM rolled ORDER BY row LIMIT 5) FROM rolled
"""  # noqa: S608  constants

# Only what is locked is looked at and changed: an answer that comes in meanwhile is one of after the rollback.
_LOCK = """
    INSERT INTO pg_temp.chosen
    SELECT rowid FROM rowcall.jobs WHERE kind = %(kind)s AND rowid IN (
        SELECT job FROM rowcall.results WHERE batch = %(batch)s AND NOT superseded)
    ORDER BY rowid FOR NO KEY UPDATE
"""
_ROLLED_TABLE = "CREATE TEMP TABLE rolled (row bigint PRIMARY KEY, key text, previous bigint) ON COMMIT DROP"
_CHOOSE = f"INSERT INTO pg_temp.rolled {_ROLLED} AND jobs.rowid IN (SELECT row FROM pg_temp.chosen)"  # noqa: S608  constants
_SUMMARY = """
    SELECT count(previous), count(*) - count(previous), ARRAY(SELECT key FROM pg_temp.rolled ORDER BY row LIMIT 5)
    FROM pg_temp.rolled
"""
_SUPERSEDE = """
    UPDATE rowcall.results SET superseded = true
    WHERE batch = %(batch)s AND NOT superseded AND job IN (SELECT row FROM pg_temp.chosen)
"""
# The payload is that of the newest input; where the previous answer was made with another, it is brought anew.
_DROP_OTHER_PAYLOADS = """
    DELETE FROM rowcall.payloads USING pg_temp.rolled, rowcall.results, rowcall.jobs
    WHERE results.id = rolled.previous AND jobs.rowid = results.job AND payloads.job = jobs.rowid
    AND results.input_hash <> jobs.input_hash
"""
_RESTORE = """
    UPDATE rowcall.jobs SET request = results.request, input_hash = results.input_hash, batch = results.batch,
        epoch = jobs.epoch + 1, attempts = 0, crashes = 0, updated_at = (SELECT rowcall.moment())
    FROM pg_temp.rolled, rowcall.results WHERE results.id = rolled.previous AND jobs.rowid = results.job
"""
_SET_BACK = """
    UPDATE rowcall.jobs SET status = 'pending', epoch = epoch + 1, attempts = 0, crashes = 0, run_after = NULL,
        wait_ms = NULL, error = NULL, reason = NULL, session = NULL, updated_at = (SELECT rowcall.moment()),
        pass = CASE WHEN EXISTS (SELECT 1 FROM rowcall.payloads WHERE job = jobs.rowid) THEN NULL ELSE 0 END
    WHERE rowid IN (SELECT row FROM pg_temp.rolled WHERE previous IS NULL)
"""


async def cancelled(connection: Connection, claims: Sequence[Claim]) -> list[Claim]:
    """The claims among these whose jobs were cancelled."""
    if not claims:
        return []
    rows, epochs = zip(*claims, strict=True)
    found = await fetch(connection, _CANCELLED, (list(rows), list(epochs)))
    return [(row, epoch) for row, epoch in found]


async def batches(connection: Connection, kind: str) -> list[str]:
    """The batches of a kind, by name."""
    await patiently(connection)
    return [batch for (batch,) in await fetch(connection, _BATCHES, {"kind": kind})]


async def batch_answers(connection: Connection, kind: str, batch: str) -> RolledBack:
    """What ``rollback`` would do."""
    await patiently(connection)
    ((restored, pending, sample),) = await fetch(connection, _SEEN, {"kind": kind, "batch": batch})
    return RolledBack(restored, pending, tuple(sample))


async def rollback(connection: Connection, kind: str, batch: str) -> RolledBack:
    """Supersede the answers of a batch; jobs fall back to their previous ones, or to pending."""
    await patiently(connection)
    wanted = {"kind": kind, "batch": batch}
    await connection.execute(CHOSEN)
    await connection.execute(_LOCK, wanted)
    await connection.execute(_ROLLED_TABLE)
    await connection.execute(_CHOOSE, wanted)
    ((restored, pending, sample),) = await fetch(connection, _SUMMARY)
    await connection.execute(_SUPERSEDE, wanted)
    await connection.execute(_DROP_OTHER_PAYLOADS)
    await connection.execute(_RESTORE)
    await connection.execute(_SET_BACK)
    return RolledBack(restored, pending, tuple(sample))

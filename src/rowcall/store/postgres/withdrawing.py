"""What was taken back: cancelled claims, and the answers of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.store.facts import Claim, RolledBack
from rowcall.store.postgres.pool import Connection
from rowcall.store.postgres.queries import fetch

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
_COUNT = f"SELECT count(previous), count(*) - count(previous) FROM ({_ROLLED}) AS rolled"  # noqa: S608  constants
_SAMPLE = f"SELECT key FROM ({_ROLLED}) AS rolled ORDER BY row LIMIT 5"  # noqa: S608  constants

_CHOOSE = _ROLLED + " ORDER BY jobs.rowid FOR UPDATE OF jobs"
_SUPERSEDE = """
    UPDATE rowcall.results SET superseded = true FROM rowcall.jobs
    WHERE results.batch = %(batch)s AND NOT superseded AND jobs.rowid = job AND kind = %(kind)s
"""
# The payload is that of the newest input; where the previous answer was made with another, it is brought anew.
_DROP_OTHER_PAYLOADS = """
    DELETE FROM rowcall.payloads USING rowcall.results, rowcall.jobs
    WHERE results.id = ANY(%(previous)s) AND jobs.rowid = results.job AND payloads.job = jobs.rowid
    AND results.input_hash <> jobs.input_hash
"""
_RESTORE = """
    UPDATE rowcall.jobs SET request = results.request, input_hash = results.input_hash, batch = results.batch,
        epoch = jobs.epoch + 1, attempts = 0, crashes = 0, updated_at = (SELECT rowcall.moment())
    FROM rowcall.results WHERE results.id = ANY(%(previous)s) AND jobs.rowid = results.job
"""
_SET_BACK = """
    UPDATE rowcall.jobs SET status = 'pending', epoch = epoch + 1, attempts = 0, crashes = 0, run_after = NULL,
        wait_ms = NULL, error = NULL, reason = NULL, session = NULL, updated_at = (SELECT rowcall.moment()),
        pass = CASE WHEN EXISTS (SELECT 1 FROM rowcall.payloads WHERE job = jobs.rowid) THEN NULL ELSE 0 END
    WHERE rowid = ANY(%(without)s)
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
    return [batch for (batch,) in await fetch(connection, _BATCHES, {"kind": kind})]


async def batch_answers(connection: Connection, kind: str, batch: str) -> RolledBack:
    """What ``rollback`` would do."""
    wanted = {"kind": kind, "batch": batch}
    ((restored, pending),) = await fetch(connection, _COUNT, wanted)
    return RolledBack(restored, pending, tuple(key for (key,) in await fetch(connection, _SAMPLE, wanted)))


async def rollback(connection: Connection, kind: str, batch: str) -> RolledBack:
    """Supersede the answers of a batch; jobs fall back to their previous ones, or to pending."""
    wanted = {"kind": kind, "batch": batch}
    rolled = await fetch(connection, _CHOOSE, wanted)
    restored = {"previous": [previous for _, _, previous in rolled if previous is not None]}
    without = {"without": [row for row, _, previous in rolled if previous is None]}
    await connection.execute(_SUPERSEDE, wanted)
    await connection.execute(_DROP_OTHER_PAYLOADS, restored)
    await connection.execute(_RESTORE, restored)
    await connection.execute(_SET_BACK, without)
    return RolledBack(len(restored["previous"]), len(without["without"]), tuple(key for _, key, _ in rolled[:5]))

"""Taking back the answers of a batch."""

from __future__ import annotations

from rowcall.store.queries.base import Query, QueryResult, Statement
from rowcall.store.queries.retry_cancel import CHOSEN, FORGET_CHOSEN
from rowcall.store.types import RolledBack

_BATCHES = """
    SELECT DISTINCT batch FROM jobs NOT INDEXED WHERE kind = :kind
    UNION SELECT results.batch FROM results JOIN jobs ON jobs.rowid = job WHERE kind = :kind ORDER BY 1
"""

# Jobs that are done with an answer of the batch, and the answer that each would have without it.
_AFFECTED = """
    SELECT jobs.rowid AS row, jobs.id AS key, (
        SELECT id FROM results
        WHERE job = jobs.rowid AND NOT superseded AND batch <> :batch ORDER BY epoch DESC LIMIT 1
    ) AS previous
    FROM jobs NOT INDEXED WHERE kind = :kind AND status = 'done' AND :batch = (
        SELECT batch FROM results
        WHERE job = jobs.rowid AND request = jobs.request AND input_hash = jobs.input_hash AND NOT superseded
        ORDER BY epoch DESC LIMIT 1)
"""
# The first row holds the counts, the others the sample.
_SUMMARY = """
    SELECT count(previous), count(*) - count(previous), '' FROM rolled
    UNION ALL SELECT * FROM (SELECT 0, 0, key FROM rolled ORDER BY row LIMIT 5) AS sample
"""
_PREVIEW = f"WITH rolled AS MATERIALIZED ({_AFFECTED}) {_SUMMARY}"

# Only jobs that are locked are looked at and changed: an answer that comes in meanwhile is one after the rollback.
_LOCK = """
    INSERT INTO chosen
    SELECT rowid FROM jobs WHERE kind = :kind AND rowid IN (
        SELECT job FROM results WHERE batch = :batch AND NOT superseded)
    ORDER BY rowid FOR NO KEY UPDATE
"""
_ROLLED = "CREATE TEMP TABLE rolled (row BIGINT PRIMARY KEY, key TEXT, previous BIGINT)"
_CHOOSE = f"INSERT INTO rolled {_AFFECTED} AND jobs.rowid IN (SELECT row FROM chosen)"  # noqa: S608  constants
_SUPERSEDE = """
    UPDATE results SET superseded = TRUE
    WHERE batch = :batch AND NOT superseded AND job IN (SELECT row FROM chosen)
"""
# The payload is that of the newest input. If the previous answer was made with another one, the next run brings it.
_DROP_OTHER_PAYLOADS = """
    DELETE FROM payloads WHERE job IN (
        SELECT row FROM rolled CROSS JOIN results CROSS JOIN jobs
        WHERE results.id = previous AND jobs.rowid = row AND results.input_hash <> jobs.input_hash)
"""
_RESTORE = """
    UPDATE jobs SET request = results.request, input_hash = results.input_hash, batch = results.batch,
        epoch = jobs.epoch + 1, attempts = 0, crashes = 0, updated_at = moment()
    FROM rolled CROSS JOIN results WHERE results.id = rolled.previous AND jobs.rowid = rolled.row
"""
_SET_BACK = """
    UPDATE jobs SET status = 'pending', epoch = epoch + 1, attempts = 0, crashes = 0, run_after = NULL,
        wait_ms = NULL, error = NULL, reason = NULL, session = NULL, updated_at = moment(),
        pass = CASE WHEN EXISTS (SELECT 1 FROM payloads WHERE job = jobs.rowid) THEN NULL ELSE 0 END
    WHERE rowid IN (SELECT row FROM rolled WHERE previous IS NULL)
"""


def batches(kind: str) -> Query[list[str]]:
    """The batches of a kind, by name."""
    return [batch for (batch,) in (yield Statement(_BATCHES, kind=kind)).rows]


def batch_answers(kind: str, batch: str) -> Query[RolledBack]:
    """What ``rollback`` would do."""
    return _read_summary((yield Statement(_PREVIEW, kind=kind, batch=batch)))


def rollback(kind: str, batch: str) -> Query[RolledBack]:
    """Supersede the answers of a batch; each job gets its previous answer, or is pending again."""
    yield Statement(CHOSEN)
    yield Statement(_LOCK, kind=kind, batch=batch)
    yield Statement(_ROLLED)
    yield Statement(_CHOOSE, kind=kind, batch=batch)
    done = _read_summary((yield Statement(_SUMMARY)))
    yield Statement(_SUPERSEDE, batch=batch)
    for text in (_DROP_OTHER_PAYLOADS, _RESTORE, _SET_BACK, "DROP TABLE rolled", FORGET_CHOSEN):
        yield Statement(text)
    return done


def _read_summary(found: QueryResult) -> RolledBack:
    (restored, pending, _), *sample = found.rows
    return RolledBack(restored, pending, tuple(key for _, _, key in sample))

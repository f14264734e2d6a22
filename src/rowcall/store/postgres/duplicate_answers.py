"""Duplicates: records of one kind with the same request and input, which share one answer.

An answer is shared only if it came from a call (``origin`` is NULL), counts, and was superseded for none of the jobs
that got it. Only jobs without an answer of their own that counts get it: a job that has one was set back by hand, to be
called again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rowcall.model.job import Job
from rowcall.store.postgres.pool import Connection, fetch, fetched, patiently

MOST = 10_000
"""Pending jobs that one transaction gives answers to."""

# Made when duplicates are first looked for, since they slow down the claims and settlements of everyone else.
# Only the owner of the tables can make them; a user with no more than the documented grants does without.
_INDEXED = """
    SELECT to_regclass('rowcall.results_taken_back') IS NOT NULL
        OR NOT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'rowcall.jobs'::regclass
"""
_ALONE = "LOCK TABLE rowcall.jobs, rowcall.results IN SHARE ROW EXCLUSIVE MODE"
_INDEXES = (
    "CREATE INDEX IF NOT EXISTS jobs_twins ON rowcall.jobs (kind, input_hash) WHERE status = 'pending'",
    "CREATE INDEX IF NOT EXISTS results_called ON rowcall.results (input_hash, id) WHERE origin IS NULL",
    "CREATE INDEX IF NOT EXISTS results_taken_back ON rowcall.results (origin) WHERE superseded AND origin IS NOT NULL",
)

_CLAIMS = """
    unnest(%(rows)s::bigint[], %(epochs)s::bigint[], %(requests)s::bigint[], %(hashes)s::text[])
        AS claim (row, epoch, request, hash)
"""
_ANSWER = """
    SELECT results.id AS answer FROM rowcall.results JOIN rowcall.jobs AS donors ON donors.rowid = results.job
    WHERE results.input_hash = asked.hash AND origin IS NULL AND NOT superseded
    AND results.request IN (SELECT id FROM rowcall.requests WHERE id = asked.request OR adopted_as = asked.request)
    AND donors.kind = asked.kind
    AND NOT EXISTS (SELECT 1 FROM rowcall.results AS given WHERE given.origin = results.id AND given.superseded)
    ORDER BY results.id DESC LIMIT 1
"""
_HAS_ONE = """
    EXISTS (
        SELECT 1 FROM rowcall.results
        WHERE job = jobs.rowid AND request = jobs.request AND input_hash = jobs.input_hash AND NOT superseded)
"""
_TO_CLAIMED = """
    WITH asked AS (SELECT claim.*, jobs.kind FROM CLAIMS JOIN rowcall.jobs ON jobs.rowid = claim.row),
    given AS MATERIALIZED (
        SELECT asked.*, found.answer, 0 AS later, 'running' AS held FROM asked CROSS JOIN LATERAL (ANSWER) AS found)
"""
# Jobs that another transaction has locked are skipped: whoever claims them looks for an answer again.
_TO_PENDING = """
    WITH asked AS (
        SELECT DISTINCT claim.request, claim.hash, jobs.kind, jobs.pass
        FROM CLAIMS JOIN rowcall.jobs ON jobs.rowid = claim.row),
    found AS MATERIALIZED (SELECT asked.*, found.answer FROM asked CROSS JOIN LATERAL (ANSWER) AS found),
    given AS MATERIALIZED (
        SELECT jobs.rowid AS row, jobs.epoch, jobs.request, jobs.input_hash AS hash, found.answer,
            1 AS later, 'pending' AS held
        FROM found JOIN rowcall.jobs
            ON jobs.kind = found.kind AND jobs.input_hash = found.hash AND jobs.request = found.request
        WHERE status = 'pending' AND (jobs.pass IS NULL OR jobs.pass = found.pass) AND NOT HAS_ONE
        LIMIT %(most)s FOR NO KEY UPDATE OF jobs SKIP LOCKED)
"""
_GIVE = """
    , done AS (
        UPDATE rowcall.jobs SET status = 'done', epoch = jobs.epoch + given.later, crashes = 0, session = NULL,
            run_after = NULL, wait_ms = NULL, error = NULL, reason = NULL, updated_at = (SELECT rowcall.moment())
        FROM given
        WHERE jobs.rowid = given.row AND jobs.epoch = given.epoch AND status = given.held
        AND jobs.request = given.request AND jobs.input_hash = given.hash AND NOT HAS_ONE
        RETURNING jobs.rowid, jobs.epoch, jobs.request, jobs.input_hash, jobs.batch, jobs.updated_at, given.answer),
    kept AS (
        INSERT INTO rowcall.results (job, epoch, request, input_hash, batch, at,
            input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, value, origin)
        SELECT done.rowid, done.epoch, done.request, done.input_hash, done.batch, done.updated_at,
            0, 0, 0, 0, CASE WHEN called.cost IS NOT NULL THEN 0 END, called.value, called.id
        FROM done JOIN rowcall.results AS called ON called.id = done.answer
        RETURNING job)
"""
_ROWS = "SELECT job FROM kept"
_NUMBER = "SELECT count(*) FROM kept"


def _filled(statement: str) -> str:
    return statement.replace("CLAIMS", _CLAIMS).replace("ANSWER", _ANSWER).replace("HAS_ONE", _HAS_ONE)


_GIVE_CLAIMED = _filled(_TO_CLAIMED + _GIVE + _ROWS)
_GIVEN = _filled("""
    SELECT job FROM CLAIMS JOIN rowcall.results
    ON results.job = claim.row AND results.epoch = claim.epoch AND origin IS NOT NULL
""")
_GIVE_PENDING = _filled(_TO_PENDING + _GIVE + _NUMBER)


async def answer_claimed(connection: Connection, claimed: Sequence[Job], *, again: bool) -> list[Job]:
    """Settle the claims for which a duplicate has an answer; returns them.

    ``again``: an earlier try may have been committed and its reply lost; what it answered is returned too.
    """
    await _index(connection)
    given = await fetch(connection, _GIVE_CLAIMED, _claims(claimed))
    given += await fetch(connection, _GIVEN, _claims(claimed)) if again else []
    rows = {row for (row,) in given}
    return [job for job in claimed if job.row in rows]


async def answer_pending(connection: Connection, answered: Sequence[Job]) -> int:
    """Give the answers of these jobs to their pending duplicates; returns how many got one."""
    await _index(connection)
    (given,) = await fetched(connection, _GIVE_PENDING, _claims(answered) | {"most": MOST})
    return int(given)


def _claims(jobs: Sequence[Job]) -> dict[str, Any]:
    return {
        "rows": [job.row for job in jobs],
        "epochs": [job.epoch for job in jobs],
        "requests": [job.request for job in jobs],
        "hashes": [job.input_hash for job in jobs],
    }


async def _index(connection: Connection) -> None:
    """Make the indexes if they are missing; has to come first in the transaction, since it locks tables."""
    (made,) = await fetched(connection, _INDEXED)
    if made:
        return
    await patiently(connection)
    await connection.execute(_ALONE)
    for statement in _INDEXES:
        await connection.execute(statement)

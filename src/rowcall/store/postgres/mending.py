"""What people do to jobs by name: retry and cancel."""

from __future__ import annotations

from rowcall.store.postgres.pool import Connection
from rowcall.store.postgres.queries import choice, patiently
from rowcall.store.types import Selection

CHOSEN = "CREATE TEMP TABLE chosen (row bigint PRIMARY KEY) ON COMMIT DROP"
"""The jobs of one transaction, kept on the server: there may be more than this side's memory holds."""

# In the order of the rows, as everybody else locks them, and to the end of the transaction.
_CHOOSE = """
    INSERT INTO pg_temp.chosen
    SELECT rowid FROM rowcall.jobs WHERE rowid IN (WANTED) ORDER BY rowid FOR NO KEY UPDATE
"""
_SUPERSEDE = """
    UPDATE rowcall.results SET superseded = true FROM rowcall.jobs
    WHERE jobs.rowid IN (SELECT row FROM pg_temp.chosen) AND jobs.status = 'done'
    AND results.job = jobs.rowid AND results.request = jobs.request AND results.input_hash = jobs.input_hash
"""
_RETRY = """
    UPDATE rowcall.jobs SET status = 'pending', attempts = 0, crashes = 0, epoch = epoch + 1, run_after = NULL,
        wait_ms = NULL, error = NULL, reason = NULL, session = NULL, updated_at = (SELECT rowcall.moment()),
        pass = CASE WHEN EXISTS (SELECT 1 FROM rowcall.payloads WHERE job = jobs.rowid) THEN NULL ELSE 0 END
    WHERE rowid IN (SELECT row FROM pg_temp.chosen) AND status <> 'running'
"""
_CANCEL = """
    UPDATE rowcall.jobs SET status = 'cancelled', session = NULL, updated_at = (SELECT rowcall.moment())
    WHERE rowid IN (SELECT row FROM pg_temp.chosen) AND status IN ('pending', 'running')
"""


async def retry(connection: Connection, kind: str, selection: Selection) -> int:
    """Set jobs back to pending with attempts 0; a done one's answer is superseded."""
    await _choose(connection, kind, selection)
    await connection.execute(_SUPERSEDE)
    return (await connection.execute(_RETRY)).rowcount


async def cancel(connection: Connection, kind: str, selection: Selection) -> int:
    """Mark pending and running jobs cancelled."""
    await _choose(connection, kind, selection)
    return (await connection.execute(_CANCEL)).rowcount


async def _choose(connection: Connection, kind: str, selection: Selection) -> None:
    query, wanted = choice(kind, selection)
    await patiently(connection)
    await connection.execute(CHOSEN)
    await connection.execute(_CHOOSE.replace("WANTED", query), wanted)

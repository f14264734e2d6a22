"""What people do to jobs by name: retry and cancel."""

from __future__ import annotations

from rowcall.store.facts import Selection
from rowcall.store.postgres.pool import Connection
from rowcall.store.postgres.queries import choice, fetch, patiently

# In the order of the rows, as everybody else locks them, and to the end of the transaction.
_CHOOSE = "SELECT rowid FROM rowcall.jobs WHERE rowid IN (CHOSEN) ORDER BY rowid FOR NO KEY UPDATE"
_SUPERSEDE = """
    UPDATE rowcall.results SET superseded = true FROM rowcall.jobs
    WHERE jobs.rowid = ANY(%(rows)s) AND jobs.status = 'done'
    AND results.job = jobs.rowid AND results.request = jobs.request AND results.input_hash = jobs.input_hash
"""
_RETRY = """
    UPDATE rowcall.jobs SET status = 'pending', attempts = 0, crashes = 0, epoch = epoch + 1, run_after = NULL,
        wait_ms = NULL, error = NULL, reason = NULL, session = NULL, updated_at = (SELECT rowcall.moment()),
        pass = CASE WHEN EXISTS (SELECT 1 FROM rowcall.payloads WHERE job = jobs.rowid) THEN NULL ELSE 0 END
    WHERE rowid = ANY(%(rows)s) AND status <> 'running'
"""
_CANCEL = """
    UPDATE rowcall.jobs SET status = 'cancelled', session = NULL, updated_at = (SELECT rowcall.moment())
    WHERE rowid = ANY(%(rows)s) AND status IN ('pending', 'running')
"""


async def retry(connection: Connection, kind: str, selection: Selection) -> int:
    """Set jobs back to pending with attempts 0; a done one's answer is superseded."""
    chosen = await _choose(connection, kind, selection)
    await connection.execute(_SUPERSEDE, chosen)
    return (await connection.execute(_RETRY, chosen)).rowcount


async def cancel(connection: Connection, kind: str, selection: Selection) -> int:
    """Mark pending and running jobs cancelled."""
    return (await connection.execute(_CANCEL, await _choose(connection, kind, selection))).rowcount


async def _choose(connection: Connection, kind: str, selection: Selection) -> dict[str, list[int]]:
    query, wanted = choice(kind, selection)
    await patiently(connection)
    return {"rows": [row for (row,) in await fetch(connection, _CHOOSE.replace("CHOSEN", query), wanted)]}

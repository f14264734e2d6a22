"""Setting jobs back to pending and cancelling them, by hand."""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.store.queries.base import Query, Statement
from rowcall.store.queries.selections import rows_of
from rowcall.store.types import Claim, Selection

CHOSEN = "CREATE TEMP TABLE chosen (row BIGINT PRIMARY KEY)"
"""The jobs of one transaction. They are kept in the database, since they may be more than fit into memory."""
FORGET_CHOSEN = "DROP TABLE chosen"

# Every transaction locks jobs in the order of their rows, so that two of them never wait for each other.
_CHOOSE = "INSERT INTO chosen SELECT rowid FROM jobs WHERE rowid IN (WANTED) ORDER BY rowid FOR NO KEY UPDATE"
_SUPERSEDE = """
    UPDATE results SET superseded = TRUE
    WHERE job IN (SELECT row FROM chosen CROSS JOIN jobs WHERE jobs.rowid = row AND status = 'done')
    AND (request, input_hash) = (SELECT request, input_hash FROM jobs WHERE rowid = job)
"""
_RETRY = """
    UPDATE jobs SET status = 'pending', attempts = 0, crashes = 0, epoch = epoch + 1, run_after = NULL,
        wait_ms = NULL, error = NULL, reason = NULL, session = NULL, updated_at = moment(),
        pass = CASE WHEN EXISTS (SELECT 1 FROM payloads WHERE job = jobs.rowid) THEN NULL ELSE 0 END
    WHERE rowid IN (SELECT row FROM chosen) AND status <> 'running'
"""
_CANCEL = """
    UPDATE jobs SET status = 'cancelled', session = NULL, updated_at = moment()
    WHERE rowid IN (SELECT row FROM chosen) AND status IN ('pending', 'running')
"""
_CANCELLED = "SELECT rowid, epoch FROM jobs WHERE rowid IN :rows AND status = 'cancelled'"


def retry(kind: str, selection: Selection) -> Query[int]:
    """Set jobs back to pending with attempts 0; the answers of those that were done are superseded."""
    yield from _choose(kind, selection)
    yield Statement(_SUPERSEDE)
    changed = (yield Statement(_RETRY)).changed
    yield Statement(FORGET_CHOSEN)
    return changed


def cancel(kind: str, selection: Selection) -> Query[int]:
    """Mark pending and running jobs cancelled."""
    yield from _choose(kind, selection)
    changed = (yield Statement(_CANCEL)).changed
    yield Statement(FORGET_CHOSEN)
    return changed


def _choose(kind: str, selection: Selection) -> Query[None]:
    query, wanted = rows_of(kind, selection)
    yield Statement(CHOSEN)
    yield Statement(_CHOOSE.replace("WANTED", query), **wanted)


def cancelled_among(claims: Sequence[Claim]) -> Query[list[Claim]]:
    """Those claims whose jobs were cancelled under the very epoch of the claim."""
    if not claims:
        return []
    found = set((yield Statement(_CANCELLED, rows=[row for row, _ in claims])).rows)
    return [claim for claim in claims if tuple(claim) in found]

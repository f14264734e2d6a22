"""Dropping payloads that are no longer needed."""

from __future__ import annotations

from rowcall.model.errors import StoreError
from rowcall.store.queries.base import Query, Statement
from rowcall.store.queries.stored_runs import living

_OLD = """
    FROM payloads WHERE job IN (
        SELECT rowid FROM jobs NOT INDEXED WHERE kind = :kind AND status = 'done' AND updated_at < :before)
"""


def prunable(kind: str, before: str) -> Query[int]:
    """The number of payloads of jobs that were done before a time."""
    return int((yield Statement(f"SELECT count(*) {_OLD}", kind=kind, before=before)).value)


def drop_payloads(store: str, kind: str, before: str) -> Query[int]:
    """Drop the payloads of jobs that were done before a time; returns how many. ``store`` names it in the error.

    Raises:
        StoreError: a run is alive.
    """
    if alive := (yield from living()):
        what = f"{store}: a run is live ({', '.join(alive)})"
        raise StoreError(what, remedy="Stop it (Ctrl+C loses nothing) or let it end, then prune again.")
    return (yield Statement(f"DELETE {_OLD}", kind=kind, before=before)).changed

"""Looking for faults in the file, and making it smaller."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rowcall.store.queries.pruning import drop_payloads
from rowcall.store.sqlite.driver import carry_out
from rowcall.store.types import Pruned

_CHECKPOINT_PATIENCE_MS = 10_000
"""How long making the file smaller waits for readers."""


def check(connection: sqlite3.Connection) -> list[str]:
    """Faults of the file itself; empty if it is sound."""
    try:
        found = [fault for (fault,) in connection.execute("PRAGMA quick_check")]
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        return [str(error)]
    return [] if found == ["ok"] else found


def prune(connection: sqlite3.Connection, path: Path, kind: str, before: str) -> Pruned:
    """Drop payloads, then rewrite the file without the gaps. Outside of a transaction, as VACUUM has to be.

    The caller holds the write lock, so that no run begins meanwhile.

    Raises:
        StoreError: a run is alive.
    """
    size = _size(connection)
    dropped = carry_out(connection, drop_payloads(str(path), kind, before))
    connection.execute("VACUUM")
    _checkpoint(connection)
    return Pruned(dropped, size - _size(connection))


def _size(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(size)


def _checkpoint(connection: sqlite3.Connection) -> None:
    """Write the WAL back to the file. Readers are waited for; if one takes too long, the next checkpoint does it."""
    (before,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_PATIENCE_MS}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.execute(f"PRAGMA busy_timeout = {before}")

"""Keeping the file in good order: snapshots, dropping what is no longer needed, looking for what should not be."""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

from rowcall.model.errors import OutputError, StoreError
from rowcall.store.sqlite.faults import translated
from rowcall.store.sqlite.line import transaction
from rowcall.store.sqlite.sessions import living
from rowcall.store.types import Flaw, LeftBehind, Pruned
from rowcall.system import atomic_files

_LEFT_BEHIND = """
    SELECT jobs.rowid, id, record FROM jobs NOT INDEXED JOIN payloads ON payloads.job = jobs.rowid
    WHERE jobs.rowid > :after AND kind = :kind AND status = 'pending' AND pass <> :pass
    ORDER BY jobs.rowid LIMIT :limit
"""

_OLD = """
    FROM payloads WHERE job IN (
        SELECT rowid FROM jobs NOT INDEXED WHERE kind = ? AND status = 'done' AND updated_at < ?)
"""
_PRUNABLE = "SELECT count(*)" + _OLD
_PRUNE = "DELETE" + _OLD

_ANSWERLESS = """
    SELECT count(*), id, min(jobs.rowid) FROM jobs NOT INDEXED WHERE kind = ? AND status = 'done' AND NOT EXISTS (
        SELECT 1 FROM results
        WHERE job = jobs.rowid AND request = jobs.request AND input_hash = jobs.input_hash AND superseded = 0)
"""
_NO_ANSWER_JSON = """
    SELECT count(*), jobs.id, min(jobs.rowid) FROM results JOIN jobs ON jobs.rowid = job
    WHERE kind = ? AND NOT json_valid(value)
"""
_NO_PAYLOAD_JSON = """
    SELECT count(*), id, min(jobs.rowid) FROM payloads JOIN jobs ON jobs.rowid = job
    WHERE kind = ? AND NOT json_valid(record)
"""
_FLAWS = {
    "done without an answer": _ANSWERLESS,
    "an answer that is no JSON": _NO_ANSWER_JSON,
    "a payload that is no JSON": _NO_PAYLOAD_JSON,
}

# What is running in a snapshot runs in the original; here it is as if it had never been claimed.
_STAND_STILL = """
    UPDATE jobs SET status = 'pending', session = NULL,
        run_after = CASE WHEN run_after IS NULL THEN NULL ELSE updated_at END, wait_ms = 0
    WHERE status = 'running'
"""
_END_RUNS = "UPDATE runs SET ended_at = started_at, stop_reason = ? WHERE ended_at IS NULL"
_PATIENCE_MS = 10_000
"""How long making the file smaller waits for readers."""


def left_behind(connection: sqlite3.Connection, kind: str, pass_: int, after: int, limit: int) -> list[LeftBehind]:
    """Pending jobs with a payload that a pass did not bring."""
    wanted = {"kind": kind, "pass": pass_, "after": after, "limit": limit}
    return [LeftBehind(*row) for row in connection.execute(_LEFT_BEHIND, wanted)]


def flaws(connection: sqlite3.Connection, kind: str) -> list[Flaw]:
    """What rowcall never writes."""
    found = [(what, *connection.execute(query, (kind,)).fetchone()) for what, query in _FLAWS.items()]
    return [Flaw(what, count, key) for what, count, key, _ in found if count]


def prunable(connection: sqlite3.Connection, kind: str, before: str) -> int:
    """Payloads of jobs that were done before a time."""
    (count,) = connection.execute(_PRUNABLE, (kind, before)).fetchone()
    return int(count)


def prune(connection: sqlite3.Connection, path: Path, kind: str, before: str) -> Pruned:
    """Drop payloads, then rewrite the file without the gaps. To be run in the turn, so that no run begins meanwhile.

    Raises:
        StoreError: a run is alive.
    """
    _require_rest(connection, path)
    size = _size(connection)
    dropped = connection.execute(_PRUNE, (kind, before)).rowcount
    connection.execute("VACUUM")
    _write_back(connection)
    return Pruned(dropped, size - _size(connection))


def _require_rest(connection: sqlite3.Connection, path: Path) -> None:
    if alive := living(connection, path):
        what = f"{path}: a run is alive ({', '.join(alive)}), and the file cannot be rewritten under it"
        raise StoreError(what, remedy="Stop it (Ctrl+C loses nothing) or let it end, then prune again.")


def _size(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(size)


def _write_back(connection: sqlite3.Connection) -> None:
    """Bring the WAL into the file; readers are waited for, and whoever opens the file next does it after them."""
    (before,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.execute(f"PRAGMA busy_timeout = {before}")


def backup(connection: sqlite3.Connection, database: Path, path: Path) -> None:
    """Write a snapshot: one read transaction, which holds up no writer, into a file that gets its name at the end.

    It is for the eyes that may see the database.

    Raises:
        OutputError: the file is there already, or cannot be written.
    """
    if path.exists():
        raise taken(path)
    with atomic_files.explained(path):
        temporary = path.with_name(f".rowcall-{secrets.token_hex(8)}.tmp")
        temporary.touch(stat.S_IMODE(database.stat().st_mode), exist_ok=False)
        try:
            with translated(path):
                connection.execute("VACUUM INTO ?", (str(temporary),))
                _rest(temporary)
            give_name(temporary, path)
        finally:
            for leftover in (temporary, temporary.with_name(f"{temporary.name}-journal")):
                leftover.unlink(missing_ok=True)


def stand_still(connection: sqlite3.Connection, stop_reason: str) -> None:
    """Let nothing run in a copy; its open runs have ended for this reason."""
    connection.execute(_STAND_STILL)
    connection.execute("DELETE FROM sessions")
    connection.execute(_END_RUNS, (stop_reason,))


def _rest(copy: Path) -> None:
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        with transaction(connection):
            stand_still(connection, "backup")


def give_name(temporary: Path, path: Path) -> None:
    """Bring a complete file to disk, then give it a name that nobody has taken meanwhile."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise taken(path) from None
    except OSError:  # a file system without links
        temporary.rename(path)


def taken(path: Path) -> OutputError:
    """The error of a name that something has already."""
    return OutputError(f"{path}: is there already", remedy="Name another file, or leave the name out.")

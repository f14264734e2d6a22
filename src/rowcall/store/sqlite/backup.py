"""A snapshot of the file, as a store of its own."""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

from rowcall.model.errors import OutputError
from rowcall.store.sqlite.connection_thread import transaction
from rowcall.store.sqlite.faults import translated
from rowcall.system import atomic_files

# A job that runs in the original is, in the copy, as if it had never been claimed.
_RELEASE_ALL = """
    UPDATE jobs SET status = 'pending', session = NULL,
        run_after = CASE WHEN run_after IS NULL THEN NULL ELSE updated_at END, wait_ms = 0
    WHERE status = 'running'
"""
_END_RUNS = "UPDATE runs SET ended_at = started_at, stop_reason = ? WHERE ended_at IS NULL"


def backup(connection: sqlite3.Connection, database: Path, path: Path) -> None:
    """Write a snapshot into a new file, which gets its name at the end. One read transaction; no writer waits for it.

    The file has the permissions of the database.

    Raises:
        OutputError: the file exists already, or cannot be written.
    """
    if path.exists():
        raise already_there(path)
    with atomic_files.explained(path):
        temporary = path.with_name(f".rowcall-{secrets.token_hex(8)}.tmp")
        temporary.touch(stat.S_IMODE(database.stat().st_mode), exist_ok=False)
        try:
            with translated(path):
                connection.execute("VACUUM INTO ?", (str(temporary),))
                _stop_copy(temporary)
            give_name(temporary, path)
        finally:
            for leftover in (temporary, temporary.with_name(f"{temporary.name}-journal")):
                leftover.unlink(missing_ok=True)


def _stop_copy(copy: Path) -> None:
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        with transaction(connection):
            stop_all_work(connection, "backup")


def stop_all_work(connection: sqlite3.Connection, stop_reason: str) -> None:
    """Release all jobs of a copy, and end its open runs for this reason."""
    connection.execute(_RELEASE_ALL)
    connection.execute("DELETE FROM sessions")
    connection.execute(_END_RUNS, (stop_reason,))


def give_name(temporary: Path, path: Path) -> None:
    """Write a complete file to the disk, then give it a name that nothing else has taken meanwhile."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise already_there(path) from None
    except OSError:  # a file system without links
        temporary.rename(path)


def already_there(path: Path) -> OutputError:
    """The error for a name that is taken."""
    return OutputError(f"{path}: the file exists already", remedy="Name another file, or leave the name out.")

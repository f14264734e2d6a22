"""The database file: whether it is ours, how it is opened, and the version of its schema."""

from __future__ import annotations

import os
import shlex
import sqlite3
from contextlib import closing
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from rowcall.model.errors import Corrupt, NoStore, SchemaMismatch, StoreError, Unavailable
from rowcall.store.sqlite.faults import translated
from rowcall.store.sqlite.locks import beside, is_unlocked
from rowcall.store.sqlite.network_disk import network_file_system

APPLICATION_ID = 0x726F7763  # "rowc", where `file` and SQLite look for it
MOVING_ID = 0x726F776D  # "rowm": a store is being migrated into this file, which cannot be used before that is finished
MIGRATIONS: tuple[str, ...] = ("schema.sql", "steering.sql", "working.sql")
"""Script n takes a file from version n to n + 1."""
VERSION = len(MIGRATIONS)

OLDEST_SQLITE = (3, 37)  # STRICT tables
READER_PATIENCE_MS = 10_000
"""How long a reader waits while another connection recovers or closes the file."""
WRITER_PATIENCE_MS = 200
"""How long SQLite waits in one try for the write lock of another program; the store tries again."""
CHECKPOINT_PAGES = 1000
"""A WAL of about 4 MB is written back to the file."""


def connect_reading(path: Path) -> sqlite3.Connection:
    """Open an existing store so that nothing can be written through it."""
    with translated(path):
        if not path.exists() or not path.stat().st_size:
            raise _no_store(path)
        connection = connect(path, "ro", READER_PATIENCE_MS)
        try:
            version = _version(connection, path)
            if not version:  # it is being made
                raise _no_store(path)
            if version < VERSION:
                raise SchemaMismatch(f"{path}: an older rowcall wrote it", remedy="`rowcall run` brings it up to date.")
        except BaseException:
            connection.close()
            raise
        return connection


def _no_store(path: Path) -> NoStore:
    return NoStore(f"{path}: there is no store yet", remedy="`rowcall run` or `rowcall enqueue` creates it.")


def connect_writing(path: Path) -> sqlite3.Connection:
    """Open a store or an empty file; a file of another program is not changed."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreError(
            f"SQLite {sqlite3.sqlite_version} is too old", remedy="Use a Python with SQLite 3.37 or newer."
        )
    with translated(path):
        _require_place(path)
        if path.exists():
            _look(path)
        return connect(path, "rwc", WRITER_PATIENCE_MS)


def prepare(connection: sqlite3.Connection, path: Path, durability: str) -> None:
    """Set a writing connection up and bring the schema up to date. The caller holds the write lock."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise Unavailable(f"{path}: its file system has no WAL mode", remedy="Use a local disk ([store] path).")
    connection.execute(f"PRAGMA synchronous = {'NORMAL' if durability == 'normal' else 'FULL'}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    if (version := _version(connection, path)) < VERSION:
        _migrate(connection, version)


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    """Run all scripts that are left in one transaction, so that nobody sees a file between two versions."""
    scripts = "".join(files("rowcall.store").joinpath(step).read_text("utf-8") for step in MIGRATIONS[version:])
    marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"
    try:
        connection.executescript(f"BEGIN IMMEDIATE; {scripts} {marks} COMMIT;")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def connect(path: Path, mode: str, patience_ms: int) -> sqlite3.Connection:
    """A connection to a file as it is. ``mode``: ``ro``, ``rw`` or ``rwc`` (created if it does not exist)."""
    uri = f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=patience_ms / 1000, cached_statements=256)
    connection.create_function("session_unlocked", 2, partial(is_unlocked, path))
    return connection


def _require_place(path: Path) -> None:
    if not path.parent.is_dir():
        raise Unavailable(f"{path}: there is no folder {path.parent}", remedy="Make it, or change [store] path.")
    if kind := network_file_system(path):
        raise Unavailable(
            f"{path}: is on a network file system ({kind}), where SQLite's write-ahead log is not safe",
            remedy="Name a file on a local disk as [store] path; input and output may stay where they are.",
        )
    if path.exists() and not path.is_file():
        raise Unavailable(f"{path}: this is not a file", remedy="Name a file as [store] path.")


def _look(path: Path) -> None:
    """Refuse a file of another program, through a connection that cannot write."""
    if not path.stat().st_size:
        _require_no_wal(path)
        return
    connection = connect(path, "ro", READER_PATIENCE_MS)
    try:
        _version(connection, path)
    finally:
        connection.close()


def _require_no_wal(path: Path) -> None:
    """Refuse an empty file with a log beside it. A file that is being created gets its first page before its log."""
    wal = beside(path, "wal")
    if wal.exists() and wal.stat().st_size and not path.stat().st_size:
        raise Corrupt(f"{path}: the file is empty, yet {wal.name} is not", remedy="Restore a backup, or delete both.")


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """The schema's version, 0 for an empty database; another process may be making it meanwhile.

    Raises:
        SchemaMismatch: a newer rowcall or another program wrote it, or a migration into it is not finished.
    """
    connection.execute("BEGIN")  # so that all three are of one moment
    try:
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        actions = _actions(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    if owner == MOVING_ID:
        raise _unfinished(connection, path)
    if owner != APPLICATION_ID and (owner or tables or version):
        raise SchemaMismatch(f"{path}: another program's database", remedy="Name another file as [store] path.")
    if version > VERSION:
        raise SchemaMismatch(
            f"{path}: written by a newer rowcall (schema {version}; this one knows {VERSION})",
            remedy="Update rowcall: pip install -U rowcall",
        )
    if version and (foreign := actions ^ _own_actions(int(version))):
        names = ", ".join(sorted({f"{kind} {name}" for kind, name, _ in foreign}))
        shown = "".join(letter if letter.isprintable() else " " for letter in names)
        raise SchemaMismatch(
            f"{path}: a trigger or view that rowcall makes was changed, or another one was added: {shown}",
            remedy="A trigger acts whenever rowcall writes. Drop what you added, or restore a backup.",
        )
    return int(version)


def _actions(connection: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    """Return kind, name and definition of all triggers and views."""
    found = "SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')"
    return frozenset(connection.execute(found).fetchall())


@cache
def _own_actions(version: int) -> frozenset[tuple[str, str, str]]:
    """Return the triggers and views of a store of that version."""
    with closing(sqlite3.connect(":memory:")) as made:
        for step in MIGRATIONS[:version]:
            made.executescript(files("rowcall.store").joinpath(step).read_text("utf-8"))
        return _actions(made)


def _unfinished(connection: sqlite3.Connection, path: Path) -> SchemaMismatch:
    (source,) = connection.execute("SELECT source FROM moving").fetchone()
    return SchemaMismatch(
        f"{path}: a migration into it is not finished",
        remedy=f"Resume it with: rowcall migrate --from {shlex.quote(source)} --to {shlex.quote(str(path))}",
    )

"""A snapshot of a database as a SQLite file, which is a store of its own."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from rowcall.store.migration import copy
from rowcall.store.postgres.migration_ends import PostgresMigrationSource
from rowcall.store.postgres.pool import Connection, Database, patiently
from rowcall.store.sqlite.backup import already_there, give_name
from rowcall.store.sqlite.locks import beside
from rowcall.store.sqlite.migration_ends import SQLiteMigrationTarget
from rowcall.system import atomic_files

P = ParamSpec("P")
T = TypeVar("T")

_FOR_ITS_OWNER = 0o600


async def backup(database: Database, path: Path) -> None:
    """Write a snapshot into a file that gets its name at the end. One read transaction; nobody waits for it.

    Raises:
        OutputError: the file exists already, or cannot be written.
    """
    with _becoming(path) as temporary:
        await database.read(_write, database.name, temporary)


@contextmanager
def _becoming(path: Path) -> Iterator[Path]:
    """An empty file that gets the name ``path`` if the block succeeds."""
    if path.exists():
        raise already_there(path)
    with atomic_files.explained(path):
        temporary = path.with_name(f".rowcall-{secrets.token_hex(8)}.tmp")
        temporary.touch(_FOR_ITS_OWNER, exist_ok=False)
        try:
            yield temporary
            give_name(temporary, path)
        finally:
            for leftover in (temporary, *(beside(temporary, name) for name in ("wal", "shm", "turn"))):
                leftover.unlink(missing_ok=True)


async def _write(connection: Connection, name: str, file: Path) -> None:
    await patiently(connection)

    async def read(query: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await query(connection, *args, **kwargs)

    sink = await SQLiteMigrationTarget.open(file)
    try:
        await copy(PostgresMigrationSource(name, read, sink.close), sink, "backup")
    finally:
        await sink.close()

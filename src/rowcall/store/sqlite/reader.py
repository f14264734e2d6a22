"""The reading half of the store."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar

from rowcall.store.queries.base import Access, Query
from rowcall.store.shared_verbs import SharedReader
from rowcall.store.sqlite import backup, driver, upkeep
from rowcall.store.sqlite.connection_thread import ConnectionThread
from rowcall.store.sqlite.faults import translated
from rowcall.store.sqlite.file import connect_reading

P = ParamSpec("P")
T = TypeVar("T")


class SQLiteReader(SharedReader):
    """Reads a store while others write it. It never writes, never checkpoints and never waits for the write lock.

    Made by ``open``. Each verb is one transaction.
    """

    def __init__(self, path: Path, thread: ConnectionThread, clock: Callable[[], float]) -> None:
        self.path = path
        self._thread = thread
        self._clock = clock

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Open an existing store.

        Raises:
            NoStore: there is no store yet.
            SchemaMismatch: a newer rowcall or another program wrote the file.
            Corrupt: the file is not a database, or is damaged.
        """
        return cls(path, await ConnectionThread.open(partial(connect_reading, path)), time.time)

    async def close(self) -> None:
        """Close the connection; safe to repeat."""
        await self._thread.close()

    async def check(self) -> list[str]:
        """Faults of the file itself; empty if it is sound."""
        return await self._read(upkeep.check)

    async def backup(self, path: Path) -> None:
        """Write a snapshot to a new file; runs go on meanwhile.

        Raises:
            OutputError: the file exists already, or cannot be written.
        """
        await self._thread.run(backup.backup, self.path, path)

    async def _carry_out(self, access: Access, begin: Callable[[], Query[T]]) -> T:
        return await self._read(lambda connection: driver.carry_out(connection, begin()))

    async def _read(
        self, query: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._thread.run(self._snapshot, lambda connection: query(connection, *args, **kwargs))

    def _snapshot(self, connection: sqlite3.Connection, query: Callable[[sqlite3.Connection], T]) -> T:
        with translated(self.path):
            connection.execute("BEGIN")
            try:
                return query(connection)
            finally:
                if connection.in_transaction:  # SQLite ends it by itself after a grave error
                    connection.execute("ROLLBACK")

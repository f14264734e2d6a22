"""The reading half of the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

from rowcall.store.postgres import backup, driver, schema, upkeep
from rowcall.store.postgres.pool import Database
from rowcall.store.queries.base import Access, Query
from rowcall.store.shared_verbs import SharedReader

T = TypeVar("T")


class PostgresReader(SharedReader):
    """Reads a store while others write it; never writes. Made by ``open``. Each verb is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    async def open(cls, url: str) -> Self:
        """Open an existing store by the URL of its database.

        Raises:
            NoStore: there is no store yet.
            Unavailable: the server cannot be reached, or refuses this user.
            SchemaMismatch: another version of rowcall made the tables.
        """
        database = await Database.open(url)
        try:
            await database.read(schema.require, database.name)
        except BaseException:
            await database.close()
            raise
        return cls(database)

    async def close(self) -> None:
        """Close the connections; safe to repeat."""
        await self._database.close()

    async def check(self) -> list[str]:
        """Faults that the server knows of; it does not look for others."""
        return await self._database.read(upkeep.check)

    async def backup(self, path: Path) -> None:
        """Write a snapshot to a new SQLite file; runs go on meanwhile.

        Raises:
            OutputError: the file exists already, or cannot be written.
        """
        await backup.backup(self._database, path)

    async def _carry_out(self, access: Access, begin: Callable[[], Query[T]]) -> T:
        return await self._database.transact(access, lambda connection: driver.carry_out(connection, begin()))

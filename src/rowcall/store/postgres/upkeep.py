"""Looking for faults that the server knows of, and giving the space of dropped payloads back."""

from __future__ import annotations

from contextlib import suppress

from rowcall.model.errors import Busy
from rowcall.store.postgres.driver import carry_out
from rowcall.store.postgres.faults import translated
from rowcall.store.postgres.pool import Connection, Database, fetch, fetched
from rowcall.store.queries.base import Access
from rowcall.store.queries.pruning import drop_payloads
from rowcall.store.types import Pruned

_INVALID_INDEXES = """
    SELECT format('the index rowcall.%I is invalid: REINDEX it', relname)
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = 'rowcall'::regnamespace AND NOT indisvalid ORDER BY 1
"""
_FAILED_PAGES = """
    SELECT format('%s pages of the database failed their checksum', checksum_failures)
    FROM pg_stat_database WHERE datname = current_database() AND checksum_failures > 0
"""
_SIZE = "SELECT pg_total_relation_size('rowcall.payloads')"
_VACUUM = "VACUUM rowcall.payloads"


async def check(connection: Connection) -> list[str]:
    """Faults that the server knows of."""
    return [fault for query in (_INVALID_INDEXES, _FAILED_PAGES) for (fault,) in await fetch(connection, query)]


async def prune(database: Database, kind: str, before: str) -> Pruned:
    """Drop payloads, then give the free space at the end of their table back to the disk.

    Raises:
        StoreError: a run is alive.
    """

    async def drop(connection: Connection) -> tuple[int, int]:
        size = await _size(connection)
        return await carry_out(connection, drop_payloads(database.name, kind, before)), size

    dropped, size = await database.transact(Access(writes=True, walks=True), drop)
    with suppress(Busy):  # what is dropped is dropped; later payloads use its space
        await _vacuum(database)
    return Pruned(dropped, max(0, size - await database.read(_size)))


async def _vacuum(database: Database) -> None:
    """Outside of a transaction, as VACUUM has to be."""
    with translated(database.name):
        connection = await database.connect()
        try:
            if not database.pooled:
                await connection.execute("SET statement_timeout = 0")
            await connection.execute(_VACUUM)
        finally:
            await connection.close()


async def _size(connection: Connection) -> int:
    (size,) = await fetched(connection, _SIZE)
    return int(size)

"""Opens the store at a place: SQLite for a file, PostgreSQL for a URL; only what is needed is imported."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Literal

from rowcall.model.errors import Unavailable
from rowcall.model.store_location import StoreLocation
from rowcall.store.base import Reader, Store
from rowcall.store.migration import MigrationSource, MigrationTarget

Durability = Literal["full", "normal"]
"""What a power cut may take along: nothing, or the last seconds."""


def _nobody(message: str) -> None:
    """Who is told of waits where nobody asked to be."""


async def open_store(
    place: StoreLocation,
    *,
    durability: Durability = "full",
    lease: float = 60.0,
    busy_wait: float = 30.0,
    waits: Callable[[str], None] = _nobody,
) -> Store:
    """Open a store, or make one.

    Args:
        place: where.
        durability: ``full`` survives a power cut to the last group; ``normal`` may lose the last seconds to one.
        lease: seconds of silence after which another session is dead.
        busy_wait: seconds to wait for another process, or for the server, before ``Busy`` is raised.
        waits: told who is in the way, where a wait gets long.

    Raises:
        StoreError: it cannot be opened; see errors.py.
    """
    if place.path is not None:
        from rowcall.store.sqlite import SQLiteStore

        return await SQLiteStore.open(place.path, durability=durability, lease=lease, busy_wait=busy_wait, waits=waits)
    module = _postgres("store", place)
    store: Store = await module.PostgresStore.open(
        place.url, durability=durability, lease=lease, busy_wait=busy_wait, waits=waits
    )
    return store


async def open_reader(place: StoreLocation) -> Reader:
    """Open a store for reading alone.

    Raises:
        NoStore: nobody has made one there yet.
        StoreError: it cannot be opened; see errors.py.
    """
    if place.path is not None:
        from rowcall.store.sqlite import SQLiteReader

        return await SQLiteReader.open(place.path)
    module = _postgres("reader", place)
    reader: Reader = await module.PostgresReader.open(place.url)
    return reader


async def open_source(place: StoreLocation) -> MigrationSource:
    """Open a store to move it from there.

    Raises:
        NoStore: nobody has made one there yet.
        StoreError: it cannot be opened; see errors.py.
    """
    if place.path is not None:
        from rowcall.store.sqlite.migration_ends import SQLiteMigrationSource

        return await SQLiteMigrationSource.open(place.path)
    source: MigrationSource = await _postgres("migration_ends", place).PostgresMigrationSource.open(place.url)
    return source


async def open_target(place: StoreLocation) -> MigrationTarget:
    """Open a place to move a store into it.

    Raises:
        StoreError: it cannot be opened; see errors.py.
    """
    if place.path is not None:
        from rowcall.store.sqlite.migration_ends import SQLiteMigrationTarget

        return await SQLiteMigrationTarget.open(place.path)
    sink: MigrationTarget = await _postgres("migration_ends", place).PostgresMigrationTarget.open(place.url)
    return sink


def _postgres(name: str, place: StoreLocation) -> ModuleType:
    """A module of the room that needs an extra.

    Raises:
        Unavailable: PostgreSQL's driver cannot be imported.
    """
    try:
        return import_module(f"rowcall.store.postgres.{name}")
    except ImportError as error:
        if (error.name or "").startswith("rowcall"):
            raise
        what = f"{place}: the driver for PostgreSQL is not installed ({error})"
        raise Unavailable(what, remedy="pip install 'rowcall[postgres]'") from None

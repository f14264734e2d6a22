"""Opens the store at a location: SQLite for a file, PostgreSQL for a URL. Imports only the one that is needed."""

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
"""What a power cut may undo: nothing (full), or the last seconds (normal)."""


def _nobody(message: str) -> None:
    """Takes messages about waits that nobody asked for."""


async def open_store(
    place: StoreLocation,
    *,
    durability: Durability = "full",
    lease: float = 60.0,
    busy_wait: float = 30.0,
    waits: Callable[[str], None] = _nobody,
) -> Store:
    """Open a store, or create it.

    Args:
        place: its location.
        durability: ``full`` survives a power cut to the last group; ``normal`` may lose the last seconds to one.
        lease: seconds of silence after which another session is dead.
        busy_wait: seconds to wait for another process, or for the server, before ``Busy`` is raised.
        waits: called with the name of what is waited for, if a wait takes long.

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
        NoStore: there is none yet.
        StoreError: it cannot be opened; see errors.py.
    """
    if place.path is not None:
        from rowcall.store.sqlite import SQLiteReader

        return await SQLiteReader.open(place.path)
    module = _postgres("reader", place)
    reader: Reader = await module.PostgresReader.open(place.url)
    return reader


async def open_source(place: StoreLocation) -> MigrationSource:
    """Open a store that is to be migrated.

    Raises:
        NoStore: there is none yet.
        StoreError: it cannot be opened; see errors.py.
    """
    if place.path is not None:
        from rowcall.store.sqlite.migration_ends import SQLiteMigrationSource

        return await SQLiteMigrationSource.open(place.path)
    source: MigrationSource = await _postgres("migration_ends", place).PostgresMigrationSource.open(place.url)
    return source


async def open_target(place: StoreLocation) -> MigrationTarget:
    """Open a location into which a store is to be migrated.

    Raises:
        StoreError: it cannot be opened; see errors.py.
    """
    if place.path is not None:
        from rowcall.store.sqlite.migration_ends import SQLiteMigrationTarget

        return await SQLiteMigrationTarget.open(place.path)
    sink: MigrationTarget = await _postgres("migration_ends", place).PostgresMigrationTarget.open(place.url)
    return sink


def _postgres(name: str, place: StoreLocation) -> ModuleType:
    """A module of ``store.postgres``, which needs an extra.

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

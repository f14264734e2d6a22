"""Opens the store that a config names."""

from __future__ import annotations

from collections.abc import Callable

from rowcall.config import Config
from rowcall.store import open_at
from rowcall.store.base import Reader, Store


async def open_store(config: Config, waits: Callable[[str], None]) -> Store:
    """Open the store for writing, and create it if it does not exist.

    Args:
        config: the config.
        waits: called with a message for the user when opening has to wait long for another process.

    Raises:
        StoreError: the store cannot be opened.
    """
    table = config.store
    return await open_at.open_store(config.store_location, durability=table.durability, lease=table.lease, waits=waits)


async def open_reader(config: Config) -> Reader:
    """Open the store for reading only.

    Raises:
        NoStore: the store does not exist yet.
        StoreError: the store cannot be opened.
    """
    return await open_at.open_reader(config.store_location)

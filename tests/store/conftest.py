from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
from storekit import Clock, Desk

from rowcall.store.sqlite import SQLiteStore


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ticks():
    """The host's monotonic clock, moved by hand."""
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "test.db"


async def _sqlite(tmp_path, clock, **options):
    return await SQLiteStore.open(tmp_path / "test.db", durability="normal", clock=clock, **options)


STORES = {"sqlite": _sqlite}


@pytest.fixture(params=STORES)
async def open_store(request, tmp_path, clock):
    """Opens the same store as often as it is called, as several processes would."""
    async with AsyncExitStack() as opened:

        async def open_one(**options):
            return await opened.enter_async_context(await STORES[request.param](tmp_path, clock, **options))

        yield open_one


@pytest.fixture
async def store(open_store):
    return await open_store()


@pytest.fixture
async def desk(store, clock, open_store):
    return await Desk(store, clock, open_store).sit()

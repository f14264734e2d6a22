from __future__ import annotations

from contextlib import AsyncExitStack

import pgkit
import pytest
from storekit import Clock, Desk

from rowcall.store.postgres import PostgresStore
from rowcall.store.sqlite import SQLiteStore


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ticks():
    """The clock of limits, moved by hand: the host's monotonic one, or that of the database's server."""
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "test.db"


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server of this test process."""
    yield pgkit.the_server()
    pgkit.throw_away()


@pytest.fixture
def postgres_database(postgres_server):
    """The name of a database with an empty store, whose clock is moved by hand."""
    with postgres_server.store() as name:
        yield name


def _sqlite(request, clock):
    async def open_one(**options):
        path = request.getfixturevalue("tmp_path") / "test.db"
        return await SQLiteStore.open(path, durability="normal", clock=clock, **options)

    return open_one


def _postgres(request, clock):
    server = request.getfixturevalue("postgres_server")
    name = request.getfixturevalue("postgres_database")

    async def open_one(ticks=clock, **options):
        ticks.shown_by(lambda seconds: server.set_clock(name, seconds))
        return await PostgresStore.open(server.url(name), looks_apart=0.0, **options)

    return open_one


STORES = [pytest.param(_sqlite, id="sqlite"), pytest.param(_postgres, id="postgres", marks=pytest.mark.postgres)]


def pytest_generate_tests(metafunc):
    """What all stores keep to is tested with each of them, what one of them does besides with that one."""
    if "open_store" in metafunc.fixturenames:
        stores = STORES[:1] if metafunc.module.__name__.startswith("test_sqlite") else STORES
        metafunc.parametrize("open_store", stores, indirect=True)


@pytest.fixture
async def open_store(request, clock):
    """Opens the same store as often as it is called, as several processes would."""
    opener = request.param(request, clock)
    async with AsyncExitStack() as opened:

        async def open_one(**options):
            return await opened.enter_async_context(await opener(**options))

        yield open_one


@pytest.fixture
async def store(open_store):
    return await open_store()


@pytest.fixture
async def desk(store, clock, open_store):
    return await Desk(store, clock, open_store).sit()

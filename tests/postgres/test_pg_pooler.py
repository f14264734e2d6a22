"""What every store keeps to, through PgBouncer in transaction mode: there the beats alone tell the dead."""

from __future__ import annotations

import shutil
from contextlib import AsyncExitStack

import pgkit
import pytest
import test_store_contract as contract
from storekit import Clock, Desk

from rowcall.store.postgres import PostgresStore

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not shutil.which("pgbouncer", path=pgkit.PATH), reason="PgBouncer is not installed"),
]

globals().update({name: test for name, test in vars(contract).items() if name.startswith("test_")})


class PooledDesk(Desk):
    """Where a process died, the one that it was opened from has to hear nothing of it for a lease."""

    opened_from: Desk

    async def other(self):
        other = PooledDesk(await self._open_other(), self.clock, self._open_other, self.kind)
        other.opened_from = self
        return await other.sit()

    async def vanish(self):
        await super().vanish()
        for _ in range(13):
            await self.opened_from.store.beat(self.opened_from.session)


@pytest.fixture(scope="session")
def bouncer(postgres_server):
    with pgkit.Bouncer(postgres_server) as bouncer:
        yield bouncer


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def open_store(postgres_server, bouncer, clock):
    async with AsyncExitStack() as opened:
        with postgres_server.store() as name:
            clock.shown_by(lambda seconds: postgres_server.set_clock(name, seconds))

            async def open_one(**options):
                return await opened.enter_async_context(await PostgresStore.open(bouncer.url(name), **options))

            yield open_one
            await opened.aclose()


@pytest.fixture
async def store(open_store):
    return await open_store()


@pytest.fixture
async def desk(store, clock, open_store):
    return await PooledDesk(store, clock, open_store).sit()


async def test_it_is_known_to_be_a_pooler(desk):
    """No session has a lock."""
    assert desk.store._database.pooled
    assert desk.store._session_locks == {}

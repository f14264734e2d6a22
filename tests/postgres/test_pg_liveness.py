"""Who is alive: the locks of sessions, what a pooler makes of them, and transactions that others hold open."""

from __future__ import annotations

import asyncio
import contextlib

import psycopg
import pytest
from pgwire import Wire
from storekit import Desk

from rowcall.store.postgres import PostgresStore, claim_starts
from rowcall.store.postgres.locks import LockWatch
from rowcall.store.postgres.pool import Database

pytestmark = pytest.mark.postgres

LOCKS = "SELECT objid::int FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2"


@pytest.fixture
async def open_desk(database_url):
    """Opens a store in the same database and sits down at it."""
    async with contextlib.AsyncExitStack() as opened:

        async def make(url=database_url, **options):
            async def open_one():
                return await opened.enter_async_context(await PostgresStore.open(url, **options))

            return await Desk(await open_one(), None, open_one).sit()

        yield make


@pytest.fixture
def execute(postgres_server, database_url):
    """Does a statement in the database."""
    name = database_url.rpartition("/")[2]
    return lambda statement: postgres_server.execute(statement, name)


async def test_a_dead_process_is_seen(open_desk):
    """What a dead process held is put back after two looks at its lock, long before its lease is over."""
    desk, other = await open_desk(looks_apart=0.3), await open_desk()
    await other.bring("a")
    await other.one()
    await other.vanish()
    assert await desk.store.reap() == 1
    assert (await desk.one()).crashes == 1


async def test_a_killed_lock_is_taken_again(open_desk, postgres_server, database_url, execute):
    """A session whose connections are all ended has its lock again soon, and nobody takes it for dead."""
    desk, other = await open_desk(looks_apart=1.0), await open_desk()
    await other.bring("a")
    job = await other.one()
    postgres_server.kill_backends(database_url.rpartition("/")[2])
    assert await desk.store.reap() == 0
    assert sorted(number for (number,) in execute(LOCKS)) == sorted([desk.session, other.session])
    assert await other.done(job) == []


async def test_who_lost_its_own_lock_takes_nobody_for_dead(open_desk, postgres_server, database_url):
    """After a server was away for all, others may need longer to reach it again than whoever looks for them."""
    async with Wire(postgres_server.port) as slow_way:
        desk = await open_desk(looks_apart=0.1)
        other = await open_desk(database_url.replace(str(postgres_server.port), str(slow_way.port)))
        await other.bring("a")
        await other.one()
        slow_way.close()
        postgres_server.kill_backends(database_url.rpartition("/")[2])
        await asyncio.sleep(1.0)
        assert await desk.store.reap() == 0


CLAIM = "UPDATE rowcall.jobs SET status = 'running', session = %s WHERE id = 'a'"
WAITS_FOR_A_LOCK = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


async def test_a_claim_that_crosses_the_end_of_its_session(open_desk, database_url, execute):
    """What a claim takes while its session ends is put back with the rest: it is no orphan, and no crash."""
    desk = await open_desk()
    await desk.bring("a")
    async with await psycopg.AsyncConnection.connect(database_url) as claiming:
        await claiming.execute("SELECT FROM rowcall.sessions WHERE id = %s FOR NO KEY UPDATE", (desk.session,))
        await claiming.execute(CLAIM, (desk.session,))
        ending = asyncio.create_task(desk.store.end_session(desk.session))
        while execute(WAITS_FOR_A_LOCK) == []:  # noqa: ASYNC110  what a server does is no event of this loop
            await asyncio.sleep(0.01)
        await claiming.commit()
        await ending
    assert execute("SELECT status, crashes FROM rowcall.jobs") == [("pending", 0)]


def test_one_look_kills_nobody():
    """A lock is free at two looks, so far apart, with no beat in between, before its session is dead."""
    now = [0.0]
    watch = LockWatch(2.0, lambda: now[0])
    for seconds, unlocked, dead in [
        (0.0, {1: 5, 2: 5}, set()),
        (1.0, {1: 5, 2: 6}, set()),
        (2.0, {1: 5, 2: 6}, {1}),
        (2.5, {}, set()),
        (3.5, {1: 5, 2: 6}, set()),
        (5.5, {1: 5, 2: 6}, {1, 2}),
    ]:
        now[0] = seconds
        watch.note(unlocked)
        assert set(watch.dead) == dead
    assert watch.ripe_in == 0.0


@pytest.fixture
async def pooled_url(postgres_server, database_url):
    """The same database, behind what looks like a pooler."""
    async with Wire(postgres_server.port, as_pooler=True) as wire:
        yield database_url.replace(str(postgres_server.port), str(wire.port))


async def test_behind_a_pooler(open_desk, pooled_url, execute):
    """Where a connection is not a backend's own there is no lock: the beat alone speaks for a session."""
    desk, other = await open_desk(pooled_url), await open_desk(pooled_url)
    await other.bring("a")
    await other.one()
    assert execute(LOCKS) == []
    assert execute("SELECT bool_or(locked) FROM rowcall.sessions") == [(False,)]
    await other.vanish()
    assert await desk.store.reap() == 0
    for _ in range(13):
        await desk.store.beat(desk.session)
    assert await desk.store.reap() == 1
    assert (await desk.keys()) == ["a"]


SHOWN = """
    SELECT current_setting('statement_timeout'), current_setting('lock_timeout'), current_setting('TimeZone'),
        (SELECT count(*) FROM pg_prepared_statements)
"""


@pytest.mark.parametrize("pooled", [False, True])
async def test_every_transaction_has_its_limits(database_url, pooled_url, pooled):
    """A statement and a lock have an end, directly and behind a pooler; there no statement is prepared."""

    async def ask(connection):
        for _ in range(9):
            asked = await (await connection.execute(SHOWN)).fetchone()
        return (*asked[:3], bool(asked[3]))

    database = await Database.open(pooled_url if pooled else database_url)
    assert await database.run(ask) == ("30s", "5s", "UTC", not pooled)
    assert await database.read(ask) == ("30s", "5s", "UTC", not pooled)
    await database.close()


@pytest.fixture
def easily_slow(monkeypatch):
    """Every claim is slow, every open transaction old and worth a word."""
    for name in ("SLOW", "OLD", "VERY_OLD", "_EVERY"):
        monkeypatch.setattr(claim_starts, name, 0.0)


async def test_a_transaction_that_is_held_open(open_desk, database_url, easily_slow):
    """While somebody holds one open, claims look behind what they took; people are told of it, and no job is missed."""
    said = []
    desk = await open_desk(waits=said.append)
    await desk.bring(*"abcdefg")
    async with await psycopg.AsyncConnection.connect(database_url) as held:
        await held.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await held.execute("SELECT count(*) FROM rowcall.jobs")
        holder = held.info.backend_pid
        jobs = await desk.claim(2)
        assert [job.key for job in jobs] == ["a", "b"]
        assert desk.store._claim_starts.of(("k", desk.pass_)) == jobs[-1].row
        await desk.release(jobs[0])
        assert await desk.keys(2) == ["c", "d"]
        assert await desk.keys(9) == ["a", "e", "f", "g"]
        assert await desk.claim() == []
    (message,) = said
    assert f"process {holder} of the server has had a transaction open" in message


async def test_claims_look_from_the_start_otherwise(open_desk, easily_slow):
    """Where nobody holds a transaction open, what was put back comes first, however slow claims are."""
    desk = await open_desk()
    await desk.bring(*"abcd")
    jobs = await desk.claim(2)
    await desk.release(jobs[0])
    await asyncio.sleep(0)
    assert await desk.keys(2) == ["a", "c"]

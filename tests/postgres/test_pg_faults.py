"""What a store in PostgreSQL survives: lost replies, killed backends, a server that goes away, cancelled callers."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time

import pgkit
import pytest
from pgwire import Wire
from storekit import Desk, entry, failure

from rowcall.model.errors import Busy, NoStore, ReadOnly, SchemaMismatch, Unavailable
from rowcall.model.job import Status
from rowcall.model.outcome import Action, Settlement
from rowcall.store.postgres import PostgresReader, PostgresStore
from rowcall.store.types import Left

pytestmark = pytest.mark.postgres


@pytest.fixture
async def desk_of():
    """Makes a desk at a store of its own, in the database of a URL."""
    async with contextlib.AsyncExitStack() as opened:

        async def make(url, **options):
            async def open_one():
                return await opened.enter_async_context(await PostgresStore.open(url, **options))

            return await Desk(await open_one(), None, open_one).sit()

        yield make


@pytest.fixture
async def desk(desk_of, database_url):
    return await desk_of(database_url)


@pytest.fixture
async def lossy(postgres_server, database_url, desk_of):
    """A wire, and a desk behind it."""
    async with Wire(postgres_server.port) as wire:
        yield wire, await desk_of(database_url.replace(str(postgres_server.port), str(wire.port)))


@pytest.fixture(scope="module")
def rough_server():
    """A server that keeps what it confirmed, to be stopped and started."""
    if pgkit.binaries() is None:
        pytest.skip("no binaries of a PostgreSQL server")
    server = pgkit.Server(synchronous_commit="on").start()
    yield server
    server.throw_away()


# --- replies that are lost


async def test_a_claim_whose_reply_was_lost(lossy):
    """A claim that was written, and did not say so, gives what it took; nothing stays with nobody."""
    wire, desk = lossy
    await desk.bring(*"abc")
    wire.lose_replies_to_commits()
    assert await desk.keys(2) == ["a", "b"]
    assert wire.lost == 1
    assert await desk.keys() == ["c"]


async def test_a_claim_that_was_given_up(postgres_server, database_url, desk_of):
    """A claim that waited in vain, and was written all the same, leaves no job with nobody: a beat puts it back."""
    async with Wire(postgres_server.port) as wire:
        desk = await desk_of(database_url.replace(str(postgres_server.port), str(wire.port)), busy_wait=0.3)
        await desk.bring(*"abc")
        wire.lose_replies_to_commits(99)
        with pytest.raises(Busy, match="cannot be reached"):
            await desk.claim()
        await asyncio.gather(*desk.store._background)
        wire.lose_replies_to_commits(0)
        await desk.store.beat(desk.session)
        assert await desk.keys() == ["a", "b", "c"]


async def test_a_twins_answer_whose_reply_was_lost(lossy):
    """A claim that was answered by its twin is told as such: it is not called on top of that."""
    wire, desk = lossy
    await desk.bring(entry("a", "same"), entry("b", "same"), entry("c", "same"))
    a, b, c = await desk.claim()
    await desk.done(a)
    assert await desk.store.answer_claimed([b]) == [b]
    wire.lose_replies_to_commits()
    assert await desk.store.answer_claimed([c]) == [c]
    assert wire.lost == 1
    assert await desk.statuses() == dict.fromkeys("abc", "done")


async def test_a_settlement_whose_reply_was_lost(lossy):
    """A group that was written, and did not say so, is there once and is not late."""
    wire, desk = lossy
    await desk.bring(*"abc")
    a, b, c = await desk.claim()
    wire.lose_replies_to_commits()
    group = [(a, Action.FAIL, None, failure()), (b, Action.RETRY, 0.0, failure()), (c, Action.RETRY, 9.0, failure())]
    assert await desk.store.settle([Settlement(*each) for each in group]) == []
    counts = await desk.store.counts("k")
    assert (wire.lost, counts.attempts, counts.of(Status.FAILED)) == (1, 3, 1)


async def test_an_enqueueing_whose_reply_was_lost(lossy):
    """Records that were brought in, and nobody said so, are in once, and are no duplicates of themselves."""
    wire, desk = lossy
    wire.lose_replies_to_commits()
    assert (await desk.bring("a", "b")).total == 2
    assert (wire.lost, await desk.keys()) == (1, ["a", "b"])


async def test_a_run_whose_reply_was_lost(lossy):
    """A run that began, and did not say so, is one run; so is a session."""
    wire, desk = lossy
    wire.lose_replies_to_commits()
    run = await desk.store.begin_run(desk.session, "k", {})
    assert [each.id for each in await desk.store.runs("k")] == [desk.run.id, run.id]
    wire.lose_replies_to_commits()
    await desk.store.begin_session()
    assert wire.lost == 2


# --- a server that is away, and back


async def _work(desk, done):
    """Take jobs and settle them until there are none."""
    while (left := await desk.store.left("k", desk.pass_)) != Left(False, None):
        jobs = await desk.claim(10)
        for job in await desk.store.settle([]) or jobs:
            done[job.key] = done.get(job.key, 0) + 1
        await desk.done(*jobs)
        if not jobs:
            await desk.store.reap()
            await asyncio.sleep(min(0.1, left.due_in or 0.1))


async def _worked_through(desks, disturb, times):
    """Let desks work while they are disturbed; returns how often each job was called."""
    done = {}
    working = [asyncio.create_task(_work(desk, done)) for desk in desks]
    for _ in range(times):
        await asyncio.to_thread(disturb)
    await asyncio.gather(*working)
    return done


async def _all_is_well(desk, done, count, disturbed):
    """Nothing is lost, no answer is there twice, and little was called again."""
    counts = await desk.store.counts("k")
    assert (counts.by_status, counts.attempts) == ({Status.DONE: count}, count)
    assert len(done) == count
    assert sum(done.values()) - count <= disturbed * 20


@pytest.mark.parametrize("times", [2, pytest.param(50, marks=pytest.mark.soak)])
async def test_restarts_under_load(rough_server, desk_of, times):
    """A server that stops at once and starts again costs nothing but time: no job is lost, and no session dies."""
    with rough_server.database() as name:
        desks = [await desk_of(rough_server.url(name)) for _ in range(2)]
        await desks[0].bring(*(f"key{n}" for n in range(1500 * times)))
        done = await _worked_through(desks, lambda: _restart(rough_server), times)
        await _all_is_well(desks[0], done, 1500 * times, times)
        assert {row.crashes for row in await desks[0].store.page("k")} == {0}
        assert len(await desks[0].store.live_runs("k")) == 2


def _restart(server):
    time.sleep(random.uniform(0.1, 0.4))
    server.restart(away=random.uniform(0.0, 0.3))


@pytest.mark.parametrize("times", [20, pytest.param(200, marks=pytest.mark.soak)])
async def test_killed_backends_under_load(rough_server, desk_of, times):
    """Connections that the server ends at any moment, those that hold a session's lock too, cost nothing but time."""
    with rough_server.database() as name:
        desks = [await desk_of(rough_server.url(name)) for _ in range(2)]
        await desks[0].bring(*(f"key{n}" for n in range(100 * times)))
        done = await _worked_through(desks, lambda: _kill(rough_server, name), times)
        await _all_is_well(desks[0], done, 100 * times, times)
        assert {row.crashes for row in await desks[0].store.page("k")} == {0}


def _kill(server, name):
    time.sleep(random.uniform(0.02, 0.1))
    server.kill_backends(name)


async def test_a_server_that_stays_away(rough_server, desk_of):
    """A verb says that the database cannot be reached once it has waited as long as it may; then all goes on."""
    said = []
    with rough_server.database() as name:
        desk = await desk_of(rough_server.url(name), busy_wait=3.1, waits=said.append)
        await desk.bring("a")
        rough_server.stop()
        with pytest.raises(Busy, match="cannot be reached"):
            await desk.claim()
        assert said == [f"127.0.0.1:{rough_server.port}/{name}: the database cannot be reached"]
        rough_server.start()
        assert await desk.keys() == ["a"]


async def test_leaving_a_server_that_stands_still(lossy, monkeypatch):
    """A store closes though its server answers nothing any more, and leaves no task and no connection behind."""
    monkeypatch.setattr("rowcall.store.postgres.pool.CLOSING_PATIENCE", 0.2)
    wire, desk = lossy
    await desk.bring(*"abc")
    wire.freeze()
    claiming = asyncio.create_task(desk.claim())
    await asyncio.sleep(0.1)
    claiming.cancel()
    async with asyncio.timeout(4):
        await desk.store.close()
    assert claiming.cancelled()
    assert not desk.store._database._tries


async def test_one_word_for_an_outage(rough_server, desk_of):
    """However many verbs wait for a server, people are told once; and again when it is away again."""
    said = asyncio.Queue()
    with rough_server.database() as name:
        desk = await desk_of(rough_server.url(name), waits=said.put_nowait)
        for _ in range(2):
            rough_server.stop()
            waiting = [asyncio.create_task(desk.store.left("k", desk.pass_)) for _ in range(3)]
            await asyncio.wait_for(said.get(), 20)
            await asyncio.sleep(1.5)  # each waits for a second at most between two tries
            rough_server.start()
            await asyncio.gather(*waiting)
            assert said.empty()


async def test_a_lock_taken_again_is_a_sign_of_life(postgres_server, database_url, desk):
    """Who found a session's lock free before and after does not take it for dead: it has beaten in between."""
    name, beats = database_url.rpartition("/")[2], "SELECT beat FROM rowcall.sessions"
    ((before,),) = postgres_server.execute(beats, name)
    postgres_server.kill_backends(name)
    for _ in range(200):
        await asyncio.sleep(0.05)
        if postgres_server.execute(beats, name) == [(before + 1,)]:
            return
    raise AssertionError("it says nothing")


# --- callers that are cancelled


@pytest.mark.parametrize("rounds", [60, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_cancelled_at_any_moment(postgres_server, database_url, desk, desk_of, rounds):
    """Verbs cancelled at any moment leave no transaction open and no job with nobody."""
    await desk.bring(*(f"key{n}" for n in range(50)))
    loop = asyncio.get_running_loop()

    async def work():
        jobs = await desk.claim(5)
        await desk.store.settle([Settlement(job, Action.RETRY, 0.0, failure()) for job in jobs])
        await desk.store.beat(desk.session)
        await desk.store.left("k", desk.pass_)

    for number in range(rounds):
        task = asyncio.create_task(work())
        loop.call_later(0.0005 * (number % 60), task.cancel)
        await asyncio.wait([task])
    await desk.store.end_session(desk.session)
    await asyncio.gather(*desk.store._background)
    assert await desk.store.left("k", desk.pass_) == Left(False, 0.0)
    database = database_url.rpartition("/")[2]
    open_ = f"SELECT state FROM pg_stat_activity WHERE datname = '{database}' AND state LIKE 'idle in%'"
    assert postgres_server.execute(open_) == []


async def test_a_cancelled_claim_is_put_back(desk):
    """What a cancelled claim took is free again, untouched."""
    await desk.bring(*"abc")
    task = asyncio.create_task(desk.claim())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.gather(*desk.store._background)
    jobs = await desk.claim()
    assert [(job.key, job.fresh, job.attempts) for job in jobs] == [(key, True, 0) for key in "abc"]


# --- doors that stay shut


async def _refused(url, kind=Unavailable):
    with pytest.raises(kind) as caught:
        await PostgresStore.open(url, busy_wait=0.5)
    assert "secret" not in str(caught.value)
    return str(caught.value)


async def test_nobody_listens(postgres_server):
    """Who cannot be reached is named by host, port and database, with what to do about it, and without the password."""
    port = pgkit.free_port()
    said = await _refused(f"postgresql://me:secret@127.0.0.1:{port}/jobs")
    assert said.startswith(f"127.0.0.1:{port}/jobs: nothing listens there\n  Start the server")


async def test_no_such_database_or_user(postgres_server):
    """A database or a user that is not there is told from one another."""
    url = f"postgresql://postgres:secret@127.0.0.1:{postgres_server.port}"
    assert "there is no such database" in await _refused(f"{url}/nowhere")
    said = await _refused(f"{url.replace('postgres:', 'nobody:')}/postgres")
    assert "there is no such user\n  Correct the user in the address" in said


async def test_what_is_no_url(postgres_server):
    """An address that cannot be read is not repeated: it holds the password. A parameter that is none is named."""
    assert "there is no parameter 'bogus'" in await _refused("postgresql://me:secret@host/x?bogus=1")
    assert "[store] path" in await _refused("postgresql://me:secret@host:port:5432/x?nonsense=1")


async def test_a_wrong_password(postgres_server, database_url):
    """A password that the server refuses is said to be wrong, and not shown."""
    postgres_server.execute("DROP ROLE IF EXISTS locked_out")
    postgres_server.execute("CREATE ROLE locked_out LOGIN PASSWORD 'right'")
    with _asking_for_passwords(postgres_server, "locked_out"):
        url = database_url.replace("postgres@", "locked_out:secret@")
        assert "refuses the password" in await _refused(url)
        said = await _refused(url.replace(":secret", ""))
        assert "asks for a password" in said
        assert "PGPASSWORD" in said


@contextlib.contextmanager
def _asking_for_passwords(server, user):
    """Let the server ask one user for a password."""
    path = server.folder / "data" / "pg_hba.conf"
    before = path.read_text()
    path.write_text(f"host all {user} 127.0.0.1/32 scram-sha-256\n{before}")
    server.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        path.write_text(before)
        server.execute("SELECT pg_reload_conf()")


async def test_a_user_without_rights(postgres_server, database_url):
    """A user who may make no tables is told which right to ask for."""
    postgres_server.execute("DROP ROLE IF EXISTS guest")
    postgres_server.execute("CREATE ROLE guest LOGIN")
    assert "GRANT CREATE" in await _refused(database_url.replace("postgres@", "guest@"))


async def test_a_standby(postgres_server, database_url, desk_of):
    """A server that takes no writes is said to be one."""
    await desk_of(database_url)
    _refuse_writes(postgres_server, database_url)
    async with await PostgresStore.open(database_url) as store:
        with pytest.raises(ReadOnly, match="takes no writes"):
            await store.request("k", "another")


async def test_a_failover(postgres_server, database_url, desk_of):
    """A server that no longer takes writes is waited for, by new connections: another one may have its address."""
    desk = await desk_of(database_url, busy_wait=1.0)
    _refuse_writes(postgres_server, database_url)
    with pytest.raises(Busy, match="takes no writes"):
        await desk.store.request("k", "another")
    waiting = asyncio.create_task(desk.store.request("k", "another"))
    await asyncio.sleep(0.1)
    postgres_server.execute(f"ALTER DATABASE {database_url.rpartition('/')[2]} RESET default_transaction_read_only")
    assert await waiting


def _refuse_writes(server, url):
    """Let new connections to a database take no writes; those that there are, are ended."""
    name = url.rpartition("/")[2]
    server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    server.kill_backends(name)


async def test_a_newer_schema(postgres_server, database_url):
    """Tables of a newer rowcall, or of another program, are left as they are."""
    name = database_url.rpartition("/")[2]
    async with await PostgresStore.open(database_url):
        pass
    postgres_server.execute("UPDATE rowcall.schema_version SET version = 99", name)
    assert "pip install -U" in await _refused(database_url, SchemaMismatch)
    postgres_server.execute("DROP SCHEMA rowcall CASCADE", name)
    postgres_server.execute("CREATE SCHEMA rowcall CREATE TABLE jobs (n int)", name)
    assert "another program" in await _refused(database_url, SchemaMismatch)


async def test_reading_where_nobody_made_a_store(database_url):
    """A reader makes nothing: it says that there is no store yet."""
    with pytest.raises(NoStore, match="no store yet"):
        await PostgresReader.open(database_url)


async def test_many_make_a_store_at_once(database_url):
    """Stores that are opened at one moment in an empty database make its tables once."""
    stores = await asyncio.gather(*(PostgresStore.open(database_url) for _ in range(5)))
    assert await stores[0].kinds() == []
    await asyncio.gather(*(store.close() for store in stores))

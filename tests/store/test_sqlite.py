"""What only the store in a SQLite file has to show: the file, plain SQL by hand, plans, locks, cancellation."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import aiosqlite
import pytest
from storekit import entry, failure

from rowcall.model.errors import Busy, Corrupt, Full, NoStore, ReadOnly, SchemaMismatch, StoreError, Unavailable
from rowcall.model.job import Status
from rowcall.model.outcome import Action, Settlement
from rowcall.store.queries import retry_cancel
from rowcall.store.sqlite import SQLiteReader, SQLiteStore, file
from rowcall.store.sqlite.clock import due, seconds, stamp
from rowcall.store.sqlite.file import VERSION
from rowcall.store.sqlite.locks import HOST
from rowcall.store.types import Enqueued, Left, Selection


@pytest.fixture
def shell(path, store):
    """A person's own connection to the file, with nothing of rowcall in it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


# --- the file


@pytest.mark.parametrize("opener", [SQLiteStore.open, SQLiteReader.open])
async def test_not_a_database(path, opener):
    """A file that is no database is refused by name and left as it is."""
    path.write_text("id,text\n1,hello\n" * 500)
    before = path.read_bytes()
    with pytest.raises(Corrupt, match=f"{path}: it is not a database"):
        await opener(path)
    assert [each.read_bytes() for each in path.parent.iterdir()] == [before]


async def test_two_make_it_at_once(path, monkeypatch):
    """Who looks at a store while another process makes it does not take it for an old one, or another program's."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    with pytest.raises(NoStore):
        await SQLiteReader.open(path)

    class Interrupted(sqlite3.Connection):
        def execute(self, statement, *args):
            cursor = super().execute(statement, *args)
            if statement == "PRAGMA application_id" and not made:
                made.append(self)
                with closing(connect(path, "rw", 1000)) as other:
                    file.prepare(other, path, "full")
            return cursor

    made, connect = [], file.connect
    monkeypatch.setattr(file.sqlite3, "connect", partial(sqlite3.connect, factory=Interrupted))
    async with await SQLiteStore.open(path) as store:
        assert await store.kinds() == []
    assert made


@pytest.mark.parametrize("opener", [SQLiteStore.open, SQLiteReader.open])
async def test_another_programs_database(path, opener):
    """Another program's database is refused, and not a byte of it is changed."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE jobs (id)")
    before = path.read_bytes()
    with pytest.raises(SchemaMismatch, match="another program"):
        await opener(path)
    assert [each.read_bytes() for each in path.parent.iterdir()] == [before]


@pytest.mark.parametrize("opener", [SQLiteStore.open, SQLiteReader.open])
async def test_newer_schema(path, opener):
    """A file of a newer rowcall is refused, saying so, and is left as it is."""
    await (await SQLiteStore.open(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(SchemaMismatch, match="newer rowcall"):
        await opener(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("opener", [SQLiteStore.open, SQLiteReader.open])
@pytest.mark.parametrize("damage", ["cut", "flipped"])
async def test_damaged(path, opener, damage):
    """A truncated file, or one with flipped bits in its schema, is told to be damaged, and is left as it is."""
    async with await SQLiteStore.open(path) as store:
        await store.enqueue("k", [entry(f"key{n}") for n in range(3000)], pass_=1, request=1, batch="b")
    sound = path.read_bytes()
    damaged = sound[: len(sound) // 2] if damage == "cut" else sound[:100] + b"\xff" * 200 + sound[300:]
    path.write_bytes(damaged)
    with pytest.raises(Corrupt, match=str(path)):
        await opener(path)
    assert path.read_bytes() == damaged


async def test_damaged_inside(path):
    """Damage within the tables is found by a check, and met as a clear error."""
    async with await SQLiteStore.open(path) as store:
        await store.enqueue("k", [entry(f"key{n}") for n in range(3000)], pass_=1, request=1, batch="b")
    data = bytearray(path.read_bytes())
    for page in range(20, len(data) // 4096 - 1):
        data[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(data)
    async with await SQLiteReader.open(path) as reader:
        assert await reader.check()
        with pytest.raises(Corrupt):
            await reader.counts("k")


async def test_emptied(path):
    """A file cut to nothing beside a full WAL is not taken for a new store."""
    path.write_bytes(b"")
    path.with_name("test.db-wal").write_bytes(b"something")
    with pytest.raises(Corrupt, match="empty"):
        await SQLiteStore.open(path)


async def test_no_store_yet(path):
    """A reader says that there is no store yet, and makes none; an empty file is none."""
    for _ in range(2):
        with pytest.raises(Unavailable, match="no store yet"):
            await SQLiteReader.open(path)
        assert not path.exists() or path.stat().st_size == 0
        path.touch()
    await (await SQLiteStore.open(path)).close()
    await (await SQLiteReader.open(path)).close()


async def test_missing_folder(tmp_path):
    """A missing folder, and a folder where the file should be, are named."""
    with pytest.raises(Unavailable, match=r"there is no folder .*nowhere"):
        await SQLiteStore.open(tmp_path / "nowhere" / "a.db")
    with pytest.raises(Unavailable, match="not a file"):
        await SQLiteStore.open(tmp_path)


async def test_odd_paths(tmp_path):
    """A path may hold whatever a file system allows, and is no URI of its own."""
    path = tmp_path / "a b?mode=memory#%20ä'.db"
    await (await SQLiteStore.open(path)).close()
    async with await SQLiteReader.open(path) as reader:
        assert await reader.kinds() == []
    assert path.stat().st_size > 0


async def test_nothing_is_left_beside_the_file(path):
    """After a clean end only the database and the turn file are there."""
    async with await SQLiteStore.open(path) as store:
        session = await store.begin_session()
        await store.end_session(session)
    assert sorted(each.name for each in path.parent.iterdir()) == ["test.db", "test.db-turn"]


async def test_no_thread_is_left(path):
    """Opening that fails, and closing, end the connection's thread."""
    before = set(threading.enumerate())
    path.write_text("nonsense " * 100)
    for opener in (SQLiteStore.open, SQLiteReader.open):
        with pytest.raises(Corrupt):
            await opener(path)
    path.unlink()
    store = await SQLiteStore.open(path)
    await store.close()
    await store.close()
    with pytest.raises(Unavailable, match="closed"):
        await store.kinds()
    for thread in set(threading.enumerate()) - before:
        thread.join(2)
        assert not thread.is_alive()


async def test_no_thread_is_left_when_opening_waits_in_vain(store, path):
    """Opening that gives up on a busy file ends the connection's thread."""
    before = set(threading.enumerate())
    with store._write_lock.held(1), pytest.raises(Busy):
        await SQLiteStore.open(path, busy_wait=0.1)
    for thread in set(threading.enumerate()) - before:
        thread.join(2)
        assert not thread.is_alive()


async def _refusal(opener, path):
    try:
        await (await opener(path)).close()
    except StoreError as error:
        return f"{type(error).__name__} {error}"
    return "opened"


@pytest.mark.parametrize(
    ("opener", "there"), [(SQLiteStore.open, False), (SQLiteStore.open, True), (SQLiteReader.open, True)]
)
def test_read_only_folder(opener, there):
    """In a folder that this user cannot write the error says so, and nothing is written."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "test.db")
        if there:
            asyncio.run(_make(path))
            path.with_name("test.db-turn").unlink()
        Path(folder).chmod(0o555)
        said = _said_by_child(lambda: asyncio.run(_refusal(opener, path)))
        assert said.startswith(f"ReadOnly {path}: its folder cannot be written")
        assert len(list(Path(folder).iterdir())) == there
        Path(folder).chmod(0o755)


def _said_by_child(say):
    """What a forked child says that is not root, whom no folder stops."""
    with tempfile.TemporaryFile("w+") as paper:
        with _forking():
            child = os.fork()
        if not child:
            if os.getuid() == 0:
                os.setuid(65534)
            paper.write(say())
            paper.flush()
            os._exit(0)
        os.waitpid(child, 0)
        paper.seek(0)
        return paper.read()


@contextmanager
def _forking():
    """Python 3.12 warns of forking beside threads, which is just what is tried here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


async def _make(path):
    await (await SQLiteStore.open(path)).close()


async def test_disk_full(store, path, desk):
    """With no space left the verb says so, nothing stored is lost, and it goes on once there is space."""
    await desk.bring("a")
    pages = "PRAGMA max_page_count = {}"
    await store._thread.run(lambda connection: connection.execute(pages.format(60)).fetchall())
    with pytest.raises(Full, match="no space"):
        await desk.bring(*(f"key{n}" for n in range(3000)))
    assert set(await desk.statuses()) == {"a"}
    await store._thread.run(lambda connection: connection.execute(pages.format(2**30)).fetchall())
    assert await desk.bring(*(f"key{n}" for n in range(3000))) == Enqueued(new=3000)
    assert await store.check() == []


# --- plain SQL by hand


async def test_set_back_by_hand(desk, shell):
    """Rows set back to pending in plain SQL are claimed by the next run, whatever they were."""
    await desk.bring("done", "failed", "cancelled")
    done, failed, _ = await desk.claim()
    await desk.done(done, value="old")
    await desk.fail(failed)
    await desk.store.cancel("k", Selection(("cancelled",)))
    await desk.next_pass()
    shell.execute("UPDATE jobs SET status = 'pending', attempts = 0")
    rows = await desk.store.page("k")
    assert {(row.attempts, row.run_after, row.error, row.reason) for row in rows} == {(0, None, None, None)}
    assert await desk.answer("done") is None
    jobs = await desk.claim()
    assert [job.key for job in jobs] == ["done", "failed", "cancelled"]
    await desk.done(*jobs, value="new")
    assert await desk.answer("done") == "new"


async def test_set_back_by_hand_keeps_late_answers_out(desk, shell):
    """A late answer to the claim before does not take a row that a person set back."""
    await desk.bring("a")
    other = await desk.other()
    job = await other.one()
    await other.vanish()
    await desk.store.reap()
    await desk.store.cancel("k", Selection())
    shell.execute("UPDATE jobs SET status = 'pending'")
    assert len(await desk.done(job)) == 1
    assert (await desk.row("a")).status is Status.PENDING


async def test_changed_after_being_set_back(desk, shell):
    """The trigger for rows set back by hand leaves the store's own ways back to pending alone."""
    await desk.bring("edited", "retried")
    await desk.done(*await desk.claim())
    await desk.next_pass()
    await desk.bring(entry("edited", "new"))
    await desk.store.retry("k", Selection(("retried",)))
    passes = dict(shell.execute("SELECT id, pass FROM jobs").fetchall())
    assert passes == {"edited": desk.pass_, "retried": None}


async def test_superseded_by_hand(desk, shell):
    """An answer that a person marks superseded counts no more; the one before it does."""
    await desk.bring("a")
    await desk.done(await desk.one(), value="first")
    shell.execute("UPDATE jobs SET status = 'pending'")
    await desk.done(await desk.one(), value="second")
    assert await desk.answer("a") == "second"
    shell.execute("UPDATE results SET superseded = 1 WHERE id = (SELECT max(id) FROM results)")
    assert await desk.answer("a") == "first"


async def test_counting_and_listing_by_hand(desk, shell):
    """Counting by status, listing errors and reading the view of records need no join by hand."""
    await desk.bring("a", "b", "c")
    a, b, _ = await desk.claim()
    await desk.done(a, value={"label": 1})
    await desk.fail(b)
    counted = shell.execute("SELECT status, count(*) FROM jobs GROUP BY status ORDER BY 1").fetchall()
    assert counted == [("done", 1), ("failed", 1), ("running", 1)]
    assert shell.execute("SELECT id, error FROM jobs WHERE status = 'failed'").fetchall() == [("b", "it said http_500")]
    records = shell.execute("SELECT id, record ->> 'text', answer FROM records ORDER BY rowid").fetchall()
    assert records == [("a", "", '{"label":1}'), ("b", "", None), ("c", "", None)]


async def test_nonsense_by_hand(shell):
    """A status that does not exist is refused, whoever writes it."""
    with pytest.raises(sqlite3.IntegrityError):
        shell.execute(
            "INSERT INTO jobs (id, kind, batch, request, input_hash, status, created_at, updated_at)"
            " VALUES ('x', 'k', 'b', 1, 'h', 'finished', '', '')"
        )


async def test_running_set_by_hand(desk, shell):
    """A row set to running by hand is nobody's, and is put back."""
    await desk.bring("a")
    shell.execute("UPDATE jobs SET status = 'running'")
    assert await desk.store.reap() == 1
    assert await desk.keys() == ["a"]


# --- plans


async def test_plans(desk, store):
    """Claim, settle, left and reap never walk over all jobs, and sort no more than a claim's limit in each arm."""
    statements = []
    await desk.bring("a", "b", "c")
    await store._thread.run(lambda connection: connection.set_trace_callback(statements.append))
    a, b, c = await desk.claim()
    await desk.done(a)
    await desk.retry(b)
    await desk.release(c)
    await desk.claim(only=[1, 2, 3])
    await store.left("k", 1)
    await store.reap()
    await store.beat(desk.session)
    await store.end_session(desk.session)
    await store._thread.run(lambda connection: connection.set_trace_callback(None))
    wanted = [text for text in statements if re.match(r"\s*(SELECT|UPDATE)", text) and "jobs" in text]
    assert len(wanted) > 12
    for statement in wanted:
        plan = await store._thread.run(_plan, statement)
        assert _walks(plan) == [], (statement, plan)
        assert len([step for step in plan if "TEMP B-TREE" in step]) <= 1, (statement, plan)


def _walks(plan):
    """The steps of a plan that read all jobs, or all of a kind; those that run are few."""
    return [step for step in plan if re.search(r"SCAN jobs(?!.* jobs_running)|SEARCH jobs .*\(kind=\?\)", step)]


async def test_plan_of_a_claim(desk, store):
    """Each arm of a claim is read from the index in its order; only what the arms gave is sorted."""
    statements = []
    await desk.bring("a")
    await store._thread.run(lambda connection: connection.set_trace_callback(statements.append))
    await desk.claim()
    await store._thread.run(lambda connection: connection.set_trace_callback(None))
    (claim,) = {text for text in statements if text.lstrip().startswith("UPDATE jobs SET status = 'running'")}
    plan = await store._thread.run(_plan, claim)
    arms = [step for step in plan if "jobs_pending" in step]
    assert [step.split("(kind=? AND ")[1] for step in arms] == [
        "pass=? AND run_after<?)",
        "pass=? AND run_after<?)",
        "pass=? AND run_after=?)",
        "pass=? AND run_after=?)",
    ], plan
    assert Counter("TEMP B-TREE" in step for step in plan)[True] == 1


async def test_plans_of_what_people_name(desk, store):
    """Selecting, retrying and cancelling by key or reason read no more than the rows they name."""
    statements = []
    await desk.bring("a")
    await store._thread.run(lambda connection: connection.set_trace_callback(statements.append))
    await store.select("k", Selection(("a",)))
    await store.retry("k", Selection(("a",)))
    await store.cancel("k", Selection(("a",)))
    await store._thread.run(lambda connection: connection.set_trace_callback(None))
    wanted = [text for text in statements if re.match(r"\s*(SELECT|UPDATE|INSERT|WITH)", text) and "jobs" in text]
    assert len(wanted) > 6
    await store._thread.run(lambda connection: connection.execute(retry_cancel.CHOSEN))  # each verb drops its own
    for statement in wanted:
        plan = await store._thread.run(_plan, statement)
        assert _walks(plan) == [], (statement, plan)


def _plan(connection, statement):
    return [detail for *_, detail in connection.execute("EXPLAIN QUERY PLAN " + statement)]


# --- locks


def _impatient(store):
    """Let a store give up after a moment."""
    store._retrying = store._retrying.copy(stop=lambda retry_state: retry_state.seconds_since_start > 0.4)
    return store


HOLDER = """
import sys, time
from pathlib import Path
from rowcall.store.sqlite.locks import WriteLock
with WriteLock(Path(sys.argv[1])).held(1):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def _turn_held_elsewhere(path):
    """Another process that has the turn until its input ends."""
    command = [sys.executable, "-c", HOLDER, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        yield process


async def test_a_held_turn_names_the_holder(store, open_store, path):
    """Who waits in vain for another process is told which one has the file; afterwards all goes on."""
    impatient = _impatient(await open_store())
    with _turn_held_elsewhere(path) as holder:
        with pytest.raises(Busy, match=f"held by process {holder.pid} on "):
            await impatient.begin_session()
        assert await store.kinds() == []
        waiting = asyncio.create_task(store.begin_session())
        holder.stdin.close()
        assert await waiting == 1


async def test_a_long_wait_is_told_of_once(open_store, path, monkeypatch):
    """Who waits for longer than a moment hears once who has the file, and goes on waiting."""
    monkeypatch.setattr("rowcall.store.sqlite.store._SILENT_FOR", 0.3)
    said = []
    store = await open_store(waits=said.append)
    with _turn_held_elsewhere(path) as holder:
        waiting = asyncio.create_task(store.begin_session())
        await asyncio.wait([waiting], timeout=1.5)
        assert not waiting.done()
        assert said == [f"{path}-turn: the store is held by process {holder.pid} on {HOST}"]
        holder.stdin.close()
        await waiting


async def test_a_shell_with_a_write_lock_is_waited_for(desk, shell):
    """While a person's shell holds the write lock, verbs wait and readers read; then all goes on."""
    await desk.bring("a")
    shell.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(desk.keys())
    await asyncio.wait([waiting], timeout=0.6)
    assert not waiting.done()
    async with await SQLiteReader.open(desk.store.path) as reader:
        assert (await reader.counts("k")).total == 1
    shell.execute("COMMIT")
    assert await waiting == ["a"]


async def test_a_shell_that_never_ends(desk, shell):
    """After the longest wait the error says that another program has the file, and what to do."""
    shell.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy, match=r"another program has it locked\n  Let it finish"):
        await _impatient(desk.store).begin_session()


async def test_a_deleted_turn_file(path, open_store):
    """A turn file that somebody deletes is made anew, and the turn is still one for all."""
    one, two = await open_store(), await open_store()
    path.with_name("test.db-turn").unlink()
    await one.begin_session()
    with one._write_lock.held(1), pytest.raises(Busy):
        await _impatient(two).begin_session()


async def test_a_deleted_session_file(desk, path):
    """A living process whose lock file somebody deleted is not taken for dead at once."""
    await desk.bring("a")
    other = await desk.other()
    job = await other.one()
    path.with_name(f"test.db-session-{other.session}").unlink()
    assert await desk.store.reap() == 0
    assert await other.done(job) == []


async def test_a_leftover_session_file(path):
    """A leftover of an older database, even one that is locked, keeps no new session from its lock."""
    leftover = path.with_name("test.db-session-1")
    leftover.write_text("")
    async with await SQLiteStore.open(path) as store:
        assert await store.begin_session() == 1
        async with await SQLiteStore.open(path) as other:
            assert await other.reap() == 0


async def test_a_forked_child_keeps_no_lock(desk):
    """A child forked by a user's handler does not keep its dead parent's session alive."""
    await desk.bring("a")
    other = await desk.other()
    await other.one()
    with _forked():
        await other.vanish()
        assert await desk.store.reap() == 1


@contextmanager
def _forked():
    """A child of this process, without an exec, for as long as it takes."""
    read, write = os.pipe()
    there, begun = os.pipe()
    with _forking():
        child = os.fork()
    if not child:
        os.write(begun, b"x")
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    os.read(there, 1)
    try:
        yield
    finally:
        os.close(write)
        os.waitpid(child, 0)
        for end in (read, there, begun):
            os.close(end)


# --- one hop


def test_the_private_name_is_there():
    """The private names of aiosqlite that the store uses are there: ``_execute`` for one hop, ``_conn``."""
    assert list(inspect.signature(aiosqlite.Connection._execute).parameters) == ["self", "fn", "args", "kwargs"]
    assert isinstance(aiosqlite.Connection._conn, property)


async def test_a_cancelled_caller_does_not_stop_the_function(store):
    """A function that is on the connection's thread runs to its end, cancelled caller or not; the next comes after."""
    begun, go_on, ended = threading.Event(), threading.Event(), []

    def slow(connection):
        begun.set()
        go_on.wait(2)
        ended.append("slow")

    task = asyncio.create_task(store._thread.run(slow))
    await asyncio.to_thread(begun.wait, 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await store._thread.run(lambda connection: ended.append("next"))
    assert ended == ["slow", "next"]


async def test_a_failing_verb_leaves_no_transaction(store):
    """An exception within a transaction rolls it back and gives the turn away."""

    def fail(connection, now):
        connection.execute("INSERT INTO requests (kind, hash, used) VALUES ('k', 'h', 1)")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store._write(fail)
    assert not await store._thread.run(lambda connection: connection.in_transaction)
    assert await store.kinds() == []


async def test_a_verb_has_the_write_lock_from_its_start(store, path):
    """Nobody can write between what a verb reads and what it writes."""

    def look(connection, now):
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")

    with pytest.raises(Busy):
        await _impatient(store)._write(look)


@pytest.mark.parametrize("rounds", [60, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_cancelled_anywhere(desk, open_store, rounds):
    """Verbs cancelled at any moment leave no transaction open, no turn held, and no job with nobody."""
    await desk.bring(*(f"key{n}" for n in range(50)))
    other = await open_store()
    loop = asyncio.get_running_loop()

    async def work():
        jobs = await desk.claim(5)
        await desk.store.settle([Settlement(job, Action.RETRY, 0.0, failure()) for job in jobs])
        await desk.store.beat(desk.session)
        await desk.store.left("k", desk.pass_)

    for number in range(rounds):
        task = asyncio.create_task(work())
        loop.call_later(0.00005 * (number % 60), task.cancel)
        await asyncio.wait([task])
        assert not await desk.store._thread.run(lambda connection: connection.in_transaction)
        begun = time.monotonic()
        await other.request("other", "h")
        assert time.monotonic() - begun < 1
    # a settle that was cancelled may have been written or not: what is still running is what it had
    await desk.store.end_session(desk.session)
    assert await desk.store.left("k", desk.pass_) == Left(False, 0.0)


async def test_a_cancelled_claim_puts_back(desk):
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
    assert {job.epoch for job in jobs} == {2}


# --- readers


async def test_a_reader_cannot_write(store, path):
    """Nothing can be written through a reader."""
    async with await SQLiteReader.open(path) as reader:
        with pytest.raises(ReadOnly):
            await reader._read(lambda connection: connection.execute("DELETE FROM jobs"))


async def test_reading_beside_writing(desk, path):
    """A reader in a loop sees whole groups while they are written, and neither waits for the other."""
    await desk.bring(*(f"key{n}" for n in range(600)))
    async with await SQLiteReader.open(path) as reader:
        writing = asyncio.create_task(_work_off(desk))
        while not writing.done():
            counts = await reader.counts("k")
            assert counts.total == 600
            assert counts.of(Status.DONE) % 20 == 0
            assert counts.attempts == counts.of(Status.DONE)
        await writing
        assert (await reader.counts("k")).of(Status.DONE) == 600


async def _work_off(desk):
    while jobs := await desk.claim(20):
        await desk.done(*jobs)


async def test_the_wal_is_written_back(desk, path):
    """The WAL stays near four megabytes while nobody reads."""
    for batch in range(12):
        await desk.bring(*(entry(f"{batch}-{n}", "x" * 800) for n in range(1000)))
    assert path.stat().st_size > 12_000_000
    assert path.with_name("test.db-wal").stat().st_size < 12_000_000


async def test_a_wal_that_a_reader_held_up(desk, path, shell, monkeypatch):
    """A WAL that grew while a reader stood in the way is cut once it is gone."""
    monkeypatch.setattr("rowcall.store.sqlite.store._LARGE_WAL", 2**20)
    monkeypatch.setattr(desk.store, "_next_shrink", 0)
    monkeypatch.setattr("rowcall.store.sqlite.store._SHRINK_EVERY", 0)
    await desk.bring("first")
    shell.execute("BEGIN")
    shell.execute("SELECT * FROM jobs").fetchall()
    for batch in range(3):
        await desk.bring(*(entry(f"{batch}-{n}", "x" * 800) for n in range(1000)))
    wal = path.with_name("test.db-wal")
    assert wal.stat().st_size > 2**20
    shell.execute("COMMIT")
    await desk.bring("last")
    assert wal.stat().st_size < 2**20


# --- times as text


def test_times():
    """Texts of times have one width and the order of the times; a wait's end is never rounded down."""
    assert stamp(1_700_000_000.1239) == "2023-11-14T22:13:20.123Z"
    assert due(1_700_000_000.1231) == "2023-11-14T22:13:20.124Z"
    assert due(1_700_000_000.1) == stamp(1_700_000_000.1) == "2023-11-14T22:13:20.100Z"
    assert due(1e15) == "9999-12-31T23:59:59.999Z"
    assert seconds(stamp(1_700_000_000.125)) == 1_700_000_000.125


async def test_an_unknown_error_is_still_a_store_error(store):
    """Whatever else SQLite says comes as a store error that names the file."""
    with pytest.raises(StoreError, match=r"test\.db: no such table"):
        await store._read(lambda connection: connection.execute("SELECT * FROM nowhere"))

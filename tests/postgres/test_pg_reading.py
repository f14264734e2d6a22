"""What people ask of a database, and what of it is PostgreSQL's own."""

from __future__ import annotations

import asyncio

import pytest
from storekit import Clock, Desk, entry, success

from rowcall.model.outcome import Action
from rowcall.store.postgres import PostgresReader, PostgresStore
from rowcall.store.sqlite import SQLiteReader
from rowcall.store.types import ImportedAnswer, ImportResult, Selection

pytestmark = pytest.mark.postgres

LANG = Selection(where=(("lang", "de"),))


@pytest.fixture
async def desk(database_url):
    async with await PostgresStore.open(database_url) as store:
        yield await Desk(store, Clock(), lambda: PostgresStore.open(database_url)).sit()


async def test_what_is_no_json_is_told_and_not_selected(desk, postgres_server, database_url):
    """A payload that somebody broke is found by ``flaws``, holds no cell, and is no error."""
    await desk.bring(*(entry(key, payload='{"lang":"de"}') for key in "abc"))
    await desk.done(*await desk.claim(2))
    name = database_url.rpartition("/")[2]
    postgres_server.execute("UPDATE rowcall.payloads SET record = 'none' WHERE job = 1", name)
    postgres_server.execute("UPDATE rowcall.results SET value = 'none' WHERE job = 2", name)
    postgres_server.execute("UPDATE rowcall.results SET superseded = true WHERE job = 1", name)
    assert (await desk.store.select("k", LANG)).sample == ("b", "c")
    assert {(flaw.what, flaw.count, flaw.sample_key) for flaw in await desk.store.flaws("k")} == {
        ("done without an answer", 1, "a"),
        ("an answer that is not valid JSON", 1, "b"),
        ("a payload that is not valid JSON", 1, "a"),
    }


async def test_parallel_workers_of_the_server(desk, database_url):
    """Where the server shares a walk out among processes, it gives the same."""
    await desk.bring(*(entry(key, payload='{"lang":"de"}') for key in "abc"))
    async with await PostgresReader.open(f"{database_url}?options=-c%20force_parallel_mode%3Don") as reader:
        assert (await reader.select("k", LANG)).count == 3
        assert (await reader.counts("k")).total == 3
        assert await reader.flaws("k") == []


@pytest.mark.parametrize("key", ["a\0b", "a\ud800b"])
async def test_keys_that_no_store_has(desk, key):
    """Whoever asks for a key that cannot be kept is told that there is none of it."""
    await desk.bring("a")
    assert await desk.store.job("k", key) is None
    assert list(await desk.store.answers("k", [key, "a"])) == ["a"]
    assert list(await desk.store.last_calls("k", [key, "a"])) == ["a"]
    assert await desk.store.import_answers("k", [ImportedAnswer(key, Action.DONE, success())]) == [ImportResult.UNKNOWN]


async def test_an_invalid_index_is_told(desk, postgres_server, database_url):
    """What a broken REINDEX left behind is said, with what to do."""
    broken = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'rowcall.jobs_reason'::regclass"
    postgres_server.execute(broken, database_url.rpartition("/")[2])
    assert await desk.store.check() == ["the index rowcall.jobs_reason is invalid: REINDEX it"]


async def test_indexes_of_twins_are_made_once(desk, database_url):
    """Whoever looks for twins first makes them; several at once are not in each other's way."""
    await desk.bring("a")
    job = await desk.one()
    await desk.done(job)
    async with await PostgresStore.open(database_url) as other:
        stores = [desk.store, other] * 4
        assert await asyncio.gather(*(store.answer_pending([job]) for store in stores)) == [0] * 8


async def test_a_backup_beside_a_working_store(desk, tmp_path):
    """It shows one moment: each done job with its answer, and nothing running, while claims and settlements go on."""
    await desk.bring(*(f"k{n}" for n in range(2000)))
    ended = asyncio.Event()

    async def work():
        while not ended.is_set():
            await desk.done(*await desk.claim(10))

    working = asyncio.create_task(work())
    await desk.store.backup(tmp_path / "copy.db")
    ended.set()
    await working
    async with await SQLiteReader.open(tmp_path / "copy.db") as copy:
        counts = await copy.counts("k")
        assert counts.total == 2000
        assert set(counts.by_status) <= {"done", "pending"}
        assert counts.by_status.get("done", 0) == counts.attempts
        assert await copy.flaws("k") == []
        assert await copy.check() == []

"""``--where COLUMN=VALUE``: a selection by what the records hold."""

from __future__ import annotations

import json

import pytest
from project import some_rows

from rowcall.errors import StoreError
from rowcall.job import Status
from rowcall.store.facts import Entry, Selection
from rowcall.store.sqlite import SQLiteStore

RECORDS = {
    "a": {"lang": "de", "n": 1, "ok": True, "deep": {"x": 1}, 'it\'s "q".x': "y"},
    "b": {"lang": "de", "n": 1.50, "ok": False, "deep": None},
    "c": {"lang": "en", "n": 1, "ok": None},
    "d": {"lang": "de'; DROP TABLE jobs; --", "n": "1"},
}


@pytest.fixture
async def store(tmp_path):
    async with await SQLiteStore.open(tmp_path / "s.db", durability="normal") as store:
        session = await store.begin_session()
        run = await store.begin_run(session, "k", {})
        entries = [Entry(key, "h", json.dumps(record), f"in:{key}") for key, record in RECORDS.items()]
        await store.enqueue("k", entries, pass_=run.pass_, request=await store.request("k", "r"), batch="b")
        yield store


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ([("lang", "de")], "ab"),
        ([("lang", "de"), ("n", "1")], "a"),
        ([("n", "1")], "acd"),
        ([("n", "1.5")], "b"),
        ([("ok", "true")], "a"),
        ([("ok", "false")], "b"),
        ([("ok", "")], "c"),
        ([('it\'s "q".x', "y")], "a"),
        ([("lang", "de'; DROP TABLE jobs; --")], "d"),
        ([("lang", "d%")], ""),
        ([("x", "1")], ""),
        ([], "abcd"),
    ],
)
async def test_exactly_these_records(store, where, keys):
    """A cell is compared as its text, whole; several must all hold; names and values are never SQL."""
    selected = await store.select("k", Selection(where=tuple(where)))
    assert selected.sample == tuple(keys)


async def test_with_words_and_statuses(store):
    """It narrows what else was selected, in what is changed as in what is shown."""
    selection = Selection(("a", "c"), (Status.PENDING,), "b", (("lang", "de"),))
    assert (await store.select("k", selection)).sample == ("a",)
    assert await store.cancel("k", selection) == 1
    assert (await store.counts("k")).of(Status.CANCELLED) == 1
    assert await store.retry("k", Selection(where=(("lang", "de"),))) == 2


async def test_a_nul_is_refused(store):
    """SQLite would cut a text there."""
    with pytest.raises(StoreError):
        await store.select("k", Selection(where=(("lang", "de\0x"),)))


async def test_the_verbs_take_it(project):
    """``cancel --where`` and ``retry --where`` change exactly what they show; an unknown column is named, exit 2."""
    rows = [[key, text, "de" if number % 2 else "en"] for number, (key, text, _) in enumerate(some_rows(6))]
    project.write(rows)
    await project.run("run", "-n", "2")
    ran = await project.run("cancel", "--where", "note=de", "--dry-run")
    assert "selected: 2 pending (k3, k5)" in ran.err
    assert (await project.run("cancel", "--where", "note=de")).code == 0
    assert project.statuses() == {"done": 2, "pending": 2, "cancelled": 2}
    ran = await project.run("retry", "--where", "note=de", "--where", "id=k5")
    assert "selected: 1 cancelled (k5)" in ran.err
    ran = await project.run("retry", "--where", "lang=de")
    assert ran.code == 2
    assert "there is no column 'lang'" in ran.err
    assert "id, text, note" in ran.err
    assert (await project.run("cancel", "--where", "note")).code == 2

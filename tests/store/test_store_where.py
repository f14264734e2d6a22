"""Selections by what the records hold; run against every store."""

from __future__ import annotations

import json

import pytest
from storekit import entry

from rowcall.model.errors import StoreError
from rowcall.model.job import Status
from rowcall.store.types import Selection

RECORDS = {
    "a": {"lang": "de", "n": 1, "ok": True, "deep": {"x": 1}, 'it\'s "q".x': "y", "t": 'a\\u0000"é\n'},
    "b": {"lang": "de", "n": 1.50, "ok": False, "deep": None, "t": "\0"},
    "c": {"lang": "en", "n": 1, "ok": None},
    "d": {"lang": "de'; DROP TABLE jobs; --", "n": "1"},
}


@pytest.fixture
async def store(desk):
    await desk.bring(*(entry(key, payload=json.dumps(record)) for key, record in RECORDS.items()))
    return desk.store


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
        ([("deep", "")], "b"),
        ([("t", 'a\\u0000"é\n')], "a"),
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
    selection = Selection(("a", "c"), (Status.PENDING,), "b1", (("lang", "de"),))
    assert (await store.select("k", selection)).sample == ("a",)
    assert await store.cancel("k", selection) == 1
    assert (await store.counts("k")).of(Status.CANCELLED) == 1
    assert await store.retry("k", Selection(where=(("lang", "de"),))) == 2


async def test_a_nul_is_refused(store):
    """A store would cut a text there, or keep none."""
    with pytest.raises(StoreError):
        await store.select("k", Selection(where=(("lang", "de\0x"),)))


async def test_a_pruned_record_has_no_cells(store, desk):
    """Where the payload is gone, nothing is known of it."""
    await desk.done(await desk.one())
    await store.end_session(desk.session)
    await store.prune("k", "2099-01-01T00:00:00.000Z")
    assert (await store.select("k", Selection(where=(("lang", "de"),)))).sample == ("b",)

"""A store that an older rowcall wrote."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib.resources import files

import pytest

from rowcall.model.errors import SchemaMismatch
from rowcall.store.sqlite import SQLiteReader, SQLiteStore
from rowcall.store.sqlite.file import APPLICATION_ID, VERSION


@pytest.fixture
def old(path):
    """A store of the first schema, with a job."""
    script = files("rowcall.store").joinpath("schema.sql").read_text()
    job = """INSERT INTO jobs (id, kind, batch, request, input_hash, created_at, updated_at)
        VALUES ('a', 'k', 'b', 1, 'h', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z')"""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"{script}; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1; {job};")
    return path


async def test_an_older_store_is_brought_up_to_date(old):
    """Opening it to write adds what it lacks, and keeps what it has."""
    async with await SQLiteStore.open(old) as store:
        await store.set("k", {"pause": "true"}, keep=True)
        await store.penalize("t", 5.0)
        assert (await store.orders("k", "t")).settings == {"pause": "true"}
        assert [row.key for row in await store.page("k")] == ["a"]
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)


async def test_an_older_store_is_not_read(old):
    """Who only reads leaves it alone and says what brings it up to date."""
    with pytest.raises(SchemaMismatch, match="older"):
        await SQLiteReader.open(old)

"""``rowcall migrate`` between two files; into a database: tests/postgres."""

from __future__ import annotations

import json

import pytest

from rowcall.model.errors import StoreError
from rowcall.store.migration import move
from rowcall.store.sqlite.migration_ends import SQLiteMigrationSource, SQLiteMigrationTarget


async def test_a_store_moves(finished):
    """It says what was moved and how to go on; the new store is sound, and nothing in it is called again."""
    ran = await finished.run("migrate", "--from", "t.db", "--to", "new.db")
    assert ran.code == 0, ran.err
    assert "10 records (10 done), 10 answers, 0 tries; the same counts as t.db" in ran.err
    assert '[store] path = "new.db"' in ran.err
    calls = len(finished.api.calls)
    finished.replace("[retry]", '[store]\npath = "new.db"\n[retry]')
    assert (await finished.run("run")).code == 0
    assert len(finished.api.calls) == calls
    assert (await finished.run("verify")).code == 0


async def test_json(finished):
    """What was moved, for programs."""
    ran = await finished.run("migrate", "--from", "t.db", "--to", "new.db", "--json")
    told = json.loads(ran.out)
    assert {name: told[name] for name in ("from", "to", "records", "by_status", "answers", "tries")} == {
        "from": "t.db",
        "to": "new.db",
        "records": 10,
        "by_status": {"done": 10},
        "answers": 10,
        "tries": 0,
    }


async def test_refusals(finished):
    """The same place twice, no store at the one end, a store at the other: exit 2 with what to do, nothing changed."""
    assert "name the same store" in (await finished.run("migrate", "--from", "t.db", "--to", "./t.db")).err
    assert "there is no store yet" in (await finished.run("migrate", "--from", "no.db", "--to", "new.db")).err
    assert not (finished.folder / "new.db").exists()
    await finished.run("backup", "copy.db")
    ran = await finished.run("migrate", "--from", "t.db", "--to", "copy.db")
    assert ran.code == 2
    assert "copy.db: holds a store already" in ran.err
    assert "Name a place without a store" in ran.err
    assert finished.statuses() == {"done": 10}


async def test_an_unfinished_store_is_none(finished):
    """A verb on it ends with the command that finishes it; that command does."""

    class Breaking(SQLiteMigrationTarget):
        async def finish(self, stop_reason):
            raise StoreError("broken off")

    new = finished.folder / "new.db"
    async with await SQLiteMigrationSource.open(finished.folder / "t.db") as source, await Breaking.open(new) as sink:
        with pytest.raises(StoreError, match="broken off"):
            await move(source, sink)
    for verb in (["status"], ["retry", "k1", "--done", "--yes"]):
        ran = await finished.run(*verb, "--store", "new.db")
        assert ran.code == 2
        assert f"rowcall migrate --from {finished.folder}/t.db --to new.db" in ran.err
    assert (await finished.run("migrate", "--from", "t.db", "--to", "new.db")).code == 0
    assert (await finished.run("status", "--store", "new.db")).code == 0

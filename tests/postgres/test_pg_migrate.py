"""A batch job that grows out of its file: half done there, finished in a database, and taken back."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from functools import partial

import psycopg
import pytest
from pgwire import Wire
from project import some_rows
from storekit import Clock, Desk

from rowcall.store.migration import MigrationMark, move
from rowcall.store.postgres import PostgresReader
from rowcall.store.postgres.migration_ends import PostgresMigrationTarget
from rowcall.store.sqlite import SQLiteReader, SQLiteStore
from rowcall.store.sqlite.migration_ends import SQLiteMigrationSource

pytestmark = pytest.mark.postgres

RECORDS = 10_000
WORKERS = 4


def use(project, place):
    """Let the config name another store."""
    config = (project.folder / "config.toml").read_text().partition("[store]")[0]
    project.config(f'{config}[store]\npath = "{place}"\n')


async def ended(project, *args):
    ran = await project.run(*args)
    assert ran.code == 0, ran.err
    return ran


def calls(project):
    """How often each record was called for."""
    return Counter(call.text for call in project.api.calls)


async def test_half_in_a_file_half_in_a_database_and_back(project, database_url):
    """Four workers finish in a database what a file has half of; taken back it is sound, and nothing was paid twice."""
    project.write(some_rows(RECORDS), concurrency=32)
    await ended(project, "run", "--limit", str(RECORDS // 2))
    assert project.statuses() == {"done": RECORDS // 2, "pending": RECORDS // 2}
    told = json.loads((await ended(project, "migrate", "--from", "t.db", "--to", database_url, "--json")).out)
    assert (told["records"], told["answers"]) == (RECORDS, RECORDS // 2)
    assert told["by_status"] == {"done": RECORDS // 2, "pending": RECORDS // 2}

    use(project, database_url)
    workers = [await project.start("work", "--no-progress") for _ in range(WORKERS)]
    ends = await asyncio.gather(*map(project.end, workers))
    assert [ran.code for ran in ends] == [0] * WORKERS, ends
    shares = [int(re.search(r"this run: ([\d,]+) done", ran.err)[1].replace(",", "")) for ran in ends]
    assert sum(shares) == RECORDS // 2
    assert min(shares) > RECORDS // 2 // WORKERS // 2
    assert set(calls(project).values()) == {1}
    await ended(project, "run")
    await ended(project, "verify")
    assert len(project.api.calls) == RECORDS

    await ended(project, "migrate", "--from", database_url, "--to", "back.db")
    use(project, "back.db")
    await ended(project, "run")
    await ended(project, "verify")
    assert len(project.api.calls) == RECORDS
    async with await SQLiteReader.open(project.folder / "back.db") as back:
        counts = await back.counts("t")
    assert (counts.by_status, counts.attempts) == ({"done": RECORDS}, RECORDS)
    assert len(project.exported()) == RECORDS


async def filled(folder, many):
    """A store in a file with many records, half of them done."""
    async with await SQLiteStore.open(folder / "t.db", durability="normal") as store:
        desk = await Desk(store, Clock(), SQLiteStore.open, kind="t").sit()
        for start in range(0, many, 3000):
            await desk.bring(*(f"k{n}" for n in range(start, start + 3000)))
        while left := many // 2 - (await store.counts("t")).by_status.get("done", 0):
            await desk.done(*await desk.claim(min(left, 5000)))
        await store.end_run(desk.run, "done", {})
        await store.end_session(desk.session)


async def test_lost_replies(project, database_url, postgres_server):
    """A database that has written, but whose reply was lost, is asked again, and takes nothing twice."""
    await filled(project.folder, 3000)
    async with Wire(postgres_server.port) as wire:

        class Losing(PostgresMigrationTarget):
            async def put(self, page):
                wire.lose_replies_to_commits()
                await super().put(page)

            async def finish(self, stop_reason):
                wire.lose_replies_to_commits()
                await super().finish(stop_reason)

        url = database_url.replace(str(postgres_server.port), str(wire.port))
        async with await SQLiteMigrationSource.open(project.folder / "t.db") as source, await Losing.open(url) as sink:
            moved = await move(source, sink)
        assert wire.lost > 10
    assert (moved.jobs, moved.others["results"]) == (3000, 1500)
    async with await PostgresReader.open(database_url) as reader:
        assert (await reader.counts("t")).by_status == {"done": 1500, "pending": 1500}


MANY = 30_000


def mark_in_file(path):
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT mark FROM moving").fetchone()


def mark_in_database(url):
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT mark FROM rowcall.moving").fetchone()


async def interrupted(project, process):
    """Ctrl+C."""
    process.send_signal(signal.SIGINT)
    ran = await project.end(process)
    assert (ran.code, ran.err) == (130, "Interrupted. Resume with the same command.\n\n")


async def killed_in_the_middle(project, stop, read_mark, *args):
    """End a migration once it has moved a third of its rows or more; returns how far it was."""
    process = await project.start("migrate", *args)
    while True:
        try:
            mark = MigrationMark.of(read_mark()[0])
        except (sqlite3.Error, psycopg.Error, TypeError):  # not begun yet
            mark = MigrationMark()
        if mark.rows > MANY:
            await stop(process)
            return MigrationMark.of(read_mark()[0])
        assert process.returncode is None, (await process.communicate())[1]
        await asyncio.sleep(0.01)


async def test_a_killed_migration_goes_on(project, database_url):
    """Killed or interrupted, no verb works on its target; the same command moves the rest, and all is there."""
    await filled(project.folder, MANY)
    project.write([])
    back = project.folder / "back.db"
    for source, target, stop, read_mark in (
        ("t.db", database_url, project.kill, lambda: mark_in_database(database_url)),
        (database_url, "back.db", partial(interrupted, project), lambda: mark_in_file(back)),
    ):
        way = ("--from", source, "--to", target)
        mark = await killed_in_the_middle(project, stop, read_mark, *way)
        assert mark.rows < 3 * MANY
        use(project, target)
        for verb in ("run", "status"):
            refused = await project.run(verb)
            assert refused.code == 2
            assert "is not finished" in refused.err
            assert "rowcall migrate --from" in refused.err
        told = json.loads((await ended(project, "migrate", *way, "--json")).out)
        assert (told["records"], told["answers"], told["payloads"]) == (MANY, MANY // 2, MANY)
    async with await SQLiteReader.open(back) as reader, await SQLiteReader.open(project.folder / "t.db") as old:
        assert await reader.counts("t") == await old.counts("t")
        assert await reader.page("t", after=MANY - 100) == await old.page("t", after=MANY - 100)

"""Moving a store into another: contract of both ends, from every kind of store into every kind."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import replace

import pytest
from storekit import USAGE, Clock, Desk, entry, failure

from rowcall.model.errors import SchemaMismatch, StoreError
from rowcall.model.job import Status
from rowcall.store.call_history import Span
from rowcall.store.migration import PAGE, TABLES, MigrationMark, MigrationOrigin, MigrationPage, move
from rowcall.store.postgres import PostgresReader, PostgresStore
from rowcall.store.postgres.migration_ends import PostgresMigrationSource, PostgresMigrationTarget
from rowcall.store.sqlite import SQLiteReader, SQLiteStore
from rowcall.store.sqlite.migration_ends import SQLiteMigrationSource, SQLiteMigrationTarget
from rowcall.store.types import Selection


class Files:
    """Stores in files."""

    def __init__(self, folder):
        self._folder = folder

    def place(self, name):
        return self._folder / f"{name}.db"

    async def store(self, name):
        return await SQLiteStore.open(self.place(name), durability="normal")

    async def reader(self, name):
        return await SQLiteReader.open(self.place(name))

    async def source(self, name):
        return await SQLiteMigrationSource.open(self.place(name))

    async def sink(self, name):
        return await SQLiteMigrationTarget.open(self.place(name))

    own_tables = ("sqlite_sequence",)
    own_columns = frozenset()

    async def columns(self, name):
        with closing(sqlite3.connect(self.place(name))) as connection:
            tables = [table for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})")} for table in tables}


class Databases:
    """Stores in databases of one server."""

    def __init__(self, server, made):
        self._server = server
        self._made = made
        self._names = {}

    def place(self, name):
        if name not in self._names:
            self._names[name] = self._made.enter_context(self._server.database())
        return self._server.url(self._names[name])

    async def store(self, name):
        return await PostgresStore.open(self.place(name), durability="normal")

    async def reader(self, name):
        return await PostgresReader.open(self.place(name))

    async def source(self, name):
        return await PostgresMigrationSource.open(self.place(name))

    async def sink(self, name):
        return await PostgresMigrationTarget.open(self.place(name))

    own_tables = ("schema_version", "moving", "records")
    own_columns = frozenset({"take"})

    async def columns(self, name):
        found = {}
        self.place(name)
        query = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'rowcall'"
        for table, column in self._server.execute(query, self._names[name]):
            found.setdefault(table, set()).add(column)
        found["totals"].remove("session")
        return found


def _files(request, made):
    return Files(request.getfixturevalue("tmp_path"))


def _databases(request, made):
    return Databases(request.getfixturevalue("postgres_server"), made)


ENDS = [
    pytest.param((_files, _files), id="file-to-file"),
    pytest.param((_files, _databases), id="file-to-database", marks=pytest.mark.postgres),
    pytest.param((_databases, _files), id="database-to-file", marks=pytest.mark.postgres),
    pytest.param((_databases, _databases), id="database-to-database", marks=pytest.mark.postgres),
]


class Ends:
    """Where stores are moved from, and where to."""

    def __init__(self, sources, targets):
        self.sources, self.targets = sources, targets

    @asynccontextmanager
    async def desk(self, name="old"):
        """A desk at the source; it is left when the block ends."""
        async with await self.sources.store(name) as store:
            desk = await Desk(store, Clock(), lambda: self.sources.store(name)).sit()
            yield desk
            await store.end_run(desk.run, "done", {})
            await store.end_session(desk.session)

    async def move(self, source="old", target="new"):
        async with await self.sources.source(source) as read, await self.targets.sink(target) as filled:
            return await move(read, filled)


@pytest.fixture(params=ENDS)
def ends(request):
    with ExitStack() as made:
        sources, targets = (end(request, made) for end in request.param)
        yield Ends(sources, targets)


async def fill(desk):
    """One job of every fate: its answers, its tries, what was handed out, what was set."""
    await desk.bring(
        "done", "failed", "waits", "rolled", "cancelled", "never", entry("twin", "same"), entry("given", "same")
    )
    done, failed, waits, rolled, _, _, twin, given = await desk.claim()
    await desk.done(done, value={"é": [1, None, 1.5]}, usage=USAGE)
    await desk.fail(failed, outcome=failure(status=500, body="oh", latency=0.123))
    await desk.retry(waits, wait=3600)
    await desk.done(rolled, twin)
    await desk.store.retry("k", Selection(("rolled",)))
    await desk.store.cancel("k", Selection(("cancelled",)))
    await desk.release(given)
    await desk.store.answer_pending([twin])
    await desk.store.hand_out("k", ["never"])
    await desk.store.set("k", {"pace.concurrency": "3"}, keep=True)
    await desk.store.publish("k", {"name": "k"})


async def all_of(open_source):
    """Every plain row of a store, by table."""
    async with open_source as source:
        return {table.name: await source.page(table, None) for table in TABLES}


async def test_all_moves_as_it_is(ends):
    """Every row of every table is the same in the new store, and the old one has not changed."""
    async with ends.desk() as desk:
        await fill(desk)
    before = await all_of(await ends.sources.source("old"))
    moved = await ends.move()
    assert await all_of(await ends.targets.source("new")) == before
    assert await all_of(await ends.sources.source("old")) == before
    assert (moved.jobs, moved.others["results"], moved.others["tries"]) == (8, 4, 2)
    assert all(before.values())


async def told(reader):
    """All that a store says about a kind."""
    rows = await reader.page("k")
    keys = [row.key for row in rows]
    span = Span("2000-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z", 3600.0)
    history = await reader.history("k", span, 0.0)
    return {
        "rows": rows,
        "kinds": await reader.kinds(),
        "counts": await reader.counts("k"),
        "spent": await reader.spent("k"),
        "errors": await reader.errors("k"),
        "payloads": [await reader.payload(row.row) for row in rows],
        "donors": [await reader.donor(row.row) for row in rows],
        "tries": [await reader.tries(row.row) for row in rows],
        "answers": await reader.answers("k", keys),
        "last calls": await reader.last_calls("k", keys),
        "strays": await reader.strays("k", 2),
        "runs": await reader.runs("k"),
        "recipe": await reader.recipe("k"),
        "history": replace(history, quiet=[(stretch.since, stretch.until) for stretch in history.quiet]),
        "standing": await reader.request_standing("k", "ask"),
        "selected": [await reader.select("k", selection) for selection in SELECTIONS],
        "batches": await reader.batches("k"),
        "batch": await reader.batch_answers("k", "b1"),
        "prunable": await reader.prunable("k", span.until),
        "left behind": await reader.left_behind("k", 2),
        "flaws": await reader.flaws("k"),
    }


SELECTIONS = [
    Selection(),
    Selection(("http_500", "done", "nonsense")),
    Selection(statuses=(Status.DONE, Status.PENDING), batch="b1"),
    Selection(where=(("text", "same"),)),
]


async def test_both_stores_say_the_same(ends):
    """Whatever people ask of a store, it answers as the one that it was moved from."""
    async with ends.desk() as desk:
        await fill(desk)
    await ends.move()
    async with await ends.sources.reader("old") as old, await ends.targets.reader("new") as new:
        assert await told(new) == await told(old)


async def test_what_was_running_is_pending(ends):
    """A claim of a process that died is as if it had never been made, and its run has ended."""
    async with await ends.sources.store("old") as store:
        desk = await Desk(store, Clock(), ends.sources.store).sit()
        await desk.bring("a", "b")
        await desk.retry(await desk.one())
        await desk.claim()
    moved = await ends.move()
    assert moved.by_status == {("k", "pending"): 2}
    async with await ends.targets.store("new") as store:
        assert {(row.key, row.status, row.attempts) for row in await store.page("k")} == {
            ("a", "pending", 1),
            ("b", "pending", 0),
        }
        assert [(run.alive, run.stop_reason) for run in await store.runs("k")] == [(False, "crashed")]


async def test_the_new_store_goes_on(ends):
    """What is done is not called again; new rows, results, runs and sessions get numbers that nobody had."""
    async with ends.desk() as desk:
        await fill(desk)
        session, run = desk.session, desk.run
    await ends.move()
    async with await ends.targets.store("new") as store:
        desk = await Desk(store, Clock(), ends.targets.store).sit()
        assert desk.session > session
        assert (desk.run.id, desk.pass_) == (run.id + 1, run.pass_ + 1)
        assert (await desk.bring("done", "never", "new")).done == 1
        jobs = await desk.claim()
        assert [job.key for job in jobs] == ["rolled", "never", "new"]
        assert await desk.done(*jobs) == []
        assert await desk.answer("done") == {"é": [1, None, 1.5]}
        await store.end_session(desk.session)


class Breaking:
    """A target that breaks before a page, and counts those that it took."""

    def __init__(self, sink, after):
        self._sink, self.left, self.taken = sink, after, []

    def __getattr__(self, name):
        return getattr(self._sink, name)

    async def put(self, page):
        if not self.left:
            raise StoreError("broken off")
        self.left -= 1
        self.taken.append((page.table.name, len(page.rows)))
        await self._sink.put(page)


async def begin(ends, source="old", after=4):
    """A move that breaks off after so many pages; returns those."""
    async with await ends.sources.source(source) as read, await ends.targets.sink("new") as filled:
        breaking = Breaking(filled, after)
        with pytest.raises(StoreError, match="broken off"):
            await move(read, breaking)
    return breaking.taken


async def many(ends, name="old"):
    async with ends.desk(name) as desk:
        await desk.bring(*(f"k{n}" for n in range(2 * PAGE + 10)))
        await desk.done(*await desk.claim(10))


async def test_a_broken_move_goes_on(ends):
    """The same move takes no page twice, and in the end all is there; until then it is no store."""
    await many(ends)
    first = await begin(ends)
    assert first == [("requests", 1), ("runs", 1), ("jobs", PAGE), ("jobs", PAGE)]
    for opened in (ends.targets.store, ends.targets.reader):
        with pytest.raises(SchemaMismatch, match="is not finished"):
            await opened("new")
    async with await ends.sources.source("old") as read, await ends.targets.sink("new") as filled:
        second = Breaking(filled, 100)
        await move(read, second)
    assert second.taken[0] == ("jobs", 10)
    assert sum(rows for table, rows in first + second.taken if table == "jobs") == 2 * PAGE + 10
    async with await ends.targets.reader("new") as reader:
        assert (await reader.counts("k")).by_status == {"done": 10, "pending": 2 * PAGE}


async def test_a_source_that_changed_is_moved_anew(ends):
    """Pages of what was true before do not stay."""
    await many(ends)
    await begin(ends)
    async with ends.desk() as desk:
        await desk.bring("k0", "new")
        await desk.done(*await desk.claim())
    assert (await ends.move()).jobs == 2 * PAGE + 11
    async with await ends.targets.reader("new") as reader:
        assert (await reader.counts("k")).by_status == {"done": 11, "pending": 2 * PAGE}


async def test_a_source_that_changes_meanwhile(ends):
    """Nobody takes for whole what was read of two states."""
    await many(ends)

    async def change(page):
        await put(page)
        if page.table.name == "payloads":
            async with ends.desk() as desk:
                await desk.done(*await desk.claim(1))

    async with await ends.sources.source("old") as read, await ends.targets.sink("new") as filled:
        put, filled.put = filled.put, change
        with pytest.raises(StoreError, match="has changed meanwhile"):
            await move(read, filled)
    with pytest.raises(SchemaMismatch, match="is not finished"):
        await ends.targets.reader("new")


async def test_a_target_that_holds_something_else(ends):
    """A store is not overwritten, nor another move's target; both stay as they are."""
    await many(ends, "other")
    async with ends.desk() as desk:
        await desk.bring("a")
    await begin(ends, "other")
    with pytest.raises(StoreError, match="holds an unfinished migration of another store"):
        await ends.move()
    await ends.move("other")
    with pytest.raises(StoreError, match="holds a store already"):
        await ends.move()
    async with await ends.targets.reader("new") as reader:
        assert (await reader.counts("k")).total == 2 * PAGE + 10


async def test_a_living_run_is_not_left_behind(ends):
    """While somebody works on the source nothing is moved."""
    async with ends.desk() as desk:
        await desk.bring("a")
        with pytest.raises(StoreError, match="a run is live"):
            await ends.move()
    assert (await ends.move()).jobs == 1


async def test_a_page_is_taken_once(ends):
    """A page whose commit was not heard of is in once; one that does not follow the last is refused."""
    async with await ends.targets.sink("new") as sink:
        start = await sink.begin(MigrationOrigin("here", "as it is"))
        page = MigrationPage(TABLES[0], [(1, "k", "hash", None, 1)], start, MigrationMark(1, None, 1))
        await sink.put(page)
        await sink.put(page)
        assert (await sink.contents()).others["requests"] == 1
        with pytest.raises(StoreError, match="somebody else migrates into it"):
            await sink.put(MigrationPage(TABLES[0], [], start, MigrationMark(2, None, 1)))


async def test_two_moves_at_once(ends):
    """Of two moves into one place one makes it a store, and the other changes nothing of that."""
    async with ends.desk() as desk:
        await desk.bring("a", "b")
    async with (
        await ends.sources.source("old") as read,
        await ends.targets.sink("new") as first,
        await ends.targets.sink("new") as second,
    ):
        with pytest.raises(StoreError, match="broken off"):
            await move(read, Breaking(second, 3))
        await move(read, first)
        async with await ends.targets.store("new") as store:
            desk = await Desk(store, Clock(), ends.targets.store).sit()
            await desk.bring("a", "b")
            jobs = await desk.claim()
            for late in (
                second.finish("crashed"),
                second.put(MigrationPage(TABLES[0], [], MigrationMark(3), MigrationMark(4))),
            ):
                with pytest.raises(StoreError, match="somebody else migrates into it"):
                    await late
            assert [row.status for row in await store.page("k")] == ["running", "running"]
            assert await desk.done(*jobs) == []
            await store.end_session(desk.session)


async def test_every_column_moves(ends):
    """A table or a column that is added to a store moves too; only sessions and limits stay."""
    async with await ends.sources.store("old"):
        columns = await ends.sources.columns("old")
    apart = {"sessions", "limits", *ends.sources.own_tables}
    moving = {table.name: set(table.columns) for table in TABLES}
    assert {name: found - ends.sources.own_columns for name, found in columns.items() if name not in apart} == moving

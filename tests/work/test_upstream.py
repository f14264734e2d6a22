"""Whether more records will come, as a worker that reads none knows it."""

from __future__ import annotations

from rowcall.engine.input_watch import InputWatch
from rowcall.store.sqlite import SQLiteReader, SQLiteStore
from rowcall.store.types import Role


async def test_one_look_ends_no_worker(tmp_path):
    """Whoever brought records in a moment ago may be there again: after a server was away it is seen a little later."""
    path = tmp_path / "t.db"
    async with await SQLiteStore.open(path) as store, await SQLiteReader.open(path) as reader:
        upstream = InputWatch(reader, "k", wait=False)
        run = await store.begin_run(await store.begin_session(), "k", {}, role=Role.ENQUEUE)
        seen = []
        for ends in (False, True, False):
            if ends:
                await store.end_run(run, "enqueued", {})
            await upstream._look()
            seen.append(upstream.over())
        assert seen == [False, False, True]


async def test_nobody_there_is_known_at_once(tmp_path):
    """A worker that never saw anybody bring records in waits for nobody."""
    path = tmp_path / "t.db"
    async with await SQLiteStore.open(path), await SQLiteReader.open(path) as reader:
        upstream = InputWatch(reader, "k", wait=False)
        await upstream._look()
        assert upstream.over()

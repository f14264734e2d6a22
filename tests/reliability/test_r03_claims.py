"""R3: several processes claim from one store."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from rowcall.model.job import Status
from rowcall.model.store_location import StoreLocation
from rowcall.store.open_at import open_store
from rowcall.store.types import Entry

CLAIMING = Path(__file__).with_name("claiming.py")


@contextlib.asynccontextmanager
async def claiming(place, limit, durability="normal", seconds=0.0):
    command = (sys.executable, CLAIMING, place, str(limit), durability, str(seconds))
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*command, **pipes)
    try:
        assert await process.stdout.readline() == b"begun\n"
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def fill(store, session, jobs):
    run = await store.begin_run(session, "k", {})
    request = await store.request("k", "r")
    for start in range(0, jobs, 1000):
        entries = [Entry(f"{n}", "h", "{}", f"in:{n}") for n in range(start, min(start + 1000, jobs))]
        await store.enqueue("k", entries, pass_=run.pass_, request=request, batch="b")
    return run


@pytest.mark.parametrize(
    ("processes", "jobs"),
    [
        (4, 20_000),
        pytest.param(8, 100_000, marks=pytest.mark.slow),
        pytest.param(8, 1_000_000, marks=pytest.mark.soak),
    ],
)
async def test_no_claim_twice_and_none_missing(place, processes, jobs):
    """Processes that race for the jobs of one store claim each exactly once, and none is left."""
    opening = open_store(StoreLocation.of(place), durability="normal")
    async with await opening as store, contextlib.AsyncExitStack() as stack:
        session = await store.begin_session()
        await fill(store, session, jobs)
        claimers = [await stack.enter_async_context(claiming(place, 200)) for _ in range(processes)]
        started = time.monotonic()
        said = await asyncio.gather(*(claimer.communicate(b"go\n") for claimer in claimers))
        print(f"{jobs} claims by {processes} processes: {jobs / (time.monotonic() - started):,.0f}/s")
        claims = [line for out, _ in said for line in out.split(b"\n")[:-1]]
        assert [claimer.returncode for claimer in claimers] == [0] * processes
        assert Counter(claims) == Counter(b"%d 1" % (row + 1) for row in range(jobs))
        assert sum(bool(out) for out, _ in said) > 1, "nobody raced"
        assert (await store.counts("k")).by_status == {Status.DONE: jobs}

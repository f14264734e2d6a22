"""Several processes at one database: real ones, racing, killed and stopped."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from storekit import Desk

from rowcall.job import Status
from rowcall.pace.buckets import Bucket
from rowcall.store.facts import Selection
from rowcall.store.postgres import PostgresStore

pytestmark = pytest.mark.postgres

WORKER = """
import asyncio, sys
from rowcall.outcome import Action, Settlement, Success
from rowcall.store.postgres import PostgresStore

async def main(url, told):
    async with await PostgresStore.open(url, lease=4, busy_wait=120) as store:
        session = await store.begin_session()
        run = await store.begin_run(session, "k", {})
        print("begun", flush=True)
        sys.stdin.readline()
        while True:
            jobs = await store.claim(session, "k", run.pass_, 16)
            if not jobs and (await store.left("k", run.pass_)).nothing:
                break
            for job in jobs:
                print(job.key, job.epoch, flush=True)
            if told == "told":
                await asyncio.to_thread(sys.stdin.readline)
            late = await store.settle([Settlement(job, Action.DONE, None, Success(job.key)) for job in jobs])
            for settlement in late:
                print("late", settlement.job.key, flush=True)
        await store.end_run(run, "done", {})
        await store.end_session(session)

asyncio.run(main(*sys.argv[1:]))
"""


@asynccontextmanager
async def _worker(url, told="alone", go=True):
    """A process that works a store off and says what it claims; ``told`` it settles a claim with each line it gets."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WORKER, url, told, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert await process.stdout.readline() == b"begun\n"
        if go:
            process.stdin.write(b"go\n")
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _ended(process):
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode().splitlines()


async def _reaped(store):
    """How many jobs are put back once some are."""
    while True:
        if count := await store.reap():
            return count
        await asyncio.sleep(0.05)


@pytest.fixture
async def quiet(database_url):
    """A desk whose pass the workers join."""

    async def open_one():
        return await PostgresStore.open(database_url, looks_apart=0.5)

    async with await open_one() as store:
        yield await Desk(store, None, open_one).sit()


@pytest.mark.parametrize(("workers", "jobs"), [(2, 1_000), pytest.param(8, 200_000, marks=pytest.mark.soak)])
async def test_no_job_is_claimed_twice(quiet, database_url, workers, jobs):
    """Processes that race for the same jobs claim each exactly once, none is left out, and none goes short."""
    keys = [f"key{n}" for n in range(jobs)]
    await quiet.bring(*keys)
    async with AsyncExitStack() as started:
        processes = [await started.enter_async_context(_worker(database_url, go=False)) for _ in range(workers)]
        for process in processes:
            process.stdin.write(b"go\n")
        said = await asyncio.gather(*map(_ended, processes))
    assert Counter(line for lines in said for line in lines) == Counter(f"{key} 1" for key in keys)
    counts = await quiet.store.counts("k")
    assert (counts.of(Status.DONE), counts.attempts) == (jobs, jobs)
    print("shares:", sorted(len(lines) for lines in said))


async def test_a_place_is_given_once(quiet, database_url):
    """Workers that ask for the same place at the same moment do not both get it."""
    hourly = Bucket("requests", 1, 3600.0)
    async with await PostgresStore.open(database_url) as other:
        for target in range(10):
            asked = [
                store.reserve(f"https://api{target}", [hourly], [(1.0,)], (0.0,)) for store in (quiet.store, other) * 4
            ]
            reserved = await asyncio.gather(*asked)
            assert sum(len(each.leaves) for each in reserved) == 1


async def test_a_process_that_is_killed(quiet, database_url):
    """A process that is killed is seen dead by its lock, long before its lease; its jobs go to the next."""
    await quiet.bring(*(f"key{n}" for n in range(40)))
    async with _worker(database_url, "told") as process:
        for _ in range(16):
            await process.stdout.readline()
        assert await quiet.store.reap() == 0
        process.kill()
        await process.wait()
        assert await _reaped(quiet.store) == 16
    assert len(await quiet.claim()) == 40


async def test_a_process_that_is_stopped(quiet, database_url):
    """A process stopped past its lease loses its jobs; when it goes on, what it settles is late, and it works on."""
    await quiet.bring("a")
    async with _worker(database_url, "told") as process:
        assert await process.stdout.readline() == b"a 1\n"
        process.send_signal(signal.SIGSTOP)
        for _ in range(13):
            await quiet.store.beat(quiet.session)
        assert await quiet.store.reap() == 1
        job = await quiet.one()
        await quiet.done(job, value="ours")
        await quiet.bring("b")
        process.send_signal(signal.SIGCONT)
        process.stdin.write(b"settle a\nsettle b\n")
        assert await _ended(process) == ["late a", "b 1"]
    assert await quiet.answer("a") == "ours"
    assert await quiet.store.reap() == 0


@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.soak)])
async def test_processes_that_are_killed_again_and_again(quiet, database_url, kills):
    """However often processes are killed at any moment, every job is done once and nothing stored is lost."""
    await quiet.bring(*(f"key{n}" for n in range(50 * kills)))
    for kill in range(kills):
        async with _worker(database_url) as process:
            for _ in range(5 * (kill % 8)):
                await process.stdout.readline()
            process.kill()
        await quiet.store.reap()
        await quiet.store.retry("k", Selection(("poison",)))
    async with _worker(database_url) as process:
        ended = asyncio.create_task(_ended(process))
        while not ended.done():
            await quiet.store.reap()
            await asyncio.sleep(0.1)
        await ended
    assert (await quiet.store.counts("k")).by_status == {Status.DONE: 50 * kills}
    keys = [f"key{n}" for n in range(min(1000, 50 * kills))]
    assert all(answer.value == key for key, answer in (await quiet.store.answers("k", keys)).items())

"""Several processes at one file: real ones, killed, stopped and racing."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from storekit import Desk

from rowcall.model.job import Status
from rowcall.store.types import Selection

WORKER = """
import asyncio, sys
from pathlib import Path
from rowcall.model.outcome import Action, Settlement, Success
from rowcall.store.sqlite import SQLiteStore

async def main(path, told):
    async with await SQLiteStore.open(Path(path), durability="normal", lease=4) as store:
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
async def _worker(path, told="alone", go=True):
    """A process that works a store off and says what it claims; ``told`` it settles a claim with each line it gets."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WORKER, path, told, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
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


@pytest.fixture
async def quiet(open_store, clock):
    """A desk whose pass the workers join."""
    return await Desk(await open_store(), clock, open_store).sit()


@pytest.mark.parametrize(
    ("workers", "jobs"),
    [(2, 2_000), pytest.param(8, 20_000, marks=pytest.mark.slow), pytest.param(8, 1_000_000, marks=pytest.mark.soak)],
)
async def test_no_job_twice(quiet, path, workers, jobs):
    """Processes that race for the same jobs claim each exactly once, and none is left out."""
    keys = [f"key{n}" for n in range(jobs)]
    await quiet.bring(*keys)
    async with AsyncExitStack() as started:
        processes = [await started.enter_async_context(_worker(path, go=False)) for _ in range(workers)]
        for process in processes:
            process.stdin.write(b"go\n")
        said = await asyncio.gather(*map(_ended, processes))
    claimed = Counter(line for lines in said for line in lines)
    assert claimed == Counter(f"{key} 1" for key in keys)
    counts = await quiet.store.counts("k")
    assert (counts.of(Status.DONE), counts.attempts) == (jobs, jobs)


async def test_a_killed_process(quiet, path):
    """A process that is killed is seen dead at once; its jobs go to the next, and the file is sound."""
    await quiet.bring(*(f"key{n}" for n in range(40)))
    async with _worker(path, "told") as process:
        for _ in range(16):
            await process.stdout.readline()
        assert await quiet.store.reap() == 0
        process.kill()
        await process.wait()
        assert await quiet.store.reap() == 16
    assert len(await quiet.claim()) == 40
    assert await quiet.store.check() == []
    assert [each.name for each in path.parent.glob("*-session-*")] == ["test.db-session-1"]


async def test_a_stopped_process(quiet, path):
    """A process stopped past its lease loses its jobs; when it goes on, what it settles is late, and it works on."""
    await quiet.bring("a")
    async with _worker(path, "told") as process:
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


async def test_killed_again_and_again(quiet, path):
    """However often processes are killed at any moment, every job is done once and nothing stored is lost."""
    await quiet.bring(*(f"key{n}" for n in range(400)))
    for kill in range(8):
        async with _worker(path) as process:
            for _ in range(5 * kill):
                await process.stdout.readline()
            process.kill()
        await quiet.store.reap()
        await quiet.store.retry("k", Selection(("poison",)))
    async with _worker(path) as process:
        await _ended(process)
    assert (await quiet.store.counts("k")).by_status == {Status.DONE: 400}
    assert await quiet.store.check() == []
    answers = await quiet.store.answers("k", [f"key{n}" for n in range(400)])
    assert all(answer.value == key for key, answer in answers.items())

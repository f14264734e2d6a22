"""Many processes claim from one database: how even, how fast, and beside a transaction that is held open."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter

import psycopg
import pytest
from test_r03_claims import claiming, fill

from rowcall.model.outcome import Action, Settlement, Success
from rowcall.store.postgres import PostgresStore

pytestmark = pytest.mark.postgres

PROCESSES = 8
GROUP = 50
A_SECOND = 1500
"""Jobs a second that are claimed beside a transaction held open."""


@pytest.fixture
def place(lasting_server):
    with lasting_server.database() as name:
        yield lasting_server.url(name)


@pytest.mark.parametrize("jobs", [20_000, pytest.param(200_000, marks=pytest.mark.soak)])
async def test_as_fast_as_they_can(place, jobs):
    """Eight processes claim each job once, and wait for the disk with each group."""
    await claimed_by_all(place, jobs, 0.0)


@pytest.mark.parametrize(("jobs", "evenness"), [(12_000, 1.25), pytest.param(200_000, 1.05, marks=pytest.mark.soak)])
async def test_even_shares(place, jobs, evenness):
    """Eight processes whose calls take equally long get as many jobs as each other."""
    shares = await claimed_by_all(place, jobs, 0.3)
    assert shares[-1] <= evenness * shares[0]


async def claimed_by_all(place, jobs, seconds):
    """How many each of the processes claimed, which have each group in hand for so long; none is claimed twice."""
    async with await PostgresStore.open(place) as store, contextlib.AsyncExitStack() as stack:
        await fill(store, await store.begin_session(), jobs)
        claimers = [await stack.enter_async_context(claiming(place, GROUP, "full", seconds)) for _ in range(PROCESSES)]
        began = time.monotonic()
        said = await asyncio.gather(*(claimer.communicate(b"go\n") for claimer in claimers))
        took = time.monotonic() - began
        assert [claimer.returncode for claimer in claimers] == [0] * PROCESSES
    claims = [out.split(b"\n")[:-1] for out, _ in said]
    shares = sorted(map(len, claims))
    print(
        f"{jobs} claims by {PROCESSES} processes, settled in groups of {GROUP}: {jobs / took:,.0f}/s, shares {shares}"
    )
    assert Counter(claim for each in claims for claim in each) == Counter(b"%d 1" % (row + 1) for row in range(jobs))
    return shares


@pytest.mark.parametrize(
    ("seconds", "most"), [(24, 6), pytest.param(600, 3, marks=[pytest.mark.soak, pytest.mark.timeout(1500)])]
)
async def test_a_transaction_held_open(place, seconds, most):
    """Beside it the p99 of claims is at most three times as long (six beside other tests); in time people are told."""
    told = []
    async with await PostgresStore.open(place, waits=told.append) as store:
        session = await store.begin_session()
        run = await fill(store, session, A_SECOND * (seconds + 12))
        free = await worked(store, session, run, 10)
        async with await psycopg.AsyncConnection.connect(place) as held:
            await held.execute("SELECT pg_current_xact_id()")  # as any write does: from now on no dead row goes
            beside = await worked(store, session, run, seconds)
    late = beside[len(beside) // 2 :]
    print(f"held open for {seconds} s: p99 of claims {p99(free):.1f} ms before, {p99(late):.1f} ms in its second half")
    assert p99(late) <= most * p99(free)
    if seconds > 60:
        assert any("has had a transaction open for" in words for words in told)


async def worked(store, session, run, seconds):
    """Claim and settle at an even pace; returns how long each claim took, in seconds."""
    took, began = [], time.monotonic()
    for number in range(seconds * A_SECOND // GROUP):
        await asyncio.sleep(began + number * GROUP / A_SECOND - time.monotonic())
        before = time.monotonic()
        jobs = await store.claim(session, "k", run.pass_, GROUP)
        took.append(time.monotonic() - before)
        assert len(jobs) == GROUP
        await store.settle([Settlement(job, Action.DONE, outcome=Success(job.key)) for job in jobs])
    return took


def p99(took):
    return 1000 * sorted(took)[len(took) * 99 // 100]

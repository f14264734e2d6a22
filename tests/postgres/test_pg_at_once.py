"""People and workers on one store at once: what the verbs of people do to a store under load."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack

import pytest
from storekit import Clock, Desk, entry, success

from rowcall.model.job import Status
from rowcall.model.outcome import Action
from rowcall.store.postgres import PostgresReader, PostgresStore
from rowcall.store.types import ImportedAnswer, Selection

pytestmark = pytest.mark.postgres

RECORDS = 600
TEXTS = 200


async def work(desk, chance, ended):
    """Claim and settle until the others have ended, and nothing is left."""
    while True:
        last = ended.is_set()
        jobs = await desk.claim(20)
        if last and not jobs:
            return
        answered = {job.row for job in await desk.store.answer_claimed(jobs)}
        mine = [job for job in jobs if job.row not in answered]
        await asyncio.sleep(chance.uniform(0, 0.01))
        await desk.done(*mine[::2])
        await desk.fail(*mine[1::2])
        await desk.store.answer_pending(mine[::2])


async def meddle(store, chance):
    """What people do, in no order."""
    for _ in range(30):
        key = f"k{chance.randrange(RECORDS)}"
        verb = chance.choice(
            [
                lambda: store.retry("k", Selection(statuses=(Status.FAILED,))),
                lambda key=key: store.retry("k", Selection((key,))),
                lambda: store.retry("k", Selection(where=(("text", str(chance.randrange(TEXTS))),))),
                lambda key=key: store.cancel("k", Selection((key,))),
                lambda: store.rollback("k", f"b{chance.randrange(3)}"),
                lambda key=key: store.hand_out("k", [key]),
                lambda key=key: store.import_answers("k", [ImportedAnswer(key, Action.DONE, success())]),
                lambda: store.request("k", f"ask {chance.randrange(3)}"),
            ]
        )
        await verb()
        await asyncio.sleep(chance.uniform(0, 0.02))


ATTEMPTS = """
    SELECT (SELECT sum(attempts) FROM rowcall.totals),
        (SELECT count(*) FROM rowcall.results WHERE origin IS NULL)
            + (SELECT count(*) FROM rowcall.tries WHERE charged)
"""


async def test_people_and_workers_at_once(postgres_server):
    """Whatever people do meanwhile, every record ends, a done one has its answer, and each call is counted once."""
    chance, ended = random.Random(9), asyncio.Event()
    with postgres_server.database() as name:
        url = postgres_server.url(name)
        async with AsyncExitStack() as opened:

            async def open_one():
                return await opened.enter_async_context(await PostgresStore.open(url))

            desks = [await Desk(await open_one(), Clock(), open_one).sit() for _ in range(3)]
            for batch in range(3):
                records = (entry(f"k{n}", str(n % TEXTS)) for n in range(batch, RECORDS, 3))
                await desks[0].bring(*records, batch=f"b{batch}")
            workers = [asyncio.create_task(work(desk, chance, ended)) for desk in desks]
            people = [await open_one() for _ in range(3)]
            await asyncio.gather(*(meddle(each, chance) for each in people))
            ended.set()
            await asyncio.gather(*workers)
            async with await PostgresReader.open(url) as reader:
                counts = await reader.counts("k")
                assert counts.total == RECORDS
                assert counts.of(Status.PENDING) + counts.of(Status.RUNNING) == 0
                assert await reader.flaws("k") == []
            ((attempts, calls),) = postgres_server.execute(ATTEMPTS, name)
            assert attempts == calls

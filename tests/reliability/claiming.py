"""A process that claims from a store until its pass is over, and settles what it claimed.

    python claiming.py STORE LIMIT DURABILITY SECONDS

Once it has its session it says ``begun`` and waits for a line; each claim is then said as ``row epoch``. What it
claimed it has in hand for so many seconds, as if the API took them.
"""

from __future__ import annotations

import asyncio
import sys

from rowcall.model.outcome import Action, Settlement, Success
from rowcall.model.store_location import StoreLocation
from rowcall.store.open_at import open_store


async def main(place, limit, durability, seconds):
    async with await open_store(StoreLocation.of(place), durability=durability) as store:
        session = await store.begin_session()
        run = await store.begin_run(session, "k", {})
        print("begun", flush=True)
        sys.stdin.readline()
        jobs = []
        while jobs or not (await store.left("k", run.pass_)).nothing:
            await store.settle([Settlement(job, Action.DONE, outcome=Success(job.key)) for job in jobs])
            jobs = await store.claim(session, "k", run.pass_, int(limit))
            sys.stdout.writelines(f"{job.row} {job.epoch}\n" for job in jobs)
            await asyncio.sleep(float(seconds))
        await store.end_run(run, "done", {})
        await store.end_session(session)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

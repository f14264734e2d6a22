"""Slots of handlers' requests, whose number changes while they are in use."""

from __future__ import annotations

import asyncio

from rowcall.limits.concurrency import Concurrency, RequestSlots


async def in_use(slots, release):
    async with slots:
        await release.wait()


async def test_never_more_than_there_are():
    """Two of three get in, the third when there is one more slot."""
    concurrency, release = Concurrency(2), asyncio.Event()
    slots = RequestSlots(concurrency)
    tasks = [asyncio.create_task(in_use(slots, release)) for _ in range(3)]
    await asyncio.sleep(0)
    assert slots.taken == 2
    concurrency.set(3)
    assert slots.taken == 3
    release.set()
    await asyncio.gather(*tasks)
    assert slots.taken == 0


async def test_fewer_slots():
    """Those in use may end; nobody gets in until there are fewer than allowed."""
    concurrency, first, second = Concurrency(3), asyncio.Event(), asyncio.Event()
    slots = RequestSlots(concurrency)
    tasks = [asyncio.create_task(in_use(slots, first)) for _ in range(3)]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(in_use(slots, second)))
    concurrency.set(1)
    await asyncio.sleep(0)
    assert slots.taken == 3
    first.set()
    await asyncio.gather(*tasks[:3])
    assert slots.taken == 1
    second.set()
    await tasks[3]


async def test_who_waits_may_be_dropped():
    """A request that is dropped while it waits, or just when it got its slot, leaves none taken."""
    slots, release = RequestSlots(Concurrency(1)), asyncio.Event()
    holder = asyncio.create_task(in_use(slots, release))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(in_use(slots, release)) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    release.set()
    await holder
    waiting[1].cancel()  # it has just been given the slot
    await asyncio.gather(*waiting, return_exceptions=True)
    assert slots.taken == 0

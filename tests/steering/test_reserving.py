"""Requests that wait for their places, over a real store."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import asynccontextmanager, closing, suppress
from time import monotonic
from types import SimpleNamespace

import pytest

from rowcall.calls.shared_limits import SharedLimits
from rowcall.limits.rate_limits import Bucket
from rowcall.limits.token_estimates import Estimate
from rowcall.model.errors import Busy
from rowcall.model.outcome import Usage
from rowcall.store.sqlite import SQLiteStore

ONE = Estimate(1.0, 0.0, 4)


@pytest.fixture
async def reserve(tmp_path):
    """Makes what reserves for a process of its own, on one store."""
    rests = []

    @asynccontextmanager
    async def reserve(*buckets):
        async with await SQLiteStore.open(tmp_path / "t.db", durability="normal") as store:
            observer = SimpleNamespace(rest_elsewhere=rests.append, stop_full=print)
            reserving = SharedLimits(store, "t", observer, emit=print)
            reserving.limit(buckets)
            serving = asyncio.create_task(reserving.run())
            reserving.rests, reserving.store = rests, store
            yield reserving
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving

    return reserve


def debt(tmp_path):
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        return connection.execute("SELECT debt FROM limits WHERE what <> 'rest'").fetchone()[0]


async def test_places_are_spaced(reserve):
    """Ten requests at once at 50/s leave over 0.18 s."""
    async with reserve(Bucket("requests", 50, 1.0)) as reserving:
        began = monotonic()
        assert all(await asyncio.gather(*(reserving.wait(ONE) for _ in range(10))))
        assert monotonic() - began >= 0.17
        assert reserving.waiting == 0


async def test_what_was_used_is_paid(reserve):
    """A call that took 30 times what was reserved for it puts the next one back, to come when that is paid."""
    async with reserve(Bucket("input", 60, 60.0)) as reserving:
        assert await reserving.wait(ONE)
        reserving.correct(ONE, Usage(input=30, output=5))
        assert not await reserving.wait(ONE)
        assert 28 < reserving.free_at - monotonic() < 31


async def test_a_reservation_that_was_missed_expires(reserve, tmp_path):
    """When the loop stood still over it, another place is taken: a late call would make the next window too full."""
    bucket = Bucket("requests", 20, 1.0)
    async with reserve(bucket) as reserving:
        await reserving.wait(ONE)
        before = debt(tmp_path)
        late = asyncio.create_task(reserving.wait(ONE))
        while debt(tmp_path) == before:  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.001)
        time.sleep(0.15)  # noqa: ASYNC251  the loop stands still
        assert await late
        assert debt(tmp_path) - before > 2 * bucket.step


async def test_who_can_be_put_back_is(reserve):
    """Before a wait of more than a second a request gives its slot up; one that cannot waits on."""
    async with reserve(Bucket("requests", 20, 60.0)) as reserving:
        await reserving.wait(ONE)
        patient = asyncio.create_task(reserving.wait(ONE, patient=True))
        assert not await reserving.wait(ONE)
        assert not patient.done()
        reserving.limit([])
        assert await patient


async def test_a_rest_is_told(reserve):
    """Who reserves while the target rests is told how long, and gets no place."""
    async with reserve(Bucket("requests", 20, 1.0)) as reserving:
        await reserving.store.penalize("t", 30.0)
        assert not await reserving.wait(ONE)
        assert reserving.rests[0] == pytest.approx(30.0, abs=1.0)


async def test_withdrawn(reserve):
    """A pause or the end of a run puts back at once whoever waits."""
    async with reserve(Bucket("requests", 2, 1.0)) as reserving:
        await reserving.wait(ONE)
        waiting = asyncio.create_task(reserving.wait(ONE))
        await asyncio.sleep(0)
        reserving.withdraw()
        assert not await waiting


async def test_without_limits(reserve, tmp_path):
    """Nobody waits, no body is read, and the store hears nothing."""
    async with reserve() as reserving:
        assert reserving.estimate(lambda: 1 / 0) == Estimate()
        assert await reserving.wait(ONE)
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        assert connection.execute("SELECT count(*) FROM limits").fetchone() == (0,)


async def test_what_cannot_be_told_is_still_owed(reserve, monkeypatch):
    """Tokens that were used beyond their estimate are paid when the store is free again."""
    async with reserve(Bucket("tokens", 1000, 60)) as reserving:
        reserving.correct(ONE, Usage(input=500))
        asked = reserving.store.reserve
        owed = []

        async def held_once(target, buckets, calls, debt):
            owed.append(debt)
            if len(owed) == 1:
                raise Busy("held")
            return await asked(target, buckets, calls, debt)

        monkeypatch.setattr(reserving.store, "reserve", held_once)
        await reserving._reserve(reserving.buckets, [(1.0,)])
        await reserving._reserve(reserving.buckets, [(1.0,)])
        assert owed[0] == owed[1]
        assert owed[0][0] == pytest.approx(499)

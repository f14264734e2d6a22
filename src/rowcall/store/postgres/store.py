"""The writing half of the store: each verb one transaction."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Literal, Self

from rowcall.limits.rate_limits import Bucket, Cost
from rowcall.model.errors import StoreError
from rowcall.model.job import Job
from rowcall.model.outcome import Settlement
from rowcall.store.entry_checks import CHUNK, EnqueueTarget, require_keys
from rowcall.store.liveness import SilenceWatch
from rowcall.store.postgres import (
    claiming,
    driver,
    duplicate_answers,
    enqueueing,
    limiting,
    pool,
    schema,
    sessions,
    settling,
    upkeep,
)
from rowcall.store.postgres.claim_starts import ClaimStarts
from rowcall.store.postgres.faults import translated
from rowcall.store.postgres.locks import LOOKS_APART, LockWatch, SessionLock
from rowcall.store.postgres.pass_records import PassRecords
from rowcall.store.postgres.pool import Connection, Database, ignore
from rowcall.store.postgres.reader import PostgresReader
from rowcall.store.queries.retry_cancel import cancelled_among
from rowcall.store.queries.stored_runs import settings as live_settings
from rowcall.store.settlement_values import ready
from rowcall.store.shared_verbs import SharedStore
from rowcall.store.types import Claim, Enqueued, Entry, Left, LiveOrders, Pruned, Reserved, Role, Run


class PostgresStore(PostgresReader, SharedStore):
    """A store in a PostgreSQL database, which workers on any number of machines can share. Made by ``open``."""

    def __init__(self, database: Database, lease: float, looks_apart: float) -> None:
        super().__init__(database)
        self._session_locks: dict[int, SessionLock] = {}
        self._lease = lease
        self._watch = SilenceWatch(lease)
        self._lock_watch = LockWatch(looks_apart)
        self._latest = 0.0
        self._takes = count(1)
        self._lost: set[tuple[int, int]] = set()
        self._pass_records = PassRecords()
        self._claim_starts = ClaimStarts(database.waits, database.name)
        self._background: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        durability: Literal["full", "normal"] = "full",
        lease: float = 60.0,
        busy_wait: float = 30.0,
        waits: Callable[[str], None] = ignore,
        looks_apart: float = LOOKS_APART,
    ) -> Self:
        """Open a store, or create it in an existing database.

        Args:
            url: ``postgresql://user:password@host:port/database``.
            durability: ``full`` waits for the disk as the server is set; ``normal`` never does, and may lose the last
                seconds where the server's machine fails.
            lease: seconds of silence after which another session is dead.
            busy_wait: seconds to wait for others, or for a server that is away, before ``Busy`` is raised.
            waits: called with what is in the way, once in each wait of 2 s or more.
            looks_apart: a session is dead if two checks this many seconds apart find its lock free.

        Raises:
            Unavailable: the server cannot be reached, or this user may not connect or create tables.
            SchemaMismatch: a newer rowcall or another program made the tables.
            ReadOnly: it takes no writes.
            Busy: something was in the way for all of ``busy_wait``.
        """
        database = await Database.open(url, durability=durability, busy_wait=busy_wait, waits=waits)
        try:
            await database.run(schema.prepare, database.name)
        except BaseException:
            await database.close()
            raise
        return cls(database, lease, looks_apart)

    async def close(self) -> None:
        """Close the connections; safe to repeat. From then on, others take sessions that were not ended for dead."""
        await self._end_background()
        try:
            for lock in self._session_locks.values():
                await lock.close()
        finally:
            self._pass_records.close()
            await super().close()

    async def begin_session(self) -> int:
        """Make this process known and alive; returns the session's number."""
        session = await self._database.run(sessions.new_number)
        if not self._database.pooled:
            self._session_locks[session] = await SessionLock.held(self._database.connect, session, self._lease)
        await self._database.run(sessions.begin, session, self._is_locked(session))
        return session

    async def beat(self, session: int, claims: Sequence[Claim] = ()) -> list[Claim]:
        """Record that the session is alive, and note others' beats; returns those ``claims`` that were cancelled."""

        async def beat(connection: Connection) -> tuple[dict[int, int], list[Claim]]:
            now, counters = await sessions.beat(connection, session, self._is_locked(session))
            await self._check_clock(connection, now)
            for take in lost:
                await settling.hand_back(connection, *take)
            return counters, await driver.carry_out(connection, cancelled_among(claims))

        lost = set(self._lost)
        counters, cancelled = await self._database.run_lightly(beat)
        self._lost -= lost
        self._watch.note(counters)
        return cancelled

    async def end_session(self, session: int) -> None:
        """Release what the session still holds, uncharged, and forget it; safe to repeat."""
        await self._database.run(sessions.end, session)
        lock = self._session_locks.pop(session, None)
        if lock:
            await lock.close()

    async def begin_run(self, session: int, kind: str, settings: dict[str, Any], *, role: Role = Role.RUN) -> Run:
        """Join the pass of a live run of the kind, or take the pass that belongs to the role; see the contract."""
        number = await self._database.run(sessions.new_run)
        return await self._database.run(sessions.begin_run, number, self._watch.silent, session, kind, settings, role)

    async def enqueue(self, kind: str, entries: Sequence[Entry], *, pass_: int, request: int, batch: str) -> Enqueued:
        """Enqueue records in transactions of 1,000; see the contract.

        Raises:
            DuplicateKey: a key came before in this pass with other content; entries before it are stored.
            InputError: a key with a NUL or a lone surrogate; nothing of ``entries`` is stored.
        """
        require_keys(entries)
        target = EnqueueTarget(kind, pass_, request, batch)
        self._pass_records.start_pass(kind, pass_)
        sum_ = Enqueued()
        for start in range(0, len(entries), CHUNK):
            chunk = entries[start : start + CHUNK]
            brought = await self._database.run_by_index(enqueueing.enqueue, target, chunk, self._pass_records)
            self._pass_records.add(brought.records)
            if brought.duplicate:
                raise brought.duplicate
            sum_ += brought.enqueued
        return sum_

    async def claim(
        self,
        session: int,
        kind: str,
        pass_: int,
        limit: int,
        *,
        fresh_only: bool = False,
        only: Sequence[int] | None = None,
    ) -> list[Job]:
        """Take at most ``limit`` claimable jobs; see the contract. A claim that is cancelled puts back what it took."""
        floor = self._claim_starts.of((kind, pass_))
        asked = claiming.ClaimRequest(session, next(self._takes), kind, pass_, limit, fresh_only, only, floor)
        try:
            taken = await self._database.run_by_index(self._claim, asked, count())
            with translated(self._database.name):
                return [claiming.read_job(row) for row in taken]
        except BaseException:  # it may have been committed nevertheless, and nobody would call those jobs
            self._lost.add((session, asked.take))
            self._in_background(self._hand_back(session, asked.take))
            raise

    async def _claim(
        self, connection: Connection, asked: claiming.ClaimRequest, tries: Iterator[int]
    ) -> list[claiming.Taken]:
        """One try at a claim. If the reply to an earlier try was lost, this one returns what that one took."""
        await self._check_clock(connection, await sessions.ensure(connection, asked.session))
        if next(tries) and (before := await claiming.taken_before(connection, asked)):
            return before
        began = time.monotonic()
        taken = await claiming.claim(connection, asked)
        await self._claim_starts.note(
            connection, (asked.kind, asked.pass_), asked.floor, taken, time.monotonic() - began
        )
        return taken

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settlement]:
        """Write decisions in one transaction; returns those that came too late (the fence).

        Raises:
            StoreError: an answer is not valid JSON; nothing is written.
        """
        return await self._database.run_by_index(
            settling.settle, ready(settlements), next(iter(self._session_locks), 0)
        )

    async def answer_claimed(self, claimed: Sequence[Job]) -> list[Job]:
        """Settle those claims for which a duplicate has an answer; see the contract."""
        tries = count()

        async def answer(connection: Connection) -> list[Job]:
            return await duplicate_answers.answer_claimed(connection, claimed, again=next(tries) > 0)

        return await self._database.run_by_index(answer)

    async def answer_pending(self, answered: Sequence[Job]) -> int:
        """Give the answers of these jobs to their pending duplicates, 10,000 at most; returns how many got one."""
        return await self._database.run_by_index(duplicate_answers.answer_pending, answered)

    async def reap(self) -> int:
        """Put back what dead sessions held; returns how many jobs.

        If the lock of a session is free, it looks a second time 2 s later.
        """
        await self._look()
        if wait := self._lock_watch.ripe_in:
            await asyncio.sleep(wait)
            await self._look()
        dead = self._watch.silent | self._lock_watch.dead
        count = await self._database.run(sessions.reap, dead)
        self._watch.forget(dead)
        return count

    async def left(self, kind: str, pass_: int, *, only: Sequence[int] | None = None) -> Left:
        """What a pass still has to do; ``only``: among these rows."""
        return await self._database.read(claiming.left, kind, pass_, only)

    async def prune(self, kind: str, before: str) -> Pruned:
        """Drop the payloads of jobs that were done before a time, and make the tables smaller.

        Raises:
            StoreError: a run is alive; nothing is dropped.
        """
        return await upkeep.prune(self._database, kind, before)

    async def reserve(self, target: str, buckets: Sequence[Bucket], calls: Sequence[Cost], owed: Cost) -> Reserved:
        """Reserve calls to a target; see the contract. A power cut may forget them: by then they are out of date."""
        return await self._database.run_lightly(limiting.take, target, buckets, calls, owed)

    async def penalize(self, target: str, seconds: float) -> None:
        """Let a target rest, for all processes on the store."""
        await self._database.run_lightly(limiting.penalize, target, seconds)

    async def end_rest(self, target: str) -> None:
        """Forget that a target rests."""
        await self._database.run(limiting.end_rest, target)

    async def orders(self, kind: str, target: str) -> LiveOrders:
        """What a live run of the kind against a target follows now."""

        async def orders(connection: Connection) -> LiveOrders:
            settings = await driver.carry_out(connection, live_settings(kind))
            return LiveOrders(settings, await limiting.resting(connection, target))

        return await self._database.read(orders)

    def _is_locked(self, session: int) -> bool:
        lock = self._session_locks.get(session)
        return lock is not None and lock.is_held

    async def _look(self) -> None:
        """Note which locks are free, unless others may have lost theirs just as this process lost its own."""
        sure = all(lock.is_sure for lock in self._session_locks.values())
        self._lock_watch.note(await self._database.read(sessions.unlocked) if sure else {})

    async def _check_clock(self, connection: Connection, now: float) -> None:
        """End overlong waits if the server's clock went back."""
        if sessions.clock_went_back(now, self._latest):
            await sessions.end_overlong_waits(connection)
        self._latest = now

    async def _hand_back(self, session: int, take: int) -> None:
        """Put back what a claim took whose caller is gone, once the claim has ended."""
        await self._database.settled()
        await self._database.run(settling.hand_back, session, take)
        self._lost.discard((session, take))

    async def _end_background(self) -> None:
        """Wait for what was started in the background; whoever finds the session dead puts back what remains."""
        tasks = list(self._background)
        if tasks:
            await asyncio.wait(tasks, timeout=pool.CLOSING_PATIENCE)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that only ``close`` waits for."""
        task = asyncio.ensure_future(self._quietly(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _quietly(self, work: Coroutine[Any, Any, None]) -> None:
        with suppress(StoreError):
            await work

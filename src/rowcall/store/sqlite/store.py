"""The writing half of the store: each verb one transaction, in the turn of this process."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_delay, wait_random

from rowcall.limits.rate_limits import Bucket, Cost
from rowcall.model.errors import Busy, StoreError
from rowcall.model.job import Job
from rowcall.model.outcome import Settlement
from rowcall.store.base import Store
from rowcall.store.entry_checks import CHUNK, Reading, require_keys
from rowcall.store.liveness import Watch
from rowcall.store.settlement_values import ready
from rowcall.store.sqlite import (
    arriving,
    claiming,
    enqueueing,
    keeping,
    limiting,
    mending,
    queries,
    recipes,
    requests,
    sessions,
    settling,
    steering,
    twins,
    withdrawing,
)
from rowcall.store.sqlite.faults import translated
from rowcall.store.sqlite.file import CHECKPOINT_PAGES, connect_writing, prepare
from rowcall.store.sqlite.line import Line, transaction
from rowcall.store.sqlite.locks import FileLock, Turn, beside
from rowcall.store.sqlite.reader import SQLiteReader
from rowcall.store.types import (
    Arrived,
    Claim,
    Enqueued,
    Entry,
    Fate,
    Left,
    Orders,
    Pruned,
    Reserved,
    Role,
    RolledBack,
    Run,
    Selection,
)

P = ParamSpec("P")
T = TypeVar("T")

_PATIENCE = 0.25
"""Seconds that one try waits for the turn, on the connection's thread; between two tries a caller can be cancelled."""
_UNSAID_FOR = 2.0
"""Seconds of waiting for somebody else that are not worth a word."""
_LARGE_WAL = 64 * 2**20
"""Bytes of WAL, held up by a reader, from which the readers are waited for."""
_SHRINK_EVERY = 5.0
"""Seconds between two tries to."""
_CLOCK_STEP = 1.0
"""Seconds by which the clock must have gone back to be noticed."""


def _nobody(message: str) -> None:
    """Who is told of waits where nobody asked to be."""


class SQLiteStore(SQLiteReader, Store):
    """A store in one SQLite file. Made by ``open``; the only connection of this process that writes.

    Its own reads share a thread with its writes: what walks over all jobs (``counts``, ``request_standing``) is better
    asked of a ``SQLiteReader`` while a run is on.
    """

    def __init__(
        self,
        path: Path,
        line: Line,
        clock: Callable[[], float],
        lease: float,
        busy_wait: float,
        waits: Callable[[str], None],
        ticks: Callable[[], float],
    ) -> None:
        super().__init__(path, line, clock)
        self._ticks = ticks
        self._turn = Turn(path)
        self._waits = waits
        self._retrying = AsyncRetrying(
            retry=retry_if_exception_type(Busy),
            stop=stop_after_delay(busy_wait),
            wait=wait_random(0.0, 0.02),
            reraise=True,
        )
        self._latest = clock()
        self._next_shrink = time.monotonic()
        self._locks: dict[int, FileLock] = {}
        self._watch = Watch(lease)
        self._errands: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        durability: Literal["full", "normal"] = "full",
        lease: float = 60.0,
        clock: Callable[[], float] = time.time,
        busy_wait: float = 30.0,
        waits: Callable[[str], None] = _nobody,
        ticks: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Open a store, or make one; its folder must be there.

        Args:
            path: the database file.
            durability: ``full`` survives a power cut to the last group; ``normal`` may lose the last seconds to one.
            lease: seconds of silence after which another session is dead.
            clock: seconds since 1970.
            busy_wait: seconds to wait for another process before ``Busy`` is raised.
            waits: told who is in the way, once in each wait that lasts for 2 s.
            ticks: seconds of a clock that all processes of the host share, and that nobody sets.

        Raises:
            Unavailable: no such folder, or not a file.
            ReadOnly: the file or its folder cannot be written.
            SchemaMismatch: a newer rowcall or another program wrote the file; it is left as it is.
            Corrupt: not a database, or a damaged one.
            Busy: another process had it for all of ``busy_wait``.
        """
        line = await Line.open(partial(connect_writing, path))
        try:
            store = cls(path, line, clock, lease, busy_wait, waits, ticks)
            await store._patiently(store._prepare, durability)
        except BaseException:
            await line.close()
            raise
        return store

    async def close(self) -> None:
        """Write the WAL back where nobody is in the way, and give up the connection; safe to repeat.

        Sessions that were not ended are dead to others from now on.
        """
        await asyncio.gather(*self._errands, return_exceptions=True)
        try:
            with suppress(StoreError):
                await self._line.run(self._tidy)
        finally:
            await super().close()
            self._turn.close()
            for lock in self._locks.values():
                lock.close()

    async def begin_session(self) -> int:
        """Make this process known and alive; returns the session's number."""

        def begin(connection: sqlite3.Connection, now: float) -> tuple[int, FileLock]:
            limiting.begin_anew(connection, self._ticks())
            return sessions.begin(connection, now, self.path)

        number, lock = await self._write(begin)
        self._locks[number] = lock
        return number

    async def beat(self, session: int, claims: Sequence[Claim] = ()) -> list[Claim]:
        """Say that the session is alive, and watch the others' beats; returns those ``claims`` that were cancelled."""

        def beat(connection: sqlite3.Connection, now: float) -> tuple[dict[int, int], list[Claim]]:
            return sessions.beat(connection, now, session), withdrawing.cancelled(connection, claims)

        counters, cancelled = await self._write(beat)
        self._watch.note(counters)
        return cancelled

    async def end_session(self, session: int) -> None:
        """Release what the session still holds, uncharged, and forget it; safe to repeat."""
        await self._write(sessions.end, session)
        lock = self._locks.pop(session, None)
        if lock:
            lock.path.unlink(missing_ok=True)
            lock.close()

    async def begin_run(self, session: int, kind: str, settings: dict[str, Any], *, role: Role = Role.RUN) -> Run:
        """Join the pass of a live run of the kind, or take the one that goes with the role; see the contract."""
        return await self._write(sessions.begin_run, self.path, self._watch.silent, session, kind, settings, role)

    async def publish(self, kind: str, recipe: dict[str, Any]) -> None:
        """Keep how the calls of the kind are made, for workers that have no config."""
        await self._write(recipes.publish, kind, recipe)

    async def end_run(self, run: Run, stop_reason: str, totals: dict[str, Any]) -> None:
        """Write why a run stopped and what it did."""
        await self._write(sessions.end_run, run, stop_reason, totals)

    async def request(self, kind: str, hash_: str) -> int:
        """Make a request the kind's latest; returns its number, the same for the same hash."""
        return await self._write(requests.request, kind, hash_)

    async def adopt(self, kind: str, hash_: str) -> int:
        """As ``request``, and answers made with any other request of the kind count for it from now on."""
        return await self._write(requests.adopt, kind, hash_)

    async def enqueue(self, kind: str, entries: Sequence[Entry], *, pass_: int, request: int, batch: str) -> Enqueued:
        """Bring records in, in transactions of 1,000; see the contract.

        Raises:
            DuplicateKey: a key came before in this pass with other content; entries before it are in.
            InputError: a key with a NUL or a lone surrogate; nothing of ``entries`` is in.
        """
        require_keys(entries)
        reading = Reading(kind, pass_, request, batch)
        sum_ = Enqueued()
        for start in range(0, len(entries), CHUNK):
            chunk = entries[start : start + CHUNK]
            enqueued, duplicate = await self._write(enqueueing.enqueue, reading, chunk)
            if duplicate:
                raise duplicate
            sum_ += enqueued
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
        """Take at most ``limit`` claimable jobs; see the contract. A cancelled claim puts back what it took.

        A power cut may forget a claim that was not settled, and leaves its job pending, as the death of this process
        would: a settle that reached the disk took all claims before it along.
        """
        taken: list[claiming.Taken] = []

        def take(connection: sqlite3.Connection, now: float) -> None:
            taken[:] = claiming.claim(connection, now, session, kind, pass_, limit, fresh_only, only)

        try:
            await self._patiently(self._lightly, take)
            with translated(self.path):
                return [claiming.read_job(row) for row in taken]
        except asyncio.CancelledError:
            self._errand(self._write(settling.hand_back, taken))
            raise

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settlement]:
        """Write decisions in one transaction; returns those that came too late (the fence).

        Raises:
            StoreError: an answer that is no JSON; nothing is written.
        """
        return await self._write(settling.settle, ready(settlements))

    async def answer_claimed(self, claimed: Sequence[Job]) -> list[Job]:
        """Settle those claims that a twin's answer is there for; see the contract."""
        return await self._write(twins.answer_claimed, claimed)

    async def answer_pending(self, answered: Sequence[Job]) -> int:
        """Give the answers of these jobs to their pending twins, 10,000 at most; returns to how many."""
        return await self._write(twins.answer_pending, answered)

    async def hand_out(self, kind: str, keys: Sequence[str]) -> None:
        """Note that the calls of these jobs are made elsewhere, and what they ask now."""
        await self._write(arriving.hand_out, kind, keys)

    async def arrive(self, kind: str, arrived: Sequence[Arrived]) -> list[Fate]:
        """Take in answers that were made elsewhere; see the contract."""
        return await self._write(arriving.arrive, kind, arrived)

    async def reap(self) -> int:
        """Put back what dead sessions held; returns how many jobs."""
        silent = self._watch.silent
        count = await self._write(sessions.reap, self.path, silent)
        self._watch.forget(silent)
        return count

    async def left(self, kind: str, pass_: int, *, only: Sequence[int] | None = None) -> Left:
        """What a pass still has; ``only``: among these rows."""
        return await self._read(queries.left, kind, pass_, self._clock(), only)

    async def retry(self, kind: str, selection: Selection) -> int:
        """Set jobs back to pending with attempts 0, claimable by any run; returns how many."""
        return await self._write(mending.retry, kind, selection)

    async def cancel(self, kind: str, selection: Selection) -> int:
        """Mark pending and running jobs cancelled; returns how many."""
        return await self._write(mending.cancel, kind, selection)

    async def rollback(self, kind: str, batch: str) -> RolledBack:
        """Supersede all answers of a batch; see the contract."""
        return await self._write(withdrawing.rollback, kind, batch)

    async def prune(self, kind: str, before: str) -> Pruned:
        """Drop the payloads of jobs that were done before a time, and make the file smaller.

        Raises:
            StoreError: a run is alive; nothing is dropped.
        """
        return await self._patiently(self._rewrite, kind, before)

    async def reserve(self, target: str, buckets: Sequence[Bucket], calls: Sequence[Cost], owed: Cost) -> Reserved:
        """Take places for calls to a target; see the contract. A power cut may forget them: they are of no age."""
        return await self._patiently(self._lightly, self._by_ticks(limiting.take, target, buckets, calls, owed))

    async def penalize(self, target: str, seconds: float) -> None:
        """Let a target rest, for all processes on the store."""
        await self._patiently(self._lightly, self._by_ticks(limiting.penalize, target, seconds))

    async def end_rest(self, target: str) -> None:
        """Forget that a target rests."""
        await self._write(limiting.end_rest, target)

    async def set(self, kind: str, values: Mapping[str, str | None], *, keep: bool) -> None:
        """Change settings of live runs; None takes one away."""
        await self._write(steering.change, kind, values, keep)

    async def orders(self, kind: str, target: str) -> Orders:
        """What a live run of the kind against a target follows now."""

        def orders(connection: sqlite3.Connection) -> Orders:
            return Orders(steering.settings(connection, kind), limiting.resting(connection, self._ticks(), target))

        return await self._read(orders)

    async def note(self, run: Run, totals: dict[str, Any]) -> None:
        """Write what a live run has done so far."""
        await self._patiently(self._lightly, lambda connection, now: steering.note(connection, now, run.id, totals))

    def _by_ticks(
        self, verb: Callable[Concatenate[sqlite3.Connection, float, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Callable[[sqlite3.Connection, float], T]:
        """A verb that is told the ticks instead of the time of day."""
        return lambda connection, now: verb(connection, self._ticks(), *args, **kwargs)

    def _lightly(self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection, float], T]) -> T:
        """Do ``work`` in a transaction that is not waited for to reach the disk: what a power cut may take along."""
        (durability,) = connection.execute("PRAGMA synchronous").fetchone()
        connection.execute("PRAGMA synchronous = NORMAL")
        try:
            return self._transact(connection, work, checkpoint=False)
        finally:
            connection.execute(f"PRAGMA synchronous = {durability}")

    async def _write(
        self, verb: Callable[Concatenate[sqlite3.Connection, float, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._patiently(
            self._transact, lambda connection, now: verb(connection, now, *args, **kwargs), checkpoint=True
        )

    async def _patiently(
        self, step: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a step on the connection's thread, again and again while somebody else is in the way."""
        with suppress(Busy):  # most often nobody is, and tenacity's machinery costs more than the hop
            return await self._line.run(step, *args, **kwargs)
        return await self._retrying.copy(before_sleep=self._teller())(self._line.run, step, *args, **kwargs)

    def _teller(self) -> Callable[[RetryCallState], None]:
        """Tells once of a wait that gets long."""
        told = False

        def tell(state: RetryCallState) -> None:
            nonlocal told
            busy = state.outcome.exception() if state.outcome else None
            if busy and not told and (state.seconds_since_start or 0.0) >= _UNSAID_FOR:
                told = True
                self._waits(str(busy.args[0]))

        return tell

    def _transact(
        self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection, float], T], *, checkpoint: bool
    ) -> T:
        """Do ``work`` in one transaction. All of it happens in one hop, so that nothing can leave it open."""
        with translated(self.path), self._turn.held(_PATIENCE):
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES if checkpoint else 0}")
            with transaction(connection):
                now = self._clock()
                if now < self._latest - _CLOCK_STEP:
                    sessions.heal(connection, now)
                result = work(connection, now)
            self._latest = now
            if checkpoint:
                self._shrink(connection)
        return result

    def _prepare(self, connection: sqlite3.Connection, durability: str) -> None:
        with translated(self.path), self._turn.held(_PATIENCE):
            prepare(connection, self.path, durability)
        connection.executescript(f"{enqueueing.SEEN}; {mending.CHOSEN}; {withdrawing.ROLLED}")

    def _rewrite(self, connection: sqlite3.Connection, kind: str, before: str) -> Pruned:
        with translated(self.path), self._turn.held(_PATIENCE):
            return keeping.prune(connection, self.path, kind, before)

    def _shrink(self, connection: sqlite3.Connection) -> None:
        """Where readers let the WAL grow, wait for them shortly; all is committed, so failing is no harm."""
        if time.monotonic() < self._next_shrink:
            return
        with suppress(OSError, sqlite3.Error):
            if beside(self.path, "wal").stat().st_size > _LARGE_WAL:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._next_shrink = time.monotonic() + _SHRINK_EVERY

    def _tidy(self, connection: sqlite3.Connection) -> None:
        with translated(self.path), self._turn.held(_PATIENCE):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _errand(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for but ``close``."""
        task = asyncio.ensure_future(work)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

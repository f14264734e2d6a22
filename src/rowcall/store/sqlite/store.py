"""The writing half of the store: each verb is one transaction, made while this process holds the write lock."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_delay, wait_random

from rowcall.limits.rate_limits import Bucket, Cost
from rowcall.model.errors import Busy, StoreError
from rowcall.model.job import Job
from rowcall.model.outcome import Settlement
from rowcall.store.entry_checks import CHUNK, EnqueueTarget, require_keys
from rowcall.store.liveness import SilenceWatch
from rowcall.store.queries.base import Access, Query
from rowcall.store.queries.retry_cancel import cancelled_among
from rowcall.store.queries.stored_runs import settings as live_settings
from rowcall.store.settlement_values import ready
from rowcall.store.shared_verbs import SharedStore
from rowcall.store.sqlite import claiming, driver, duplicate_answers, enqueueing, limiting, sessions, settling, upkeep
from rowcall.store.sqlite.connection_thread import ConnectionThread, transaction
from rowcall.store.sqlite.faults import translated
from rowcall.store.sqlite.file import CHECKPOINT_PAGES, connect_writing, prepare
from rowcall.store.sqlite.locks import FileLock, WriteLock, beside
from rowcall.store.sqlite.reader import SQLiteReader
from rowcall.store.types import Claim, Enqueued, Entry, Left, LiveOrders, Pruned, Reserved, Role, Run

P = ParamSpec("P")
T = TypeVar("T")

_PATIENCE = 0.25
"""Seconds that one try waits for the write lock on the connection's thread. A caller can be cancelled between tries."""
_SILENT_FOR = 2.0
"""Seconds of waiting for another process before the user is told."""
_LARGE_WAL = 64 * 2**20
"""Bytes of WAL from which a checkpoint waits for the readers that keep it from being written back."""
_SHRINK_EVERY = 5.0
"""Seconds between two such checkpoints."""
_CLOCK_STEP = 1.0
"""Seconds by which the clock must have gone back to be noticed."""


def _ignore(message: str) -> None:
    """Takes messages about waits that nobody asked for."""


class SQLiteStore(SQLiteReader, SharedStore):
    """A store in one SQLite file. Made by ``open``; this process writes through no other connection.

    What it reads waits for what it writes: both share one thread. While a run is on, ask a ``SQLiteReader`` for what
    reads all jobs (``counts``, ``request_standing``).
    """

    def __init__(
        self,
        path: Path,
        thread: ConnectionThread,
        clock: Callable[[], float],
        lease: float,
        busy_wait: float,
        waits: Callable[[str], None],
        ticks: Callable[[], float],
    ) -> None:
        super().__init__(path, thread, clock)
        self._ticks = ticks
        self._write_lock = WriteLock(path)
        self._waits = waits
        self._retrying = AsyncRetrying(
            retry=retry_if_exception_type(Busy),
            stop=stop_after_delay(busy_wait),
            wait=wait_random(0.0, 0.02),
            reraise=True,
        )
        self._latest = clock()
        self._next_shrink = time.monotonic()
        self._session_locks: dict[int, FileLock] = {}
        self._watch = SilenceWatch(lease)
        self._background: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        durability: Literal["full", "normal"] = "full",
        lease: float = 60.0,
        clock: Callable[[], float] = time.time,
        busy_wait: float = 30.0,
        waits: Callable[[str], None] = _ignore,
        ticks: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Open a store, or create it; its folder must exist.

        Args:
            path: the database file.
            durability: ``full`` survives a power cut to the last group; ``normal`` may lose the last seconds to one.
            lease: seconds of silence after which another session is dead.
            clock: seconds since 1970.
            busy_wait: seconds to wait for another process before ``Busy`` is raised.
            waits: called once in each wait of 2 s or more, with the name of the process that is waited for.
            ticks: seconds of a clock that all processes of the host share and that nobody can set.

        Raises:
            Unavailable: there is no such folder, or the path is not a file.
            ReadOnly: the file or its folder cannot be written.
            SchemaMismatch: a newer rowcall or another program wrote the file; it is left as it is.
            Corrupt: the file is not a database, or is damaged.
            Busy: another process held it for all of ``busy_wait``.
        """
        thread = await ConnectionThread.open(partial(connect_writing, path))
        try:
            store = cls(path, thread, clock, lease, busy_wait, waits, ticks)
            await store._patiently(store._prepare, durability)
        except BaseException:
            await thread.close()
            raise
        return store

    async def close(self) -> None:
        """Write the WAL back if no other process is in the way, and close the connection; safe to repeat.

        From then on, others take sessions that were not ended for dead.
        """
        await asyncio.gather(*self._background, return_exceptions=True)
        try:
            with suppress(StoreError):
                await self._thread.run(self._checkpoint)
        finally:
            await super().close()
            self._write_lock.close()
            for lock in self._session_locks.values():
                lock.close()

    async def begin_session(self) -> int:
        """Make this process known and alive; returns the session's number."""

        def begin(connection: sqlite3.Connection, now: float) -> tuple[int, FileLock]:
            limiting.begin_anew(connection, self._ticks())
            return sessions.begin(connection, now, self.path)

        number, lock = await self._write(begin)
        self._session_locks[number] = lock
        return number

    async def beat(self, session: int, claims: Sequence[Claim] = ()) -> list[Claim]:
        """Say that the session is alive, and note the others' beats; returns those ``claims`` that were cancelled."""

        def beat(connection: sqlite3.Connection, now: float) -> tuple[dict[int, int], list[Claim]]:
            beats = sessions.beat(connection, now, session)
            return beats, driver.carry_out(connection, cancelled_among(claims))

        beats, cancelled = await self._write(beat)
        self._watch.note(beats)
        return cancelled

    async def end_session(self, session: int) -> None:
        """Release what the session still holds, uncharged, and forget it; safe to repeat."""
        await self._write(sessions.end, session)
        lock = self._session_locks.pop(session, None)
        if lock:
            lock.path.unlink(missing_ok=True)
            lock.close()

    async def begin_run(self, session: int, kind: str, settings: dict[str, Any], *, role: Role = Role.RUN) -> Run:
        """Join the pass of a live run of the kind, or take the pass that belongs to the role; see the contract."""
        return await self._write(sessions.begin_run, self._watch.silent, session, kind, settings, role)

    async def enqueue(self, kind: str, entries: Sequence[Entry], *, pass_: int, request: int, batch: str) -> Enqueued:
        """Enqueue records in transactions of 1,000; see the contract.

        Raises:
            DuplicateKey: a key came before in this pass with other content; entries before it are stored.
            InputError: a key has a NUL or a lone surrogate; nothing of ``entries`` is stored.
        """
        require_keys(entries)
        target = EnqueueTarget(kind, pass_, request, batch)
        sum_ = Enqueued()
        for start in range(0, len(entries), CHUNK):
            chunk = entries[start : start + CHUNK]
            enqueued, duplicate = await self._write(enqueueing.enqueue, target, chunk)
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
        """Take at most ``limit`` claimable jobs; see the contract. A claim that is cancelled puts back what it took.

        A power cut may undo a claim that was not settled; its job is pending then, as after the death of this process.
        A settlement that reached the disk has all claims before it on the disk too.
        """
        taken: list[claiming.Taken] = []

        def take(connection: sqlite3.Connection, now: float) -> None:
            taken[:] = claiming.claim(connection, now, session, kind, pass_, limit, fresh_only, only)

        try:
            await self._patiently(self._lightly, take)
            with translated(self.path):
                return [claiming.read_job(row) for row in taken]
        except asyncio.CancelledError:
            self._in_background(self._write(settling.hand_back, taken))
            raise

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settlement]:
        """Write decisions in one transaction; returns those that came too late (the fence).

        Raises:
            StoreError: an answer is not valid JSON; nothing is written.
        """
        return await self._write(settling.settle, ready(settlements))

    async def answer_claimed(self, claimed: Sequence[Job]) -> list[Job]:
        """Settle those claims for which a duplicate has an answer; see the contract."""
        return await self._write(duplicate_answers.answer_claimed, claimed)

    async def answer_pending(self, answered: Sequence[Job]) -> int:
        """Give the answers of these jobs to their pending duplicates, 10,000 at most; returns how many got one."""
        return await self._write(duplicate_answers.answer_pending, answered)

    async def reap(self) -> int:
        """Put back what dead sessions held; returns how many jobs."""
        silent = self._watch.silent
        count = await self._write(sessions.reap, self.path, silent)
        self._watch.forget(silent)
        return count

    async def left(self, kind: str, pass_: int, *, only: Sequence[int] | None = None) -> Left:
        """What a pass still has to do; ``only``: among these rows."""
        return await self._read(claiming.left, kind, pass_, self._clock(), only)

    async def prune(self, kind: str, before: str) -> Pruned:
        """Drop the payloads of jobs that were done before a time, and make the file smaller.

        Raises:
            StoreError: a run is alive; nothing is dropped.
        """
        return await self._patiently(self._rewrite, kind, before)

    async def reserve(self, target: str, buckets: Sequence[Bucket], calls: Sequence[Cost], owed: Cost) -> Reserved:
        """Reserve calls to a target; see the contract. A power cut may forget them: by then they are out of date."""
        return await self._patiently(self._lightly, self._by_ticks(limiting.take, target, buckets, calls, owed))

    async def penalize(self, target: str, seconds: float) -> None:
        """Let a target rest, for all processes on the store."""
        await self._patiently(self._lightly, self._by_ticks(limiting.penalize, target, seconds))

    async def end_rest(self, target: str) -> None:
        """Forget that a target rests."""
        await self._write(limiting.end_rest, target)

    async def orders(self, kind: str, target: str) -> LiveOrders:
        """What a live run of the kind against a target follows now."""

        def orders(connection: sqlite3.Connection) -> LiveOrders:
            settings = driver.carry_out(connection, live_settings(kind))
            return LiveOrders(settings, limiting.resting(connection, self._ticks(), target))

        return await self._read(orders)

    async def _carry_out(self, access: Access, begin: Callable[[], Query[T]]) -> T:
        if not access.writes:
            return await super()._carry_out(access, begin)

        def carry_out(connection: sqlite3.Connection, now: float) -> T:
            return driver.carry_out(connection, begin(), now)

        if access.lightly:
            return await self._patiently(self._lightly, carry_out)
        return await self._write(carry_out)

    def _by_ticks(
        self, verb: Callable[Concatenate[sqlite3.Connection, float, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Callable[[sqlite3.Connection, float], T]:
        """A verb that gets the ticks instead of the time of day."""
        return lambda connection, now: verb(connection, self._ticks(), *args, **kwargs)

    async def _write(
        self, verb: Callable[Concatenate[sqlite3.Connection, float, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._patiently(
            self._transact, lambda connection, now: verb(connection, now, *args, **kwargs), checkpoint=True
        )

    async def _patiently(
        self, step: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a step on the connection's thread, and again while another process is in the way."""
        with suppress(Busy):  # most often none is, and tenacity costs more than the step
            return await self._thread.run(step, *args, **kwargs)
        return await self._retrying.copy(before_sleep=self._long_wait_notice())(self._thread.run, step, *args, **kwargs)

    def _long_wait_notice(self) -> Callable[[RetryCallState], None]:
        """A function for the pauses of one wait, which tells the user once that it takes long."""
        told = False

        def tell(state: RetryCallState) -> None:
            nonlocal told
            busy = state.outcome.exception() if state.outcome else None
            if busy and not told and (state.seconds_since_start or 0.0) >= _SILENT_FOR:
                told = True
                self._waits(str(busy.args[0]))

        return tell

    def _lightly(self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection, float], T]) -> T:
        """Do ``work`` in a transaction that does not wait for the disk: a power cut may undo it."""
        (durability,) = connection.execute("PRAGMA synchronous").fetchone()
        connection.execute("PRAGMA synchronous = NORMAL")
        try:
            return self._transact(connection, work, checkpoint=False)
        finally:
            connection.execute(f"PRAGMA synchronous = {durability}")

    def _transact(
        self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection, float], T], *, checkpoint: bool
    ) -> T:
        """Do ``work`` in one transaction. It is one call on the thread, so that nothing can leave it open."""
        with translated(self.path), self._write_lock.held(_PATIENCE):
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES if checkpoint else 0}")
            with transaction(connection):
                now = self._clock()
                if now < self._latest - _CLOCK_STEP:
                    sessions.end_overlong_waits(connection, now)
                result = work(connection, now)
            self._latest = now
            if checkpoint:
                self._shrink_wal(connection)
        return result

    def _prepare(self, connection: sqlite3.Connection, durability: str) -> None:
        with translated(self.path), self._write_lock.held(_PATIENCE):
            prepare(connection, self.path, durability)
        connection.executescript(enqueueing.SEEN)

    def _rewrite(self, connection: sqlite3.Connection, kind: str, before: str) -> Pruned:
        with translated(self.path), self._write_lock.held(_PATIENCE):
            return upkeep.prune(connection, self.path, kind, before)

    def _shrink_wal(self, connection: sqlite3.Connection) -> None:
        """Wait briefly for the readers that let the WAL grow. Everything is committed, so that failing does no harm."""
        if time.monotonic() < self._next_shrink:
            return
        with suppress(OSError, sqlite3.Error):
            if beside(self.path, "wal").stat().st_size > _LARGE_WAL:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._next_shrink = time.monotonic() + _SHRINK_EVERY

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        with translated(self.path), self._write_lock.held(_PATIENCE):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that only ``close`` waits for."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

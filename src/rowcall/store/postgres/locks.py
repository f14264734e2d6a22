"""Advisory locks: one shows that a session is alive, others are for those who number things of a kind or reserve."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Self

import psycopg

from rowcall.store.postgres.pool import Connection, fetched

SESSIONS = 0x726F7763
"""The first half of the lock of a session ("rowc"); the other half is its number."""

_TAKE = "SELECT pg_try_advisory_lock(%s, %s)"
# The lock of a process that ends is free at once. One that is only cut off keeps it as long as its beats may be late.
_KEEP_IF_CUT_OFF = "SELECT set_config('tcp_user_timeout', %s, false)"
# Whoever finds the lock free twice can tell from the new beat that it was held in between.
_SAY_SO = "UPDATE rowcall.sessions SET beat = beat + 1 WHERE id = %s"
_GIVE = "SELECT pg_advisory_unlock_all()"
_KIND = "SELECT pg_advisory_xact_lock(hashtextextended('rowcall kind ' || %s, 0))"
_TARGET = "SELECT pg_advisory_xact_lock(hashtextextended('rowcall target ' || %s, 0))"

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
"""Seconds between two tries to take the lock of a session again."""
_AT_LEAST = 15.0
"""Seconds after which a server notices a broken connection, at the earliest."""
_GIVING = 1.0
"""Seconds to wait for the server to confirm that the lock is given up."""


ALL_BACK = 20.0
"""Seconds after which everyone has taken the locks again that a server lost."""
LOOKS_APART = 2.0
"""A session is dead if two checks this many seconds apart find its lock free."""


async def lock_kind(connection: Connection, kind: str) -> None:
    """Keep others from numbering things of a kind until the end of the transaction."""
    await connection.execute(_KIND, (kind,))


async def lock_target(connection: Connection, target: str) -> None:
    """Keep others from changing the limits of a target until the end of the transaction."""
    await connection.execute(_TARGET, (target,))


class SessionLock:
    """The lock of a session, held by a connection of its own for as long as the process lives.

    If the connection breaks, a new one takes the lock again: others see it free for less than a second. If the network
    is cut, the server keeps the lock for ``lease`` seconds.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], session: int, lease: float) -> None:
        self._connect = connect
        self._session = session
        self._patience = str(round(max(lease, _AT_LEAST) * 1000))
        self._first_try: asyncio.Event = asyncio.Event()
        self._held = self._was_lost = False
        self._sure_at = float("-inf")
        self._keeping = asyncio.ensure_future(self._keep())

    @classmethod
    async def held(cls, connect: Callable[[], Awaitable[Connection]], session: int, lease: float) -> Self:
        """The lock, after the first try to take it."""
        lock = cls(connect, session, lease)
        await lock._first_try.wait()
        return lock

    @property
    def is_held(self) -> bool:
        """Whether it is held now, as far as this process knows."""
        return self._held

    @property
    def is_sure(self) -> bool:
        """Whether it is held and was not lost lately. If so, other locks that are free were not lost with it."""
        return self._held and time.monotonic() >= self._sure_at

    async def close(self) -> None:
        """Free the lock; safe to repeat."""
        self._keeping.cancel()
        await asyncio.gather(self._keeping, return_exceptions=True)

    async def _keep(self) -> None:
        while True:
            with suppress(psycopg.Error, OSError):
                await self._hold()
            self._was_lost |= self._held
            self._held = False
            self._first_try.set()
            await asyncio.sleep(random.uniform(_SHORTEST_PAUSE, _LONGEST_PAUSE))  # noqa: S311  spreads them; no secret

    async def _hold(self) -> None:
        """Take the lock and hold it until the connection breaks. A broken connection may hold it a little longer."""
        connection = await self._connect()
        try:
            await connection.execute(_KEEP_IF_CUT_OFF, (self._patience,))
            (self._held,) = await fetched(connection, _TAKE, (SESSIONS, self._session))
            self._first_try.set()
            if self._held:
                self._sure_at = time.monotonic() + (ALL_BACK if self._was_lost else 0.0)
                await connection.execute(_SAY_SO, (self._session,))
                async for _ in connection.notifies():
                    pass
        finally:
            await _give(connection)


class LockWatch:
    """Which other sessions' locks were free at two checks, with no beat in between.

    One check is not enough: a server that restarts and a backend that is killed free the locks of sessions that are
    alive. These take them again within a second.
    """

    def __init__(self, apart: float = LOOKS_APART, clock: Callable[[], float] = time.monotonic) -> None:
        self._apart = apart
        self._clock = clock
        self._since: dict[int, tuple[int, float]] = {}

    def note(self, unlocked: dict[int, int]) -> None:
        """Note the result of one check: sessions whose lock is free, with their beats."""
        now = self._clock()
        before = self._since
        self._since = {
            session: before[session] if session in before and before[session][0] == beat else (beat, now)
            for session, beat in unlocked.items()
        }

    @property
    def dead(self) -> dict[int, int]:
        """Sessions whose lock had been free for long enough at the last check, with their beats."""
        return {session: beat for session, (beat, _) in self._since.items() if self._until(session) <= 0}

    @property
    def ripe_in(self) -> float:
        """Seconds until another check may find more of them dead; 0.0 if there is nothing to wait for."""
        return max((self._until(session) for session in self._since), default=0.0)

    def _until(self, session: int) -> float:
        return self._since[session][1] + self._apart - self._clock()


async def _give(connection: Connection) -> None:
    """Free the locks of a connection at once: if it were only closed, they would be held until its backend notices."""
    giving = asyncio.ensure_future(connection.execute(_GIVE))
    await asyncio.wait([giving], timeout=_GIVING)
    await connection.close()
    giving.cancel()  # only now: with a connection, the driver would ask the server to cancel, and the server may hang
    await asyncio.gather(giving, return_exceptions=True)

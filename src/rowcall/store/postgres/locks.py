"""Advisory locks: one that says that a session is alive, and one for everybody who numbers things of a kind."""

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
# A process that ends frees its lock at once. One that is only cut off keeps it for as long as its beats may be late.
_KEEP_IF_CUT_OFF = "SELECT set_config('tcp_user_timeout', %s, false)"
# Whoever found it free at two looks learns by this that it was held in between.
_SAY_SO = "UPDATE rowcall.sessions SET beat = beat + 1 WHERE id = %s"
_GIVE = "SELECT pg_advisory_unlock_all()"
_KIND = "SELECT pg_advisory_xact_lock(hashtextextended('rowcall kind ' || %s, 0))"
_TARGET = "SELECT pg_advisory_xact_lock(hashtextextended('rowcall target ' || %s, 0))"

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
"""Seconds between two tries to have the lock of a session again."""
_AT_LEAST = 15.0
"""Seconds after which a server notices a connection that is cut, at the soonest."""
_GIVING = 1.0
"""Seconds for giving it up in good order."""


ALL_BACK = 20.0
"""Seconds within which everybody has a lock again that a server lost: to notice takes 14 s at most, to connect 10 s."""
LOOKS_APART = 2.0
"""Seconds between two looks that find the lock of a session free, before it is dead."""


async def lock_kind(connection: Connection, kind: str) -> None:
    """Be the only one to number things of a kind, to the end of the transaction."""
    await connection.execute(_KIND, (kind,))


async def lock_target(connection: Connection, target: str) -> None:
    """Be the only one to reckon with a target's limits, to the end of the transaction."""
    await connection.execute(_TARGET, (target,))


class SessionLock:
    """The lock of a session, held by a connection of its own for as long as the process lives.

    Where the connection breaks, a new one takes it again: others see it free for less than a second. Where the network
    is cut, the server holds it for ``lease`` seconds.
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
        """The lock, after the first try to have it."""
        lock = cls(connect, session, lease)
        await lock._first_try.wait()
        return lock

    @property
    def is_held(self) -> bool:
        """Whether it is held now, as far as this side knows."""
        return self._held

    @property
    def is_sure(self) -> bool:
        """It is held, and was not lost lately: a lock that is free now, others have not lost in the same way."""
        return self._held and time.monotonic() >= self._sure_at

    async def close(self) -> None:
        """Give it up; safe to repeat."""
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
        """Take it and hold it until the connection breaks; a broken one of ours may hold it a little longer."""
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
    """Which other sessions' locks were free at two looks, with no beat in between.

    One look is not enough: a server that starts anew, and a backend that is killed, free locks of the living, who
    have them again within a second.
    """

    def __init__(self, apart: float = LOOKS_APART, clock: Callable[[], float] = time.monotonic) -> None:
        self._apart = apart
        self._clock = clock
        self._since: dict[int, tuple[int, float]] = {}

    def note(self, unlocked: dict[int, int]) -> None:
        """Take in one look: sessions whose lock is free, with their beats."""
        now = self._clock()
        before = self._since
        self._since = {
            session: before[session] if session in before and before[session][0] == beat else (beat, now)
            for session, beat in unlocked.items()
        }

    @property
    def dead(self) -> dict[int, int]:
        """Those whose lock has been free for long enough, at the last look, with their beats."""
        return {session: beat for session, (beat, _) in self._since.items() if self._until(session) <= 0}

    @property
    def ripe_in(self) -> float:
        """Seconds until another look may show more of them dead; 0.0 where there is nothing to wait for."""
        return max((self._until(session) for session in self._since), default=0.0)

    def _until(self, session: int) -> float:
        return self._since[session][1] + self._apart - self._clock()


async def _give(connection: Connection) -> None:
    """Give the locks of a connection up at once: where it is only closed, they go when its backend notices."""
    giving = asyncio.ensure_future(connection.execute(_GIVE))
    await asyncio.wait([giving], timeout=_GIVING)
    await connection.close()
    giving.cancel()  # now that there is no connection: else the driver would ask the server to, which may stand still
    await asyncio.gather(giving, return_exceptions=True)

"""Where claims begin to look for never-called jobs while another transaction is open for long.

The index entries of claimed jobs are dead, but stay in the index while any open transaction may still see them. They
stand before the entries of the jobs that are left, so that each claim is slower than the one before. Claims then begin
behind the last job that was taken, and only seldom at the start.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rowcall.store.postgres.claiming import Taken
from rowcall.store.postgres.pool import Connection

SLOW = 0.005
"""A claim that takes this many seconds is slow, and the reason is looked for."""
OLD = 5.0
"""A transaction that has been open for this many seconds is the reason."""
VERY_OLD = 60.0
"""The user is told of a transaction that has been open for this many seconds."""
_EVERY = 5.0
"""Seconds between two searches for an old transaction."""
_AGAIN_AFTER = 1.0
"""Claims begin at the start again after this many seconds at the earliest."""
_SHARE = 0.002
"""The largest share of the time that claims from the start may take."""

# Without pg_read_all_stats, a role sees of the sessions of others only that they exist: they may be old.
_OLDEST = """
    SELECT pid, extract(epoch FROM clock_timestamp() - xact_start)::float8 FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
    AND (state IS NULL OR backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    ORDER BY xact_start LIMIT 1
"""

Aim = tuple[str, int]
"""A kind and a pass."""


class ClaimStarts:
    """The row behind which claims look, by kind and pass; 0 is the start."""

    def __init__(self, waits: Callable[[str], None], name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._waits = waits
        self._name = name
        self._clock = clock
        self._rows: dict[Aim, int] = {}
        self._from_start_at: dict[Aim, float] = {}
        self._asked_at = float("-inf")
        self._told: set[int] = set()

    def of(self, aim: Aim) -> int:
        """The row behind which to look now."""
        return self._rows.get(aim, 0) if self._clock() < self._from_start_at.get(aim, 0.0) else 0

    async def note(self, connection: Connection, aim: Aim, floor: int, taken: list[Taken], took: float) -> None:
        """Learn from a claim that looked behind ``floor`` and took ``took`` seconds."""
        fresh = [row for run_after, row, *_ in taken if run_after is None]
        if not floor and took >= SLOW and await self._held_up(connection):
            self._from_start_at[aim] = self._clock() + max(_AGAIN_AFTER, took / _SHARE)
            self._rows[aim] = 0
        if fresh:
            self._rows[aim] = max(self._rows.get(aim, 0), *fresh)

    async def _held_up(self, connection: Connection) -> bool:
        """Whether an old transaction is the reason; the user is told of a very old one, once."""
        if self._clock() < self._asked_at + _EVERY:
            return False
        self._asked_at = self._clock()
        pid, age = await _oldest(connection)
        if pid and age is not None and age >= VERY_OLD and pid not in self._told:
            self._told.add(pid)
            self._waits(
                f"{self._name}: process {pid} of the server has had a transaction open for {age:.0f} s, "
                "which makes claims slow: end it"
            )
        return pid is not None and (age is None or age >= OLD)


async def _oldest(connection: Connection) -> tuple[int | None, float | None]:
    """The process of the oldest transaction, and its age where that may be seen."""
    found = await (await connection.execute(_OLDEST)).fetchone()
    return found or (None, None)

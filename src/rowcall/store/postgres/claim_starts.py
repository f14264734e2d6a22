"""Where claims look for never-called jobs while somebody holds a transaction open.

What a claim takes stays in the index, dead, until no open transaction can see it any more. So in front of the jobs
that are left there are ever more dead entries for as long as one is open, and claims get slower with each. Then they
look behind the last one they took, and only seldom from the start.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rowcall.store.postgres.claiming import Taken
from rowcall.store.postgres.pool import Connection

SLOW = 0.005
"""Seconds of a claim from which it is asked why."""
OLD = 5.0
"""Seconds that a transaction has been open from which it is the reason."""
WORTH_SAYING = 60.0
"""Seconds from which people are told of it."""
_EVERY = 5.0
"""Seconds between two looks for such a transaction."""
_AGAIN_AFTER = 1.0
"""Seconds after which claims look from the start once more, at least."""
_SHARE = 0.002
"""The share of the time that looks from the start may take, at most."""

# Of others' sessions only a role with pg_read_all_stats sees more than that they are there: they may be old.
_OLDEST = """
    SELECT pid, extract(epoch FROM clock_timestamp() - xact_start)::float8 FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
    AND (state IS NULL OR backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    ORDER BY xact_start LIMIT 1
"""

Aim = tuple[str, int]
"""A kind and a pass."""


class ClaimStarts:
    """The rows behind which claims look, by kind and pass; 0 is the start."""

    def __init__(self, waits: Callable[[str], None], name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._waits = waits
        self._name = name
        self._clock = clock
        self._rows: dict[Aim, int] = {}
        self._from_start_at: dict[Aim, float] = {}
        self._asked_at = float("-inf")
        self._told: set[int] = set()

    def of(self, aim: Aim) -> int:
        """Where to look now."""
        return self._rows.get(aim, 0) if self._clock() < self._from_start_at.get(aim, 0.0) else 0

    async def note(self, connection: Connection, aim: Aim, floor: int, taken: list[Taken], took: float) -> None:
        """Learn from a claim that looked behind ``floor`` and took so many seconds."""
        fresh = [row for run_after, row, *_ in taken if run_after is None]
        if not floor and took >= SLOW and await self._held_up(connection):
            self._from_start_at[aim] = self._clock() + max(_AGAIN_AFTER, took / _SHARE)
            self._rows[aim] = 0
        if fresh:
            self._rows[aim] = max(self._rows.get(aim, 0), *fresh)

    async def _held_up(self, connection: Connection) -> bool:
        """Whether an old transaction is the reason; people are told of a very old one, once."""
        if self._clock() < self._asked_at + _EVERY:
            return False
        self._asked_at = self._clock()
        pid, age = await _oldest(connection)
        if pid and age is not None and age >= WORTH_SAYING and pid not in self._told:
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

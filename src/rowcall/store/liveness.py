"""How it is told that a session is dead, whatever the store is made of."""

from __future__ import annotations

import math
from collections.abc import Iterable

BEATS_A_LEASE = 12
"""A session silent for that many beats of a watcher is dead."""
LONGEST_BEAT = 5.0
"""Seconds between two beats, at most."""
SUSPECT = 3
"""Crashes after which a job runs alone."""
SUSPECT_WAITS = 1.0
"""Seconds that a suspect waits after each: processes that are killed one after the other do not all meet it."""
POISON = 5
"""Crashes after which a job is failed."""
ANY_NUMBER = 2**31 - 1
"""More crashes than any job has."""


class SilenceWatch:
    """Which other sessions' counters stood still for a lease, told by a watcher's own committed beats."""

    def __init__(self, lease: float) -> None:
        self._longest = max(BEATS_A_LEASE, math.ceil(lease / LONGEST_BEAT))
        self._seen: dict[int, tuple[int, int]] = {}

    def note(self, counters: dict[int, int]) -> None:
        """Take in the counters of one own beat."""
        self._seen = {session: self._next(session, counter) for session, counter in counters.items()}

    def forget(self, sessions: Iterable[int]) -> None:
        """Count anew for sessions that were reaped: one may come back."""
        for session in sessions:
            self._seen.pop(session, None)

    @property
    def silent(self) -> dict[int, int]:
        """Sessions that are dead by their beats, with the counters they stopped at: one that counts on is alive."""
        return {session: counter for session, (counter, still) in self._seen.items() if still >= self._longest}

    def _next(self, session: int, counter: int) -> tuple[int, int]:
        before, still = self._seen.get(session, (counter, -1))
        return counter, still + 1 if counter == before else 0

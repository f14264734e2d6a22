"""How a session is found to be dead, in any store."""

from __future__ import annotations

import math
from collections.abc import Iterable

BEATS_A_LEASE = 12
"""A session that is silent for this number of a watcher's beats is dead."""
LONGEST_BEAT = 5.0
"""Seconds between two beats, at most."""
SUSPECT = 3
"""Crashes after which a job runs alone."""
SUSPECT_WAITS = 1.0
"""Seconds that such a job waits after a crash, so that it does not kill one process right after another."""
POISON = 5
"""Crashes after which a job is failed."""
ANY_NUMBER = 2**31 - 1
"""More crashes than any job has."""


class SilenceWatch:
    """Which other sessions have not beaten for a lease. Time is counted in the watcher's own committed beats."""

    def __init__(self, lease: float) -> None:
        self._longest = max(BEATS_A_LEASE, math.ceil(lease / LONGEST_BEAT))
        self._seen: dict[int, tuple[int, int]] = {}

    def note(self, counters: dict[int, int]) -> None:
        """Note the counters that were read with a beat of one's own."""
        self._seen = {session: self._next(session, counter) for session, counter in counters.items()}

    def forget(self, sessions: Iterable[int]) -> None:
        """Start counting again for sessions that were reaped: one may come back."""
        for session in sessions:
            self._seen.pop(session, None)

    @property
    def silent(self) -> dict[int, int]:
        """Sessions that are dead, with the counter at which each stopped: one that counts on is alive."""
        return {session: counter for session, (counter, still) in self._seen.items() if still >= self._longest}

    def _next(self, session: int, counter: int) -> tuple[int, int]:
        before, still = self._seen.get(session, (counter, -1))
        return counter, still + 1 if counter == before else 0

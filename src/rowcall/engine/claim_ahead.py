"""How far ahead of the free slots jobs are claimed, so that no slot waits for the store. Pure; monotonic seconds."""

from __future__ import annotations

WITHIN = 0.1
"""Seconds: what leaves within them, at the speed since the last claim, is claimed ahead."""
MOST = 16
"""But no more than so many, nor one for each slot: where the process dies, each is one crash of its record."""
_SHORTEST = 0.001


class ClaimAhead:
    """The speed at which calls leave, and the claims that it is worth."""

    def __init__(self) -> None:
        self._left = 0
        self._since = float("-inf")

    def leave(self) -> None:
        """A call leaves."""
        self._left += 1

    def ahead(self, slots: int, now: float) -> int:
        """How many jobs may wait beside so many slots; a quarter of them at any speed."""
        soon = self._left * WITHIN / max(now - self._since, _SHORTEST)
        return max(slots // 4, min(MOST, slots, int(soon)))

    def claim(self, now: float) -> None:
        """Jobs are claimed: what leaves from now on counts."""
        self._left, self._since = 0, now

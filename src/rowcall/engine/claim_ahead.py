"""Decides how many jobs to claim beyond the free slots, so that no slot waits for the store. Pure."""

from __future__ import annotations

WITHIN = 0.1
"""Seconds: as many jobs are claimed ahead as would leave within them, at the speed since the last claim."""
MOST = 16
"""Jobs claimed ahead for speed, at most, and never more than slots: if the process dies, each counts as one crash of
its record."""
_SHORTEST = 0.001


class ClaimAhead:
    """Measures how fast calls leave, and how many claims that is worth."""

    def __init__(self) -> None:
        self._left = 0
        self._since = float("-inf")

    def leave(self) -> None:
        """Note that a call leaves."""
        self._left += 1

    def ahead(self, slots: int, now: float) -> int:
        """Return how many jobs to keep claimed beyond ``slots``: a quarter of them, or more at high speed."""
        soon = self._left * WITHIN / max(now - self._since, _SHORTEST)
        return max(slots // 4, min(MOST, slots, int(soon)))

    def claim(self, now: float) -> None:
        """Note that jobs are claimed: the speed is measured from now on."""
        self._left, self._since = 0, now

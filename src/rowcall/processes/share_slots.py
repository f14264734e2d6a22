"""Who may have how many of the calls that may be in flight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holding:
    """What one process may use now.

    Attributes:
        granted: calls in flight that it was told last.
        obeyed: those that it has heard of.
        busy: calls in flight.
    """

    granted: int
    obeyed: int
    busy: int

    @property
    def most(self) -> int:
        """Calls that it may have in flight at this moment."""
        return max(self.granted, self.obeyed, self.busy)

    @property
    def has_heard(self) -> bool:
        """No word to it is on its way."""
        return self.granted == self.obeyed


def grants(total: int, holdings: Sequence[Holding]) -> list[int]:
    """What each is told next: an even share; more than it has only as far as others have let go of it.

    So all together never have more than ``total`` in flight, or than they had when it fell.
    """
    even = [total // len(holdings) + (n < total % len(holdings)) for n in range(len(holdings))]
    free = total - sum(held.most for held in holdings)
    told = []
    for held, share in zip(holdings, even, strict=True):
        next_ = min(share, held.granted + max(0, free)) if held.has_heard else held.granted
        free -= max(0, next_ - held.granted)
        told.append(next_)
    return told

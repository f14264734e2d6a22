"""Divides the calls that a run may have in flight among its processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessSlots:
    """The slots of one process.

    Attributes:
        granted: the number that was last sent to it.
        acknowledged: the number that it last confirmed.
        busy: its calls in flight.
    """

    granted: int
    acknowledged: int
    busy: int

    @property
    def most(self) -> int:
        """The most calls that it can have in flight at this moment."""
        return max(self.granted, self.acknowledged, self.busy)

    @property
    def confirmed(self) -> bool:
        """Whether it has confirmed the number that was last sent to it."""
        return self.granted == self.acknowledged


def share_slots(total: int, processes: Sequence[ProcessSlots]) -> list[int]:
    """Return the number of slots to send to each process next: an even share of ``total``.

    A process gets more slots only once others have given them up. So all processes together never have more than
    ``total`` calls in flight, or, after ``total`` was lowered, more than they had before.
    """
    even = [total // len(processes) + (n < total % len(processes)) for n in range(len(processes))]
    free = total - sum(each.most for each in processes)
    shares = []
    for each, share in zip(processes, even, strict=True):
        next_ = min(share, each.granted + max(0, free)) if each.confirmed else each.granted
        free -= max(0, next_ - each.granted)
        shares.append(next_)
    return shares

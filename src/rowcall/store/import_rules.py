"""What becomes of answers that were made elsewhere: the same in every store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rowcall.model.job import Job
from rowcall.model.outcome import Action, Settlement
from rowcall.store.types import Arrived, Fate

Asked = tuple[int, str]
"""A request and an input_hash."""


@dataclass(frozen=True, slots=True)
class Found:
    """A job, and what was handed out of it and not answered; ``known`` where something was handed out at all."""

    row: int
    status: str
    epoch: int
    now: Asked
    open: tuple[Asked, ...]
    known: bool

    @classmethod
    def of(cls, row: int, status: str, epoch: int, now: Asked, notes: Iterable[tuple[Asked, bool]]) -> Found:
        """A job as it stands, with the notes of what was handed out, and whether that was answered."""
        kept = list(notes)
        return cls(row, status, epoch, now, tuple(asked for asked, answered in kept if not answered), bool(kept))


@dataclass(frozen=True, slots=True)
class Taken:
    """An answer on its way into the store, and what it is an answer to."""

    found: Found
    arrived: Arrived
    asked: Asked

    @property
    def current(self) -> bool:
        """It answers what its job asks now; else it is kept, as a late one is."""
        return self.asked == self.found.now

    @property
    def settlement(self) -> Settlement:
        """As after a claim of this very moment."""
        claimed = Job(self.found.row, self.arrived.key, self.found.epoch + 1, 0, 0, (), True, *self.asked, {})
        return Settlement(claimed, self.arrived.action, outcome=self.arrived.outcome)


def fate(found: Found | None, action: Action, adopted: Callable[[int, int], bool]) -> Fate:
    """What becomes of an answer; ``adopted`` tells whether answers to one request count for another."""
    if found is None:
        return Fate.UNKNOWN
    if found.status == "running":
        return Fate.RUNNING
    if found.known and not found.open:
        return Fate.BEFORE
    if len(found.open) > 1 or (found.open and not _same(found.open[0], found.now, adopted)):
        return Fate.CHANGED
    if found.status == "done" or (found.status == "failed" and action is Action.FAIL):
        return Fate.BEFORE
    return {Action.DONE: Fate.DONE, Action.FAIL: Fate.FAILED}.get(action, Fate.AGAIN)


def _same(asked: Asked, now: Asked, adopted: Callable[[int, int], bool]) -> bool:
    """Whether an answer to what was asked answers what is asked now."""
    return asked[1] == now[1] and (asked[0] == now[0] or adopted(asked[0], now[0]))


def taken(found: Found | None, arrived: Arrived, met: Fate) -> Taken | None:
    """What is to be written of an answer that met this fate."""
    if found is None:
        return None
    if met in (Fate.DONE, Fate.FAILED):
        return Taken(found, arrived, found.now)
    if met is Fate.CHANGED and arrived.action is Action.DONE and len(found.open) == 1:
        return Taken(found, arrived, found.open[0])
    return None

"""Why and when a run ends."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from rowcall.config.units import FailureLimit
from rowcall.failures.gate import Gate
from rowcall.model.events import Settled
from rowcall.model.job import Job
from rowcall.model.outcome import Action, Failure, FailureClass, Settlement


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a run ended.

    Attributes:
        reason: ``done``, ``limit``, ``interrupted``, ``terminated``, ``hung_up``, ``unreachable``, ``offline``,
            ``max_failures``, ``max_cost``, ``input``, ``disk_full``, or the reason code of the failure that stopped it,
            such as ``bad_key`` or ``no_credit``.
        message: one line for a person.
        failure: what stopped it, where it was a call.
    """

    reason: str
    message: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class StopLimits:
    """How much trouble a run bears, and how it stops.

    Attributes:
        first_success: seconds of trouble after which a run stops if nothing has ever succeeded in it, 60.
        offline_for: seconds that an outage may last; None: any time.
        max_failures: failed records that a run may have; None: any number.
        grace: seconds for which calls in flight are waited for when the run stops, 30.
    """

    first_success: float = 60.0
    offline_for: float | None = None
    max_failures: FailureLimit | None = None
    grace: float = 30.0

    def lost_with(self, gate: Gate, now: float, *, answers_due: bool) -> Ending | None:
        """Return why the run ends because of its target; None: it does not. ``answers_due``: calls are in flight."""
        return self._never_reached(gate, now, answers_due) or self._offline_too_long(gate, now)

    def _never_reached(self, gate: Gate, now: float, answers_due: bool) -> Ending | None:
        trouble = gate.trouble
        if trouble is None or (answers_due and gate.closed is None) or now < trouble.since + self.first_success:
            return None
        reason = "unreachable" if trouble.cause.cls is FailureClass.NOT_SENT else trouble.cause.reason
        return Ending(reason, trouble.cause.message, trouble.cause)

    def _offline_too_long(self, gate: Gate, now: float) -> Ending | None:
        outage = gate.closed
        if outage is None or self.offline_for is None or now < outage.since + self.offline_for:
            return None
        message = f"offline for {now - outage.since:.0f}s ([stop] offline_for): {outage.cause.message}"
        return Ending("offline", message, outage.cause)


class FailureCount:
    """Counts the failed records of a run against the number that it may have."""

    def __init__(self, most: FailureLimit | None) -> None:
        self._most = most
        self._settled = 0
        self._failed = 0

    def note(self, settlement: Settlement | Settled) -> Ending | None:
        """Count a settled record; returns why the run ends, if this was one failure too many."""
        self._settled += settlement.action in (Action.DONE, Action.FAIL)
        self._failed += settlement.action is Action.FAIL
        if self._most is None or settlement.action is not Action.FAIL:
            return None
        if not self._most.passed(self._failed, self._settled):
            return None
        said = f"{self._failed:,} of {self._settled:,} records failed, more than [stop] max_failures allows"
        return Ending("max_failures", f"{said} ({self._most})")


@dataclass(slots=True)
class RecordLimit:
    """The records that a limited run (``--limit``) has begun.

    Attributes:
        limit: records that the run may begin; None: any number.
        begun: the rows of all records begun.
        open: the rows of those that have not ended, and the monotonic time at which each may be claimed again.
    """

    limit: int | None
    begun: set[int] = field(default_factory=set)
    open: dict[int, float] = field(default_factory=dict)

    def most(self, want: int) -> int:
        """Return how many of the wanted claims the limit allows."""
        return want if self.limit is None or self.full else min(want, self.limit - len(self.begun))

    @property
    def full(self) -> bool:
        """No further record may be begun."""
        return self.limit is not None and len(self.begun) >= self.limit

    @property
    def reached(self) -> bool:
        """No further record may be begun, and all that were begun have ended."""
        return self.full and not self.open

    @property
    def only(self) -> tuple[int, ...] | None:
        """The rows that may still be claimed; None: any."""
        return tuple(self.open) if self.full else None

    def begin(self, job: Job) -> None:
        """Note that a record was claimed."""
        if self.limit is not None:
            self.begun.add(job.row)
            self.open[job.row] = math.inf

    def settle(self, settlement: Settlement, now: float) -> None:
        """Note that a record has ended, or waits for its next attempt."""
        if settlement.action in (Action.DONE, Action.FAIL):
            self.forget(settlement.job.row)
        elif settlement.job.row in self.open:
            self.open[settlement.job.row] = now + (settlement.wait or 0.0)

    def forget(self, row: int) -> None:
        """Note that a record ended elsewhere."""
        self.open.pop(row, None)

"""How a live run goes, for whoever looks from another terminal: its speed now, and what holds it up."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from rowcall.engine.worker import Worker
from rowcall.failures.gate import Gate
from rowcall.limits.outlook import Outlook
from rowcall.limits.rate import Rate
from rowcall.model.run_stats import RunStats

OVER = 10.0
"""Seconds that the rate is taken over."""
WORTH_SAYING = 1.0
"""Seconds of waiting for a limit from which it is what holds a run up."""


@dataclass(frozen=True, slots=True)
class HeldUp:
    """What keeps calls from leaving.

    Attributes:
        by: ``paused``, ``offline``, ``resting`` (as the API asked) or ``rate limit`` (as the config says).
        cause: one line; empty where there is nothing to add.
        since: when it began, ISO-8601 UTC; None where that is not known.
        until: when the next call leaves, or the next probe; None where that is not known.
    """

    by: str
    cause: str = ""
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class HelperTotals:
    """The helpers of a run taken together: calls in flight, slots in force, and the most that they were given."""

    in_flight: int = 0
    slots: int = 0
    concurrency: int = 0


ALONE = HelperTotals()


class LiveStatus:
    """Reads a run's parts.

    Args:
        tally: what it did.
        worker: its calls in flight.
        gate: whether it is offline.
        rate: whether it rests.
        outlook: whether it is paused or waits for a limit.

    Attributes:
        others: the helpers of the run, as they are now.
    """

    def __init__(self, tally: RunStats, worker: Worker, gate: Gate, rate: Rate, outlook: Outlook) -> None:
        self._tally = tally
        self._worker = worker
        self._gate = gate
        self._rate = rate
        self._outlook = outlook
        self.others = ALONE
        self._samples: deque[tuple[float, int]] = deque([(monotonic(), 0)])

    def read(self) -> dict[str, Any]:
        """JSON values: ``at``, ``rate_per_s``, ``in_flight``, ``concurrency``, ``held_up``."""
        held_up = self.held_up
        return {
            "at": _moment(0.0),
            "rate_per_s": round(self._speed(), 3),
            "in_flight": self._worker.in_flight + self.others.in_flight,
            "concurrency": self._worker.concurrency + self.others.concurrency,
            "held_up": asdict(held_up) if held_up else None,
        }

    @property
    def held_up(self) -> HeldUp | None:
        """What keeps calls from leaving now."""
        now = monotonic()
        if self._outlook.paused:
            return HeldUp("paused")
        if closed := self._gate.closed:
            probe = None if closed.probe_at is None else _moment(closed.probe_at - now)
            return HeldUp("offline", closed.cause.message, _moment(closed.since - now), probe)
        if self._rate.resting_until > now:
            return HeldUp("resting", self._worker.rest_cause, until=_moment(self._rate.resting_until - now))
        if (wait := self._outlook.free_at - now) > WORTH_SAYING:
            return HeldUp("rate limit", until=_moment(wait))
        return None

    def _speed(self) -> float:
        """Records done in a second, lately."""
        now = monotonic()
        self._samples.append((now, self._tally.done))
        while len(self._samples) > 2 and self._samples[1][0] < now - OVER:
            self._samples.popleft()
        (then, before), (_, done) = self._samples[0], self._samples[-1]
        return (done - before) / (now - then) if now > then else 0.0


def _moment(seconds: float) -> str:
    """The time of day so many seconds from now."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

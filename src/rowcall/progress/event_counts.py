"""What a display knows from the events of a run: calls under way, records that wait for another try, the speed."""

from __future__ import annotations

from collections import deque
from time import monotonic

from rowcall.model.events import CallBegan, CallDropped, CallEnded, Event, Resting, Settled, Slowed, Stopping
from rowcall.model.outcome import Action, Failure, Outcome, Success

SPEED_OVER = 30.0
"""Seconds that the shown speed is taken over, at most."""
AT_LEAST = 0.5
"""Seconds before there is a speed."""


class EventCounts:
    """A listener of a run's events.

    Attributes:
        calls: when each call under way began (monotonic seconds), by the key of its record, oldest first.
        retrying: records that failed and wait for another try.
        resting: why the API asked for the latest rest.
        slowed: why the API has fewer calls at a time, the latest cause.
        failing: what the latest call failed with, until one succeeds for the first time.
        stopping: the run takes no more records.
    """

    def __init__(self) -> None:
        self.calls: dict[str, float] = {}
        self.retrying: set[str] = set()
        self.resting = ""
        self.slowed = ""
        self.failing = ""
        self.succeeded = False
        self.stopping = False

    def __call__(self, event: Event) -> None:
        """Note an event."""
        match event:
            case CallBegan():
                self.calls[event.key] = monotonic()
                self.retrying.discard(event.key)
            case CallEnded():
                self.calls.pop(event.key, None)
                self._ended(event.outcome)
            case CallDropped():
                self.calls.pop(event.key, None)
            case Settled():
                self._settled(event)
            case Resting():
                self.resting = event.cause
            case Slowed():
                self.slowed = event.cause
            case Stopping():
                self.stopping = True
            case _:
                pass

    def _ended(self, outcome: Outcome) -> None:
        self.succeeded = self.succeeded or isinstance(outcome, Success)
        self.failing = outcome.message if isinstance(outcome, Failure) and not self.succeeded else ""

    def _settled(self, event: Settled) -> None:
        if event.action is Action.RETRY or (event.action is Action.RELEASE and event.outcome):
            self.retrying.add(event.key)
        else:
            self.retrying.discard(event.key)


class Speed:
    """How many a second, over the last half minute."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def note(self, now: float, number: int) -> None:
        """So many there are now."""
        self._samples.append((now, number))
        while len(self._samples) > 2 and self._samples[1][0] < now - SPEED_OVER:
            self._samples.popleft()

    def restart(self) -> None:
        """Forget what was: a time in which nothing could be done says nothing about the speed after it."""
        self._samples.clear()

    @property
    def per_second(self) -> float:
        """The speed; 0.0 while too little is known."""
        if not self._samples:
            return 0.0
        (then, before), (now, number) = self._samples[0], self._samples[-1]
        return (number - before) / (now - then) if now - then >= AT_LEAST else 0.0

"""Counts what a display shows from the events of a run: calls in flight, records to be retried, the speed."""

from __future__ import annotations

from collections import deque
from time import monotonic

from rowcall.model.events import CallBegan, CallDropped, CallEnded, Event, Resting, Settled, Slowed, Stopping
from rowcall.model.outcome import Action, Failure, Outcome, Success

SPEED_OVER = 30.0
"""The speed is an average over at most these seconds."""
AT_LEAST = 0.5
"""Seconds of measurement before a speed is shown."""


class EventCounts:
    """Listens to a run's events.

    Attributes:
        calls: the start of each call in flight (monotonic seconds) by the key of its record, oldest first.
        retrying: keys of records that failed and will be tried again.
        resting: why the API last asked for a rest.
        slowed: why the number of concurrent calls was last reduced.
        failing: the message of the latest failed call; empty once a call has succeeded.
        succeeded: a call has succeeded.
        stopping: the run starts no more records.
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
        """Count an event."""
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
    """The number of events per second over the last 30 seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def note(self, now: float, number: int) -> None:
        """Record the total at a time (monotonic seconds)."""
        self._samples.append((now, number))
        while len(self._samples) > 2 and self._samples[1][0] < now - SPEED_OVER:
            self._samples.popleft()

    def restart(self) -> None:
        """Forget the past, because a time without work says nothing about the speed after it."""
        self._samples.clear()

    @property
    def per_second(self) -> float:
        """The speed; 0.0 until there are enough measurements."""
        if not self._samples:
            return 0.0
        (then, before), (now, number) = self._samples[0], self._samples[-1]
        return (number - before) / (now - then) if now - then >= AT_LEAST else 0.0

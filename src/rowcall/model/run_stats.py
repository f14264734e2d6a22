"""Counts what a run has done, from its events; its memory does not grow with the length of the run."""

from __future__ import annotations

import math
from collections import Counter

from rowcall.model.events import CallEnded, Event, LateOutcome, RequestEnded, Settled, Shared
from rowcall.model.outcome import Action, Usage

_GROWTH = 1.02
"""Latencies are counted in classes 2 % wide, so a percentile is accurate to 1 %."""


class Latencies:
    """Computes percentiles of latencies, in seconds."""

    def __init__(self) -> None:
        self._classes: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """Add one latency."""
        self._classes[round(math.log(max(seconds, 1e-6), _GROWTH))] += 1

    def percentile(self, share: float) -> float | None:
        """Return the latency that ``share`` (0 to 1) of the calls did not exceed; None if there were no calls."""
        rank, seen = share * self._classes.total(), 0
        for number in sorted(self._classes):
            seen += self._classes[number]
            if seen >= rank:
                return float(_GROWTH**number)
        return None


class RunStats:
    """Counts one run; listens to its events.

    Attributes:
        calls: requests that ended.
        settled: the number of settlements by action; ``settled[Action.DONE]`` counts the records done in this run.
        by_status: requests by HTTP status, or by reason if there was no reply.
        usage: tokens and cost of all calls, including failed ones.
        latencies: of requests that were answered.
        late: outcomes that came after another session had taken over their claim.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.settled: Counter[Action] = Counter()
        self.by_status: Counter[str] = Counter()
        self.usage = Usage()
        self.latencies = Latencies()
        self.late = 0

    def __call__(self, event: Event) -> None:
        """Count an event."""
        match event:
            case RequestEnded():
                self._request(event)
            case CallEnded():
                self.usage += event.outcome.usage
            case Settled():
                self.settled[event.action] += 1
            case Shared():
                self.settled[Action.DONE] += event.count
            case LateOutcome():
                self.late += 1
            case _:
                pass

    @property
    def done(self) -> int:
        """Records done in this run."""
        return self.settled[Action.DONE]

    @property
    def failed(self) -> int:
        """Records failed in this run."""
        return self.settled[Action.FAIL]

    def _request(self, ended: RequestEnded) -> None:
        self.calls += 1
        self.by_status[str(ended.status or ended.reason)] += 1
        if ended.latency is not None:
            self.latencies.add(ended.latency)

"""How a live run is doing, as JSON in the store, for people who look from another terminal."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Any

from rowcall.engine.live_view import LiveView, moment

OVER = 10.0
"""Seconds over which the speed is measured."""


@dataclass(frozen=True, slots=True)
class HelperTotals:
    """The helper processes of a run taken together.

    Attributes:
        in_flight: their calls in flight.
        slots: calls that they may have in flight now.
        concurrency: calls in flight that they were granted.
    """

    in_flight: int = 0
    slots: int = 0
    concurrency: int = 0


class LiveStatus:
    """Measures the speed of a run and puts its status together."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque([(monotonic(), 0)])

    def read(self, view: LiveView, granted: int, done: int) -> dict[str, Any]:
        """Return JSON values: ``at``, ``rate_per_s``, ``in_flight``, ``concurrency``, ``held_up``.

        Args:
            view: how the run stands.
            granted: jobs that all its processes together may work on at a time.
            done: records done in this run.
        """
        return {
            "at": moment(0.0),
            "rate_per_s": round(self._speed(done), 3),
            "in_flight": view.in_flight,
            "concurrency": granted,
            "held_up": asdict(view.held_up) if view.held_up else None,
        }

    def _speed(self, done: int) -> float:
        """Records done per second, lately."""
        now = monotonic()
        self._samples.append((now, done))
        while len(self._samples) > 2 and self._samples[1][0] < now - OVER:
            self._samples.popleft()
        (then, before), (_, after) = self._samples[0], self._samples[-1]
        return (after - before) / (now - then) if now > then else 0.0

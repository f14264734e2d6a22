"""Pauses that the API asked for (Retry-After): the whole target is left alone, by all processes."""

from __future__ import annotations

from datetime import datetime, timedelta
from time import monotonic

from rowcall.engine.run_state import RunState
from rowcall.engine.settler import Settler
from rowcall.engine.stop_reasons import Ending
from rowcall.model.errors import Full
from rowcall.model.events import Listener, Resting

SAME = 0.05
"""Seconds by which two accounts of the same rest may differ."""
ASKED_ELSEWHERE = "another run was asked to wait"
"""The cause of a rest that the store reports."""


class Rests:
    """Begins rests; it observes the shared limits.

    Args:
        state: of the run; its door is closed for as long as a rest takes.
        settler: puts back what was claimed and not started.
        emit: learns of every rest.
        max_wait: seconds; where the API asks for more, the run stops. None: it waits for any time.

    Attributes:
        known_until: monotonic time until which other processes know that the target rests.
    """

    def __init__(self, state: RunState, settler: Settler, *, emit: Listener, max_wait: float | None = None) -> None:
        self._state = state
        self._settler = settler
        self._emit = emit
        self._max_wait = max_wait
        self.known_until = float("-inf")

    def rest(self, seconds: float, cause: str) -> None:
        """Leave the target alone for so long; where that is longer than the run may wait, it stops."""
        now, door = monotonic(), self._state.door
        if not door.rest(seconds, cause, now):
            return
        self._settler.put_back_ready()
        self._emit(Resting(door.resting_until - now, cause))
        if self._max_wait is not None and seconds > self._max_wait:
            message = f"the API asks to be left alone until {_time_of_day(seconds)}: {cause}"
            self._state.stop(Ending("max_wait", message))

    def rest_elsewhere(self, seconds: float, cause: str = ASKED_ELSEWHERE) -> None:
        """Leave the target alone because another process was asked to, or because the store says so."""
        now = monotonic()
        if now + seconds > max(self._state.door.resting_until, now) + SAME:
            self.known_until = now + seconds
            self.rest(seconds, cause)

    def stop_full(self, full: Full) -> None:
        """The disk of the store is full."""
        self._state.stop_full(full)


def _time_of_day(seconds: float) -> str:
    """The local time of day in so many seconds, with the date where that is more than a day."""
    then = datetime.now().astimezone() + timedelta(seconds=seconds)
    return then.strftime("%H:%M:%S" if seconds < 86_400 else "%Y-%m-%d %H:%M")

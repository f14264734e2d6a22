"""What the parts of a live run share: the jobs in hand, why the run stops, and what wakes the worker."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from rowcall.calls.door import Door
from rowcall.engine.stop_reasons import Ending
from rowcall.model.errors import Full
from rowcall.model.events import Listener, Stopping
from rowcall.model.job import Job


class RunState:
    """The state of one process of a run. All of it belongs to the event loop.

    Args:
        door: decides when calls may leave; told when the run stops.
        emit: learns that the run stops.
        input_over: says whether no more records will come, where another process reads the input; None: this one does.

    Attributes:
        ending: why the run takes no more jobs; None while it does.
        ready: claimed jobs whose calls were not started yet.
        calls: the jobs that are worked on, by their tasks.
        claim_at: monotonic time at which the store may have something to claim again.
        input_read: this process has read the input to its end.
        wake: set when the worker has something to look at.
    """

    def __init__(self, door: Door, emit: Listener, *, input_over: Callable[[], bool] | None = None) -> None:
        self.door = door
        self._emit = emit
        self._input_over = input_over
        self.ending: Ending | None = None
        self.ready: deque[Job] = deque()
        self.calls: dict[asyncio.Task[None], Job] = {}
        self.claim_at = 0.0
        self.input_read = False
        self.wake = asyncio.Event()

    @property
    def in_flight(self) -> int:
        """Jobs that are worked on."""
        return len(self.calls)

    @property
    def reads_input(self) -> bool:
        """The input is read by this process."""
        return self._input_over is None

    @property
    def input_over(self) -> bool:
        """No more records will come."""
        return self._input_over() if self._input_over else self.input_read

    def notice(self) -> None:
        """There may be something to claim."""
        self.claim_at = 0.0
        self.wake.set()

    def stop(self, ending: Ending) -> None:
        """Take no more jobs and let calls in flight end; the first reason counts."""
        if self.ending is None:
            self.ending = ending
            self.door.stop()
            self._emit(Stopping(ending.reason, ending.message, self.in_flight))
            self.wake.set()

    def stop_full(self, full: Full) -> None:
        """Stop because the disk is full; what is in hand waits for space."""
        self.stop(Ending("disk_full", str(full)))

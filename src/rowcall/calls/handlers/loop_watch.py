"""Notices when a handler blocks the event loop, and where, so that a person can be told."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from types import FrameType

from rowcall.model.events import Listener, LoopBlocked

TICK = 0.25
"""Seconds between two signs of life of the loop, and between two looks at them."""
BLOCKED = 1.0
"""Seconds without one from which on the loop counts as blocked."""


class LoopWatch:
    """A thread that looks at the running loop until ``close``.

    Only what is seen inside the handler's own file is blamed on it: a process that was stopped, or a machine that was
    asleep, is no handler's fault.

    Args:
        function: the handler.
        emit: told, in the loop, once it goes on.
    """

    def __init__(self, function: Callable[..., object], emit: Listener) -> None:
        code = getattr(function, "__code__", None) or function.__call__.__code__  # type: ignore[operator]  # an object that is called
        self._file: str = code.co_filename
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._ticked = monotonic()
        self._place = ""
        self._over = threading.Event()
        self._timer = self._loop.call_later(TICK, self._tick)
        threading.Thread(target=self._look, daemon=True, name="loop watch").start()

    def close(self) -> None:
        """Look no longer."""
        self._timer.cancel()
        self._over.set()

    def _tick(self) -> None:
        now = monotonic()
        late, place = now - self._ticked, self._place
        self._ticked, self._place = now, ""
        if place:
            self._emit(LoopBlocked(late, place))
        self._timer = self._loop.call_later(TICK, self._tick)

    def _look(self) -> None:
        while not self._over.wait(TICK):
            if not self._place and monotonic() - self._ticked > BLOCKED:
                self._place = _place(sys._current_frames().get(self._watched), self._file)  # noqa: SLF001  documented, for debuggers


def _place(frame: FrameType | None, file: str) -> str:
    """The innermost line of a file on a stack: ``label (tasks.py:14)``; empty where there is none."""
    while frame and frame.f_code.co_filename != file:
        frame = frame.f_back
    return f"{frame.f_code.co_name} ({Path(file).name}:{frame.f_lineno})" if frame else ""

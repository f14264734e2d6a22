"""Notices when a handler blocks the event loop, and in which line, so that the user can be warned."""

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
"""Seconds between two ticks of the event loop, and between two checks of the watching thread."""
BLOCKED = 1.0
"""Seconds without a tick after which the loop counts as blocked."""


class LoopWatch:
    """A thread that watches the running event loop until ``close``.

    The handler is blamed only if the loop is blocked inside the handler's own file: a stopped process or a sleeping
    machine is not its fault.

    Args:
        function: the handler.
        emit: learns of it, in the loop, once the loop runs again.
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
        """Stop watching."""
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
    """The innermost line of a file on the stack, as ``label (tasks.py:14)``; empty where there is none."""
    while frame and frame.f_code.co_filename != file:
        frame = frame.f_back
    return f"{frame.f_code.co_name} ({Path(file).name}:{frame.f_lineno})" if frame else ""

"""Shows a run at work: a block that is redrawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, TextIO

from rowcall.calls.door import Reason
from rowcall.engine.live_view import LiveView
from rowcall.model.events import (
    Event,
    Followed,
    GateClosed,
    GateOpened,
    HelperDied,
    Joined,
    LoopBlocked,
    Resting,
    Stopping,
    StoreWaits,
)
from rowcall.progress.event_counts import EventCounts, Speed
from rowcall.progress.number_text import clean, counted, short_time
from rowcall.progress.screen import Screen
from rowcall.progress.terminal_block import block
from rowcall.progress.view import View, outage_word, plain_line, view_of

if TYPE_CHECKING:  # importing it takes time, and verbs that only read the store do not need it
    from rowcall.run.pipeline import Pipeline

REDRAW = 0.25
"""Seconds between two redraws of the block."""
PLAIN = 10.0
"""Seconds between two plain lines."""
WORTH_SAYING = 5.0
"""Shorter rests than these seconds are not reported in plain lines."""


class ProgressDisplay:
    """Shows a run at work on a stream, usually stderr. ``say`` writes a line above the block.

    Args:
        stream: where to write.
        quiet: write nothing at all.
        live: redraw a block, if the stream is a terminal that can; False: always plain lines.
        plain_every: seconds between two plain lines.
    """

    def __init__(self, stream: TextIO, *, quiet: bool = False, live: bool = True, plain_every: float = PLAIN) -> None:
        self._stream = stream
        self._quiet = quiet
        self._plain_every = plain_every
        screen = Screen(stream)
        self._screen = screen if live and screen.can_redraw else None
        self._counts = EventCounts()
        self._speed = Speed()
        self._rested_until = 0.0
        self._reported_places: set[str] = set()
        self._offline = False
        self._task: asyncio.Task[None] | None = None

    def say(self, text: str) -> None:
        """Write a message."""
        if not self._quiet:
            self._write(f"{self._wiped()}{text}\n")

    def hear(self, event: Event) -> None:
        """Count an event, and write a message about it if it is important."""
        if self._quiet:
            return
        self._counts(event)
        if text := self._text_of(event):
            self.say(text)

    def start(self, pipeline: Pipeline, *, limit: int | None = None) -> None:
        """Show the pipeline until ``close``; ``limit`` is the most records of this run."""
        if not self._quiet:
            self._task = asyncio.get_running_loop().create_task(self._show(pipeline, limit))

    async def close(self) -> None:
        """Remove the block and stop showing progress."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if wiped := self._wiped():
            self._write(wiped)

    def _text_of(self, event: Event) -> str:
        match event:
            case Resting():
                return self._rest_text(event)
            case LoopBlocked():
                new = event.place not in self._reported_places
                self._reported_places.add(event.place)
                return _blocked_text(event.place, event.seconds) if new else ""
            case GateClosed() | GateOpened():
                return self._outage_text(event)
            case _:
                return _message(event)

    def _outage_text(self, event: GateClosed | GateOpened) -> str:
        """Report an outage and its end once, although each process of the run sees it."""
        before, self._offline = self._offline, isinstance(event, GateClosed)
        return _message(event) if self._offline != before else ""

    def _rest_text(self, rest: Resting) -> str:
        """Report a rest once, even if it is extended while it lasts; never above a block, which shows it itself."""
        if self._screen or rest.seconds < WORTH_SAYING:
            return ""
        now, said_until = monotonic(), self._rested_until
        self._rested_until = now + rest.seconds
        if now < said_until:
            return ""
        return f"resting for {short_time(rest.seconds)}: {clean(rest.cause)}"

    async def _show(self, pipeline: Pipeline, limit: int | None) -> None:
        self._speed.note(monotonic(), 0)
        while True:
            await asyncio.sleep(REDRAW if self._screen else self._plain_every)
            self._look(pipeline.view)
            self._draw(view_of(pipeline, self._counts, self._speed.per_second, limit))

    def _look(self, live: LiveView) -> None:
        if live.answer.reason in (Reason.OFFLINE, Reason.PAUSED):
            self._speed.restart()
        self._speed.note(monotonic(), live.ended)

    def _draw(self, view: View) -> None:
        if self._screen:
            self._write(self._screen.draw(block(view, self._screen.width)))
        else:
            self._write(plain_line(view) + "\n")

    def _wiped(self) -> str:
        return self._screen.wipe() if self._screen else ""

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:  # nobody reads the stream any more; the run continues without a display
            self._quiet = True


_BY_SIGNAL = ("interrupted", "terminated", "hung_up")
"""Reasons of stops that were already acknowledged when the signal arrived."""


def _blocked_text(place: str, seconds: float) -> str:
    remedy = "use await there, or make the handler a plain def, which runs in a thread"
    return f"warning: all calls stood still for {short_time(seconds)}: {clean(place)} blocks the event loop; {remedy}"


def _message(event: Event) -> str:
    match event:
        case GateClosed():
            return f"{outage_word(event.cause)}: {clean(event.cause)}; nothing lost, no attempts used"
        case GateOpened():
            return f"back after {short_time(event.after)}"
        case Stopping() if event.in_flight and event.reason not in _BY_SIGNAL:
            return f"stopping: {clean(event.message or event.reason)}; {counted(event.in_flight, 'call')} in flight"
        case Joined():
            return "another process works on this batch job; this run joins it, each record is called once"
        case Followed():
            return f"set by hand: {clean(event.settings)}" if event.settings else "the config's settings apply again"
        case HelperDied():
            then = "another one replaces it" if event.replaced else "it is not started again"
            what = f"process {event.pid} of this run died" if event.pid else "a process of this run"
            return f"{what}: {clean(event.how)}; {then}, nothing lost"
        case StoreWaits():
            return f"waiting for the store: {clean(event.message)}"
        case _:
            return ""

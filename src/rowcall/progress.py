"""What people see while a run works: one line that is redrawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import shutil
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, TextIO

from rowcall.events import Event, GateClosed, GateOpened, Joined, LoopBlocked, Resting, Stopping, StoreWaits

if TYPE_CHECKING:  # verbs that only look need no wire
    from rowcall.pipeline import Pipeline

REDRAW = 0.25
"""Seconds between two redraws on a terminal."""
PLAIN = 10.0
"""Seconds between two plain lines elsewhere."""
RATE_OVER = 20
"""Samples that the shown rate is taken over."""


def clean(text: str) -> str:
    """Text from outside on one line, without what would steer the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def short_time(seconds: float) -> str:
    """``8m12s``, ``1h05m``, ``40s``, ``0.4s``."""
    if seconds < 9.95 and seconds % 1:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02}m"


class Progress:
    """Shows a pipeline at work on ``stream`` (stderr). ``say`` writes a line above the display."""

    def __init__(self, stream: TextIO, *, quiet: bool = False, live: bool = True) -> None:
        self._stream = stream
        self._quiet = quiet
        self._redraws = live and stream.isatty()
        self._shown = False
        self._blamed: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._samples: deque[tuple[float, int]] = deque(maxlen=RATE_OVER)

    def say(self, text: str) -> None:
        """Write a line of talk."""
        self._wipe()
        if not self._quiet:
            self._write(text + "\n")

    def hear(self, event: Event) -> None:
        """Turn an event into talk, where it is worth a line."""
        match event:
            case GateClosed():
                self.say(f"offline: {clean(event.cause)}; nothing lost, no attempts used")
            case GateOpened():
                self.say(f"back after {short_time(event.after)}")
            case Resting() if event.seconds >= 5:
                self.say(f"resting for {short_time(event.seconds)}: {clean(event.cause)}")
            case Stopping() if event.in_flight and event.reason not in ("interrupted", "terminated", "hung_up"):
                self.say(f"stopping: {clean(event.message)}; {event.in_flight} calls in flight")
            case Joined():
                self.say("another process works on this batch job: this one joins it, each record is called once")
            case LoopBlocked() if event.place not in self._blamed:
                self._blamed.add(event.place)
                self.say(f"warning: no call could go on for {short_time(event.seconds)}: {_blocks(event.place)}")
            case StoreWaits():
                self.say(f"waiting for the store: {clean(event.message)}")
            case _:
                pass

    def start(self, pipeline: Pipeline) -> None:
        """Show the pipeline until ``close``."""
        if not self._quiet:
            self._task = asyncio.get_running_loop().create_task(self._show(pipeline))

    async def close(self) -> None:
        """Take the display away."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._wipe()

    async def _show(self, pipeline: Pipeline) -> None:
        while True:
            await asyncio.sleep(REDRAW if self._redraws else PLAIN)
            self._samples.append((monotonic(), pipeline.tally.done))
            line = progress_line(pipeline, self._rate())
            if self._redraws:
                width = shutil.get_terminal_size().columns
                self._write("\r\x1b[K" + line[: width - 1])
                self._shown = True
            else:
                self._write(line + "\n")

    def _rate(self) -> float:
        (then, before), (now, done) = self._samples[0], self._samples[-1]
        return (done - before) / (now - then) if now > then else 0.0

    def _wipe(self) -> None:
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:  # whoever was reading has gone; the batch goes on without them
            self._quiet = True


def _blocks(place: str) -> str:
    return f"{clean(place)} blocks the event loop; await there, or make the handler a plain def, which gets a thread"


def progress_line(pipeline: Pipeline, rate: float) -> str:
    """One line: how far, how fast, what holds it up. Rate and time left are of this run alone."""
    total, done, failed = pipeline.progress
    ended = done + failed
    share = f"{100 * ended // total:3}%  {ended:,}/{total:,}" if total else "reading"
    parts = [share, f"done {done:,}", f"failed {failed:,}"]
    parts.append(f"in flight {pipeline.in_flight}/{pipeline.config.pace.concurrency}")
    if rate > 0:
        parts.append(f"{rate:.1f}/s")
        if not pipeline.reading:
            parts.append(f"{short_time((total - ended) / rate)} left")
    if held := _held_up(pipeline):
        parts.append(held)
    return "  ".join(parts)


def _held_up(pipeline: Pipeline) -> str:
    if outage := pipeline.outage:
        wait = (
            "a probe is out" if outage.probe_at is None else f"next try in {max(0, outage.probe_at - monotonic()):.0f}s"
        )
        return f"offline for {short_time(monotonic() - outage.since)} ({clean(outage.cause.message)}), {wait}"
    if resting := pipeline.resting_for:
        return f"resting {short_time(max(1, resting))} as the API asked"
    return ""

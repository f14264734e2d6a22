"""The run's side of one helper process: the process, the socket to it, and its last report."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Self

from rowcall.model.events import CallBegan, CallDropped, CallEnded, Event
from rowcall.processes.messages import HelperReport, RunOrders, Task, packed, unpacked
from rowcall.processes.share_slots import ProcessSlots

VERB = "help-out"
"""The verb that starts a helper. ``rowcall --help`` does not list it."""


class HelperLink:
    """A helper from its start to its end.

    Attributes:
        pid: its process id.
        report: its latest report; None until it is ready to work.
        orders: the latest orders sent to it; None before its task is sent.
        calls: keys of the records whose calls are in flight.
        cost: nano-dollars that it has spent.
    """

    def __init__(self, process: subprocess.Popen[bytes], reader: StreamReader, writer: StreamWriter) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._started = monotonic()
        self.pid = process.pid
        self.report: HelperReport | None = None
        self.orders: RunOrders | None = None
        self.calls: set[str] = set()
        self.cost = 0

    @classmethod
    async def start(cls) -> Self:
        """Start the process, which then waits for its task.

        Raises:
            OSError: the system cannot start another process.
        """
        ours, theirs = socket.socketpair()
        with theirs, _blocked(signal.SIGINT):
            command = [sys.executable, "-P", "-m", "rowcall", VERB, str(theirs.fileno())]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])  # noqa: S603, ASYNC220  our own program; blocks only for a fork
        return cls(process, *await asyncio.open_unix_connection(sock=ours))

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return monotonic() - self._started

    @property
    def process_slots(self) -> ProcessSlots:
        """Its slots: sent, confirmed and in use."""
        report, orders = self.report or HelperReport(), self.orders or RunOrders()
        return ProcessSlots(orders.calls, report.calls, report.busy)

    def send_task(self, task: Task) -> None:
        """Send it the task, with which it starts to work."""
        self.orders = RunOrders()
        self._writer.write(packed(task))

    def send_orders(self, orders: RunOrders) -> None:
        """Send it orders, unless they are the same as the last ones."""
        if orders != self.orders:
            self.orders = orders
            self._writer.write(packed(orders))

    async def reports(self) -> AsyncIterator[HelperReport]:
        """Yield its reports until it closes the connection. ``report`` is still the one before while one is handled."""
        while (report := await unpacked(self._reader)) is not None:
            yield report
            self.report = report

    def note(self, event: Event) -> None:
        """Keep track of its calls in flight and of their cost."""
        match event:
            case CallBegan():
                self.calls.add(event.key)
            case CallEnded():
                self.calls.discard(event.key)
                self.cost += event.outcome.usage.cost or 0
            case CallDropped():
                self.calls.discard(event.key)
            case _:
                pass

    def hang_up(self) -> None:
        """Close the connection. The helper then drops its calls and ends."""
        self._writer.close()

    def kill(self) -> None:
        """Kill its process."""
        self._process.kill()

    async def end(self) -> str:
        """Wait for its process to end and return how it died; an empty text if it ended normally."""
        self._writer.close()
        code = await asyncio.to_thread(self._process.wait)
        if code < 0:
            return f"killed by {_signal_name(-code)}"
        if self.report and self.report.error:
            return self.report.error
        return f"exit code {code}" if code else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextmanager
def _blocked(number: int) -> Iterator[None]:
    """Block a signal. A process started meanwhile inherits that, and unblocks the signal once it can handle it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (number,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

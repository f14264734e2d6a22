"""One helper, as the run sees it: its process, the socket to it, and what it last said."""

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
from rowcall.processes.messages import News, Task, Word, packed, unpacked
from rowcall.processes.share_slots import Holding

VERB = "help-out"
"""The verb that a helper is started with; it is in no list."""


class HelperLink:
    """A helper from its start to its end.

    Attributes:
        pid: of its process.
        news: the latest; None until it is ready to work.
        word: the latest that it was told; None before its task.
        calls: keys of the records whose calls are under way.
        cost: nano-dollars that it has spent.
    """

    def __init__(self, process: subprocess.Popen[bytes], reader: StreamReader, writer: StreamWriter) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._born = monotonic()
        self.pid = process.pid
        self.news: News | None = None
        self.word: Word | None = None
        self.calls: set[str] = set()
        self.cost = 0

    @classmethod
    async def start(cls) -> Self:
        """Start the process; it waits for its task.

        Raises:
            OSError: the system lets no further one start.
        """
        ours, theirs = socket.socketpair()
        with theirs, _held_back(signal.SIGINT):
            words = [sys.executable, "-P", "-m", "rowcall", VERB, str(theirs.fileno())]
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])  # noqa: S603, ASYNC220  ourselves; as long as a fork takes
        return cls(process, *await asyncio.open_unix_connection(sock=ours))

    @property
    def age(self) -> float:
        """Seconds since its start."""
        return monotonic() - self._born

    @property
    def holding(self) -> Holding:
        """What it may use of the calls in flight."""
        news, word = self.news or News(), self.word or Word()
        return Holding(word.calls, news.calls, news.busy)

    def give(self, task: Task) -> None:
        """Tell it what to do."""
        self.word = Word()
        self._writer.write(packed(task))

    def tell(self, word: Word) -> None:
        """Tell it how things stand, if that is new to it."""
        if word != self.word:
            self.word = word
            self._writer.write(packed(word))

    async def hear(self) -> AsyncIterator[News]:
        """What it says, until it is gone."""
        while (news := await unpacked(self._reader)) is not None:
            yield news
            self.news = news

    def note(self, event: Event) -> None:
        """Keep count of its calls and of what they cost."""
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
        """Have nothing more to say, upon which it ends by itself; one that works drops its calls."""
        self._writer.close()

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()

    async def end(self) -> str:
        """Wait for its process to be gone; returns how it died, empty where it ended as it should."""
        self._writer.close()
        code = await asyncio.to_thread(self._process.wait)
        if code < 0:
            return f"killed by {_name(-code)}"
        if self.news and self.news.error:
            return self.news.error
        return f"exit code {code}" if code else ""


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextmanager
def _held_back(number: int) -> Iterator[None]:
    """Let a signal wait meanwhile: what is started has it blocked until it is ready for it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (number,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

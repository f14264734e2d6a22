"""The life of a helper: it is given a task, works, says all that happens, and ends when the run does or is gone."""

from __future__ import annotations

import asyncio
import ctypes
import pickle
import signal
import socket
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace

from rowcall.client import raise_descriptor_limit
from rowcall.client.network import make_client
from rowcall.engine.engine import Engine, StartedRun, Timing
from rowcall.engine.options import Options
from rowcall.engine.stop_reasons import Ending
from rowcall.engine.store_sync import ASKED_ELSEWHERE
from rowcall.model.errors import RowcallError
from rowcall.model.events import Event, Followed, Listener, Resting, Stopping, StoreWaits
from rowcall.model.run_stats import RunStats
from rowcall.processes.messages import LENGTH, News, Task, Word, packed, unpacked
from rowcall.run.assembly import assemble_without_input
from rowcall.run.job_store import open_store
from rowcall.run.pipeline import CONNECTIONS

EVERY = 0.05
"""Seconds between two news."""
UNHEARD = 50_000
"""Events that nobody has taken: no call leaves from there on, until somebody does."""
FAREWELL = 5.0
"""Seconds that the last news may take to leave."""
_PR_SET_PDEATHSIG = 1  # prctl(2): the kernel sends this signal when the parent is gone


def take_task(connection: socket.socket) -> Task | None:
    """Wait for the task; None where the run ends before it has one. From here on the parent's signals are its own.

    Ctrl+C reaches all processes of a terminal, and so does its end: the run answers, and tells its helpers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))  # blocked by whoever started this process
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    head = connection.recv(LENGTH.size, socket.MSG_WAITALL)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    task: Task = pickle.loads(connection.recv(length, socket.MSG_WAITALL))  # noqa: S301  the run is this very program
    return task


async def help_out(task: Task, connection: socket.socket) -> None:
    """Work on the run until it says stop, or is gone, or nothing is left of it."""
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    helper = Helper(task, writer)
    try:
        async with helper.engine_at_work(reader) as engine:
            await engine.work()
    except RowcallError as error:
        helper.say(error=error.message)
    finally:
        helper.say()
        writer.close()
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(FAREWELL):
                await writer.wait_closed()


class Helper:
    """Hears the words of the run and tells it the news.

    Args:
        task: what is to be done.
        writer: where the news go.
    """

    def __init__(self, task: Task, writer: StreamWriter) -> None:
        self._task = task
        self._writer = writer
        self._engine: Engine | None = None
        self._word = Word()
        self._events: list[Event] = []
        self._said: News | None = None
        self._urgent = asyncio.Event()

    @asynccontextmanager
    async def engine_at_work(self, reader: StreamReader) -> AsyncIterator[Engine]:
        """The engine, steered by what ``reader`` says; the store is closed and the session ended afterwards."""
        config = self._task.config
        async with AsyncExitStack() as stack:
            begun = await _begin(stack, self._task, Options(input_over=lambda: self._word.input_over), self._emit)
            concurrency = raise_descriptor_limit(config.pace.concurrency)
            engine = self._engine = Engine(
                config, begun, RunStats(), emit=self._emit, concurrency=concurrency, timing=Timing(alone_for=0.0)
            )
            self._obey(engine, self._word)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, engine.worker.stop, Ending("terminated"))
            beside = [asyncio.create_task(self._listen(engine, reader)), asyncio.create_task(self._speak(engine))]
            stack.callback(lambda: [task.cancel() for task in beside])
            yield engine

    def say(self, *, error: str = "") -> None:
        """Tell what is new, if anything is."""
        news = replace(self._standing(), error=error)
        events, self._events = tuple(self._events), []
        if events or news != self._said:
            self._said = news
            self._writer.write(packed(replace(news, events=events)))

    def _emit(self, event: Event) -> None:
        if self._engine:
            self._engine.hear(event)
        if isinstance(event, Stopping):
            self._urgent.set()
        if isinstance(event, Stopping | Followed) or (isinstance(event, Resting) and event.cause == ASKED_ELSEWHERE):
            return  # the run says so itself
        self._events.append(event)
        if self._engine and len(self._events) == UNHEARD:
            self._engine.pause("unheard", pause=True)

    async def _speak(self, engine: Engine) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY):
                    await self._urgent.wait()
            self._urgent.clear()
            self.say()
            await self._writer.drain()
            engine.pause("unheard", pause=False)

    async def _listen(self, engine: Engine, reader: StreamReader) -> None:
        while (word := await unpacked(reader)) is not None:
            self._obey(engine, word)
        self._obey(engine, replace(self._word, stop=True, drop=True))  # the run is gone

    def _obey(self, engine: Engine, word: Word) -> None:
        news, self._word = word.input_over and not self._word.input_over, word
        engine.grant(word.calls, word.among)
        engine.budget.learn_elsewhere(word.spent)
        if word.stop:
            engine.worker.stop(Ending("told"))
        if word.drop:
            engine.worker.drop()
        if news:
            engine.worker.notice()

    def _standing(self) -> News:
        engine = self._engine
        if engine is None:
            return News()
        return News(
            busy=engine.busy,
            slots=engine.worker.slots,
            calls=self._word.calls,
            idle=not (engine.worker.in_flight or engine.settler.unwritten),
            ending=engine.worker.ending,
        )


async def _begin(stack: AsyncExitStack, task: Task, options: Options, emit: Listener) -> StartedRun:
    """Open what the run has opened for itself."""
    config = task.config
    parts = await asyncio.to_thread(assemble_without_input, config, base_url=task.base_url)
    store = await stack.enter_async_context(await open_store(config, lambda text: emit(StoreWaits(text))))
    client = await stack.enter_async_context(make_client(config, CONNECTIONS, parts.network))
    session = await store.begin_session()
    stack.push_async_callback(store.end_session, session)
    return StartedRun(
        store,
        replace(parts, request_hash=task.request_hash),
        client,
        session,
        task.run,
        task.request,
        task.known,
        batch="",
        spent=await store.spent(config.name),
        options=options,
        helps=True,
        trusted=task.trusted,
    )

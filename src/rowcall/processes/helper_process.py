"""A helper process: it receives a task, works on it, reports its events, and ends when the run ends or disappears."""

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

from rowcall.client.network import make_client
from rowcall.engine.engine import Engine, StartedRun, Timing
from rowcall.engine.options import Options
from rowcall.engine.rests import ASKED_ELSEWHERE
from rowcall.engine.stop_reasons import Ending
from rowcall.model.errors import RowcallError
from rowcall.model.events import Event, Followed, Listener, Resting, Stopping, StoreWaits
from rowcall.model.run_stats import RunStats
from rowcall.processes.messages import LENGTH, HelperReport, RunOrders, Task, packed, unpacked
from rowcall.run.assembly import assemble_without_input
from rowcall.run.job_store import open_store
from rowcall.run.pipeline import CONNECTIONS

REPORT_EVERY = 0.05
"""Seconds between two reports."""
MOST_UNSENT = 50_000
"""Unsent events at which the helper starts no more calls until the run has read some of them."""
LAST_REPORT_WITHIN = 5.0
"""Seconds that sending the last report may take."""
_PR_SET_PDEATHSIG = 1  # prctl(2): the kernel sends this process a signal when its parent dies


def take_task(connection: socket.socket) -> Task | None:
    """Wait for the task and return it; None if the run ends before it sends one.

    Ctrl+C and the closing of a terminal reach all its processes. Helpers ignore both signals, because the run handles
    them and sends its helpers orders.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))  # the run blocked it while it started this process
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    head = connection.recv(LENGTH.size, socket.MSG_WAITALL)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    task: Task = pickle.loads(connection.recv(length, socket.MSG_WAITALL))  # noqa: S301  the run is this same program
    return task


async def help_out(task: Task, connection: socket.socket) -> None:
    """Work on the run until it orders a stop, disappears, or has no jobs left."""
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    helper = Helper(task, writer)
    try:
        async with helper.engine_at_work(reader) as engine:
            await engine.work()
    except RowcallError as error:
        helper.report(error=error.message)
    finally:
        helper.report()
        writer.close()
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(LAST_REPORT_WITHIN):
                await writer.wait_closed()


class Helper:
    """Follows the orders of the run and sends it reports.

    Args:
        task: the run to work on.
        writer: the connection to the run.
    """

    def __init__(self, task: Task, writer: StreamWriter) -> None:
        self._task = task
        self._writer = writer
        self._engine: Engine | None = None
        self._orders = RunOrders()
        self._events: list[Event] = []
        self._reported: HelperReport | None = None
        self._urgent = asyncio.Event()

    @asynccontextmanager
    async def engine_at_work(self, reader: StreamReader) -> AsyncIterator[Engine]:
        """Yield the engine, which follows the orders from ``reader``. Closes the store afterwards."""
        config = self._task.config
        async with AsyncExitStack() as stack:
            begun = await _begin(stack, self._task, Options(input_over=lambda: self._orders.input_over), self._emit)
            engine = self._engine = Engine(config, begun, RunStats(), emit=self._emit, timing=Timing(alone_for=0.0))
            self._obey(engine, self._orders)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, engine.state.stop, Ending("terminated"))
            for work in (self._follow_orders(engine, reader), self._send_reports(engine)):
                stack.callback(asyncio.create_task(work).cancel)
            yield engine

    def report(self, *, error: str = "") -> None:
        """Send a report, if anything has happened or changed since the last one."""
        report = replace(self._state(), error=error)
        events, self._events = tuple(self._events), []
        if events or report != self._reported:
            self._reported = report
            self._writer.write(packed(replace(report, events=events)))

    def _emit(self, event: Event) -> None:
        if self._engine:
            self._engine.hear(event)
        if isinstance(event, Stopping):
            self._urgent.set()
        if isinstance(event, Stopping | Followed) or (isinstance(event, Resting) and event.cause == ASKED_ELSEWHERE):
            return  # the run emits these events itself
        self._events.append(event)
        if self._engine and len(self._events) == MOST_UNSENT:
            self._engine.pause("unsent", pause=True)

    async def _send_reports(self, engine: Engine) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(REPORT_EVERY):
                    await self._urgent.wait()
            self._urgent.clear()
            self.report()
            await self._writer.drain()
            engine.pause("unsent", pause=False)

    async def _follow_orders(self, engine: Engine, reader: StreamReader) -> None:
        while (orders := await unpacked(reader)) is not None:
            self._obey(engine, orders)
        self._obey(engine, replace(self._orders, stop=True, drop=True))  # the run has closed the connection

    def _obey(self, engine: Engine, orders: RunOrders) -> None:
        input_ended, self._orders = orders.input_over and not self._orders.input_over, orders
        engine.grant(orders.calls, orders.among)
        engine.budget.learn_elsewhere(orders.spent)
        if orders.stop:
            engine.state.stop(Ending("told"))
        if orders.drop:
            engine.drop()
        if input_ended:
            engine.state.notice()

    def _state(self) -> HelperReport:
        engine = self._engine
        if engine is None:
            return HelperReport()
        return HelperReport(
            busy=engine.busy,
            slots=engine.concurrency.slots,
            calls=self._orders.calls,
            idle=engine.idle,
            ending=engine.state.ending,
        )


async def _begin(stack: AsyncExitStack, task: Task, options: Options, emit: Listener) -> StartedRun:
    """Open the store and the client, as the run has done for itself."""
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

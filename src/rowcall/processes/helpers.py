"""The run's side of its helper processes: starts them, sends them orders, reads their reports, restarts dead ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from rowcall.config import Config
from rowcall.engine.engine import Engine, StartedRun
from rowcall.engine.live_status import HelperTotals
from rowcall.engine.run_parts import RunParts
from rowcall.model.errors import Full
from rowcall.model.events import CallBegan, CallDropped, CallEnded, Event, HelperDied, InputRead, Listener, Stopping
from rowcall.model.outcome import Success
from rowcall.processes.helper_link import HelperLink
from rowcall.processes.messages import HelperReport, RunOrders, Task
from rowcall.processes.share_slots import ProcessSlots, share_slots
from rowcall.run.assembly import assemble

SHARE_EVERY = 0.05
"""Seconds between two rounds of sharing slots among the processes."""
RESTART_AFTER = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before a dead helper is replaced, for each death in a row. After the last one it is not replaced."""
LONG_LIFE = 60.0
"""A helper that lived longer than these seconds starts the count of deaths again."""
END_WITHIN = 5.0
"""Seconds that a helper may take to end, after ``[stop] grace`` if its calls are waited for; then it is killed."""


class HelperGroup:
    """The helpers of one run. They are started with its first call and begin to work after its first success.

    So a wrong key or an unreachable API is discovered by the run alone, which has all the concurrency until then.

    Args:
        count: the number of helpers.
        make_parts: builds the parts of the run.
    """

    def __init__(self, count: int, make_parts: Callable[..., RunParts] = assemble) -> None:
        self._count = count
        self._make_parts = make_parts
        self._config: Config | None = None
        self._base_url: str | None = None
        self._members: list[HelperLink] = []
        self._proven = self._dropping = False
        self._begins, self._wake, self._stopping = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def assemble(self, config: Config, *, base_url: str | None = None) -> RunParts:
        """Build the parts of the run, and remember the config and URL to send to the helpers."""
        self._config, self._base_url = config, base_url
        return self._make_parts(config, base_url=base_url)

    def hear(self, event: Event) -> None:
        """Take note of an event of the run's own process."""
        match event:
            case CallBegan():
                self._begins.set()
            case CallEnded(outcome=Success()):
                self._proven = True
            case Stopping():
                self._stop()
            case InputRead():
                self._wake.set()
            case _:
                pass

    def drop(self) -> None:
        """Make the helpers drop their calls in flight."""
        self._dropping = True
        self._stop()

    @asynccontextmanager
    async def during(self, engine: Engine, begun: StartedRun, hear_of: Listener) -> AsyncIterator[None]:
        """Let the helpers work during the block and end them after it; if it raises, they drop their calls."""
        keeping = [asyncio.create_task(self._keep(engine, hear_of)) for _ in range(self._count)]
        steering = asyncio.create_task(self._steer(engine, begun))
        patience = END_WITHIN + engine.grace
        try:
            yield
        except BaseException as error:
            self._dropping, patience = True, 0.0 if isinstance(error, asyncio.CancelledError) else END_WITHIN
            raise
        finally:
            self._stop()
            await self._end_all(keeping, patience)
            steering.cancel()

    def _stop(self) -> None:
        self._stopping.set()
        self._begins.set()
        self._wake.set()

    async def _end_all(self, keeping: list[asyncio.Task[None]], patience: float) -> None:
        """Wait for the helpers to end and kill those that take longer. Without patience, leave them."""
        _, late = await asyncio.wait(keeping, timeout=patience)
        for member in self._members:
            member.kill() if patience else member.hang_up()
        if not patience:
            for task in late:
                task.cancel()
        await asyncio.gather(*keeping, return_exceptions=not patience)

    # One helper

    async def _keep(self, engine: Engine, hear_of: Listener) -> None:
        """Keep one helper at work; start another one when it dies."""
        await self._begins.wait()
        deaths = 0
        while not self._stopping.is_set():
            member = await self._started(hear_of)
            how = await self._follow(member, engine, hear_of) if member else ""
            if member is None or not how or self._stopping.is_set():
                return
            deaths = 1 if member.age > LONG_LIFE else deaths + 1
            replaced = deaths <= len(RESTART_AFTER)
            hear_of(HelperDied(member.pid, how, replaced))
            with suppress(Full):  # the next beat reports it
                await engine.reap()  # its jobs go to the others now rather than at the next beat
            if not replaced:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(RESTART_AFTER[deaths - 1]):
                    await self._stopping.wait()

    async def _started(self, hear_of: Listener) -> HelperLink | None:
        try:
            return await HelperLink.start()
        except OSError as error:
            hear_of(HelperDied(0, f"cannot be started: {error.strerror}", replaced=False))
            return None

    async def _follow(self, member: HelperLink, engine: Engine, hear_of: Listener) -> str:
        """Read the reports of a helper until it ends; return how it died, an empty text if it ended normally."""
        self._members.append(member)
        try:
            async for report in member.reports():
                for event in report.events:
                    member.note(event)
                    hear_of(event)
                self._take_report(member, report, engine)
        finally:
            self._members.remove(member)
            for key in member.calls:
                hear_of(CallDropped(key))
            self._update_others(engine)
        return await member.end()

    def _take_report(self, member: HelperLink, report: HelperReport, engine: Engine) -> None:
        """Act on the state in a report; its events are already handled."""
        if report.ending and not self._stopping.is_set():
            engine.state.stop(report.ending)
        if report.idle and not (member.report and member.report.idle):
            engine.state.notice()  # it may have finished the last job of the run
        self._update_others(engine)

    # Orders

    async def _steer(self, engine: Engine, begun: StartedRun) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(SHARE_EVERY):
                    await self._wake.wait()
            self._wake.clear()
            self._send_orders(engine, begun)

    def _send_orders(self, engine: Engine, begun: StartedRun) -> None:
        for member in self._members:
            if member.orders is None and self._stopping.is_set():
                member.hang_up()
            elif member.orders is None and self._proven:
                member.send_task(self._task(engine, begun))
        at_work = [member for member in self._members if member.report]
        own = ProcessSlots(engine.concurrency.requests, engine.concurrency.requests, engine.busy)
        mine, *theirs = share_slots(engine.concurrency.allowed, [own, *(member.process_slots for member in at_work)])
        engine.grant(mine, among=1 + len(at_work))
        for member, calls in zip(at_work, theirs, strict=True):
            member.send_orders(self._orders(member, engine, calls, among=1 + len(at_work)))
        self._update_others(engine)

    def _task(self, engine: Engine, begun: StartedRun) -> Task:
        assert self._config is not None
        hash_ = begun.parts.request_hash
        return Task(
            self._config,
            self._base_url,
            begun.run,
            begun.request,
            hash_,
            begun.known,
            trusted=engine.door.gate.succeeded,
        )

    def _orders(self, member: HelperLink, engine: Engine, calls: int, among: int) -> RunOrders:
        limited = engine.budget.limit is not None
        return RunOrders(
            calls,
            among,
            spent=engine.budget.spent - member.cost if limited else 0,
            input_over=engine.state.input_over,
            stop=self._stopping.is_set(),
            drop=self._dropping,
        )

    def _update_others(self, engine: Engine) -> None:
        members = self._members
        engine.helpers = HelperTotals(
            in_flight=sum(len(member.calls) for member in members),
            slots=sum(member.report.slots for member in members if member.report),
            concurrency=sum(member.orders.calls for member in members if member.orders),
        )

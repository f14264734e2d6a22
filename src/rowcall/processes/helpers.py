"""The helpers of a run, as the run sees them: started, given what they need, heard, started again where they die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from rowcall.config import Config
from rowcall.engine.engine import Engine, StartedRun
from rowcall.engine.live_status import HelperTotals
from rowcall.engine.run_parts import RunParts
from rowcall.model.errors import Full
from rowcall.model.events import CallBegan, CallDropped, CallEnded, Event, HelperDied, InputRead, Stopping
from rowcall.model.outcome import Success
from rowcall.processes.helper_link import HelperLink
from rowcall.processes.messages import News, Task, Word
from rowcall.processes.share_slots import Holding, grants
from rowcall.run.assembly import assemble

EVERY = 0.05
"""Seconds between two looks at how calls are shared."""
WAITS = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before a helper that died is started again; after that many deaths it is not."""
LONG = 60.0
"""Seconds of life after which an earlier death counts no more."""
TO_LEAVE = 5.0
"""Seconds that a helper may take to end, beyond ``[stop] grace`` where its calls are waited for; then it is killed."""
Hear = Callable[[Event], None]


class HelperGroup:
    """Helpers of one run: they start with its first call, and work from its first success on.

    So a wrong key, or an API that is not there, is found out by the run alone, with all of its concurrency.

    Args:
        count: how many.
        assembling: makes the parts of the run.
    """

    def __init__(self, count: int, assembling: Callable[..., RunParts] = assemble) -> None:
        self._count = count
        self._assembling = assembling
        self._config: Config | None = None
        self._base_url: str | None = None
        self._members: list[HelperLink] = []
        self._proven = self._dropping = False
        self._begins, self._wake, self._stopping = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def assemble(self, config: Config, *, base_url: str | None = None) -> RunParts:
        """The parts of the run, from what its helpers are given too."""
        self._config, self._base_url = config, base_url
        return self._assembling(config, base_url=base_url)

    def hear(self, event: Event) -> None:
        """An event of the run's own process."""
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
        """Let the helpers drop their calls in flight."""
        self._dropping = True
        self._stop()

    @asynccontextmanager
    async def during(self, engine: Engine, begun: StartedRun, hear_of: Hear) -> AsyncIterator[None]:
        """They work meanwhile, and have ended afterwards; where the run fails they drop what they have."""
        keeping = [asyncio.create_task(self._keep(engine, hear_of)) for _ in range(self._count)]
        steering = asyncio.create_task(self._steer(engine, begun))
        patience = TO_LEAVE + engine.grace
        try:
            yield
        except BaseException as error:
            self._dropping, patience = True, 0.0 if isinstance(error, asyncio.CancelledError) else TO_LEAVE
            raise
        finally:
            self._stop()
            await self._part(keeping, patience)
            steering.cancel()

    def _stop(self) -> None:
        self._stopping.set()
        self._begins.set()
        self._wake.set()

    async def _part(self, keeping: list[asyncio.Task[None]], patience: float) -> None:
        """Wait for the helpers to end; those that take longer are killed, or left where nobody is patient at all."""
        _, late = await asyncio.wait(keeping, timeout=patience)
        for member in self._members:
            member.kill() if patience else member.hang_up()
        if not patience:
            for task in late:
                task.cancel()
        await asyncio.gather(*keeping, return_exceptions=not patience)

    # One place in the crew

    async def _keep(self, engine: Engine, hear_of: Hear) -> None:
        """Have a helper at work, another one where it dies."""
        await self._begins.wait()
        deaths = 0
        while not self._stopping.is_set():
            member = await self._started(hear_of)
            how = await self._live(member, engine, hear_of) if member else ""
            if member is None or not how or self._stopping.is_set():
                return
            deaths = 1 if member.age > LONG else deaths + 1
            replaced = deaths <= len(WAITS)
            hear_of(HelperDied(member.pid, how, replaced))
            await self._take_back(engine)
            if not replaced:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(WAITS[deaths - 1]):
                    await self._stopping.wait()

    async def _started(self, hear_of: Hear) -> HelperLink | None:
        try:
            return await HelperLink.start()
        except OSError as error:
            hear_of(HelperDied(0, f"cannot be started: {error.strerror}", replaced=False))
            return None

    async def _take_back(self, engine: Engine) -> None:
        """What a helper had that died goes to the others now rather than at the next beat."""
        with suppress(Full):  # which the beat says
            await engine.worker.reaped()

    async def _live(self, member: HelperLink, engine: Engine, hear_of: Hear) -> str:
        """Hear a helper until it is gone; returns how it died, empty where it ended as it should."""
        self._members.append(member)
        try:
            async for news in member.hear():
                for event in news.events:
                    member.note(event)
                    hear_of(event)
                self._mark(member, news, engine)
        finally:
            self._members.remove(member)
            for key in member.calls:
                hear_of(CallDropped(key))
            self._tell_of_others(engine)
        return await member.end()

    def _mark(self, member: HelperLink, news: News, engine: Engine) -> None:
        """What news say beside the events."""
        if news.ending and not self._stopping.is_set():
            engine.worker.stop(news.ending)
        if news.idle and not (member.news and member.news.idle):
            engine.worker.notice()  # perhaps that was all
        self._tell_of_others(engine)

    # What they are told

    async def _steer(self, engine: Engine, begun: StartedRun) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY):
                    await self._wake.wait()
            self._wake.clear()
            self._look(engine, begun)

    def _look(self, engine: Engine, begun: StartedRun) -> None:
        for member in self._members:
            if member.word is None and self._stopping.is_set():
                member.hang_up()
            elif member.word is None and self._proven:
                member.give(self._task(engine, begun))
        at_work = [member for member in self._members if member.news]
        own = Holding(engine.granted, engine.granted, engine.busy)
        mine, *theirs = grants(engine.allowed, [own, *(member.holding for member in at_work)])
        engine.grant(mine, among=1 + len(at_work))
        for member, calls in zip(at_work, theirs, strict=True):
            member.tell(self._word(member, engine, calls, among=1 + len(at_work)))
        self._tell_of_others(engine)

    def _task(self, engine: Engine, begun: StartedRun) -> Task:
        assert self._config is not None
        hash_ = begun.parts.request_hash
        return Task(
            self._config, self._base_url, begun.run, begun.request, hash_, begun.known, trusted=engine.gate.succeeded
        )

    def _word(self, member: HelperLink, engine: Engine, calls: int, among: int) -> Word:
        limited = engine.budget.limit is not None
        return Word(
            calls,
            among,
            spent=engine.budget.spent - member.cost if limited else 0,
            input_over=engine.input_over,
            stop=self._stopping.is_set(),
            drop=self._dropping,
        )

    def _tell_of_others(self, engine: Engine) -> None:
        members = self._members
        engine.vitals.others = HelperTotals(
            in_flight=sum(len(member.calls) for member in members),
            slots=sum(member.news.slots for member in members if member.news),
            concurrency=sum(member.word.calls for member in members if member.word),
        )

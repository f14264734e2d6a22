"""The engine of one run: what reads, claims, paces, calls and writes, wired up, and steered while it works."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from typing import Protocol

from rowcall.calls.requests import Caller, CallResources
from rowcall.calls.shared_limits import SharedLimits, buckets_of
from rowcall.client import Client, raise_descriptor_limit
from rowcall.config import Config
from rowcall.config.live_settings import LiveSettings
from rowcall.config.units import TokenLimits
from rowcall.engine.duplicate_jobs import DuplicateJobs
from rowcall.engine.executor import Executor
from rowcall.engine.live_status import LiveStatus
from rowcall.engine.options import Options
from rowcall.engine.producer import Destination, Producer
from rowcall.engine.run_parts import RunParts
from rowcall.engine.settler import Settler
from rowcall.engine.stop_reasons import Ending, StopLimits
from rowcall.engine.store_sync import Helm, StoreSync
from rowcall.engine.worker import Assignment, Worker
from rowcall.failures.decide import Judge
from rowcall.failures.gate import ALONE_FOR, PROBE_WAITS, Gate
from rowcall.failures.retries import RetryPolicy
from rowcall.limits.budget import Budget
from rowcall.limits.outlook import Foreseen, Outlook
from rowcall.limits.rate import Bundled, Onlooker, Rate
from rowcall.limits.server_limits import Narrowed, ServerLimits
from rowcall.model.errors import Full, InputError
from rowcall.model.events import Event, Followed, GateClosed, InputRead, Listener, Resting, Settled
from rowcall.model.outcome import Action
from rowcall.model.prices import nano
from rowcall.model.run_stats import RunStats
from rowcall.sources.base import Source
from rowcall.sources.sample import Sample
from rowcall.store.base import Store
from rowcall.store.types import Run


@dataclass(frozen=True, slots=True)
class Timing:
    """The engine's own waits, in seconds: before probes 1, 2, 4, 5; the first call alone for 5."""

    probe_waits: tuple[float, ...] = PROBE_WAITS
    alone_for: float = ALONE_FOR


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that the store knows of.

    Attributes:
        known: the request has answers from earlier.
        spent: nano-dollars, before this run.
        helps: the run is another process's, which counts what this one does too.
        trusted: that one has reached the target.
    """

    store: Store
    parts: RunParts
    client: Client
    session: int
    run: Run
    request: int
    known: bool
    batch: str
    spent: int
    options: Options
    helps: bool = False
    trusted: bool = False

    @property
    def source(self) -> Source:
        """What is read in this run; the export reads all of the input."""
        source, sample = self.parts.source, self.options.sample
        return Sample(source, self.parts.keying.key.of, sample) if sample else source


class Engine:
    """Works one run off.

    Args:
        config: says how.
        begun: the run, as the store knows it.
        tally: what is counted of it.
        emit: told what happens.
        concurrency: most calls in flight to begin with.
        timing: its own waits.
    """

    def __init__(
        self,
        config: Config,
        begun: StartedRun,
        tally: RunStats,
        *,
        emit: Listener,
        concurrency: int,
        timing: Timing,
    ) -> None:
        self._config = config
        self._tally = tally
        self._emit = emit
        self._followed = ""
        self._pauses: set[str] = set()
        self._elsewhere = begun.options.input_over
        self._granted: int | None = None
        self.allowed = concurrency
        self._input_error: InputError | None = None
        store, parts = begun.store, begun.parts
        self.gate = Gate(probe_waits=timing.probe_waits, alone_for=timing.alone_for, trusted=begun.trusted)
        self.adaptive = ServerLimits(concurrency, learns=config.pace.adaptive)
        self.rate, self.outlook = Narrowed(self.adaptive), Outlook()
        self.settler = self._settler(begun, concurrency)
        self.reserving = self._reserving(begun)
        self.caller = parts.make_caller(self._wire(begun, concurrency))
        most = config.stop.max_cost
        self.budget = Budget(None if most is None else nano(most), begun.spent, self.caller.guess)
        self.worker = self._worker(begun, concurrency)
        self.vitals = LiveStatus(tally, self.worker, self.gate, self.rate, self.outlook)
        helm = Helm(self.rate, self.worker.rest, self._follow, None if begun.helps else self._told)
        self.steering = StoreSync(store, begun.run, config.name, parts.target, helm)
        to = Destination(config.name, begun.run.pass_, begun.request, begun.batch)
        self.producer = Producer(
            store, begun.source, parts.keying, to, notice=self.worker.notice, left_behind=begun.options.left_behind
        )
        self._resize()

    @property
    def input_over(self) -> bool:
        """No more records will come."""
        return self._elsewhere() if self._elsewhere else self.producer.over

    def hear(self, event: Event) -> None:
        """What the run's events mean to its pace and its budget."""
        if isinstance(event, GateClosed):
            self.adaptive.outage()
        self.budget(event)

    def hear_of(self, event: Event) -> None:
        """What the events of a helper mean to all processes of the run."""
        self.budget(event)
        if isinstance(event, Settled):
            self.worker.count(event)
        if isinstance(event, Resting):
            self.steering.rest(event.seconds, event.cause)

    @property
    def granted(self) -> int:
        """Requests that this process may have in flight."""
        return self.allowed if self._granted is None else min(self._granted, self.allowed)

    @property
    def busy(self) -> int:
        """Requests that it has in flight, or is about to send."""
        return self.worker.in_flight if self.caller.together == 1 else self.adaptive.in_flight

    @property
    def grace(self) -> float:
        """Seconds that calls in flight are waited for at a stop."""
        return self._config.stop.grace

    def grant(self, calls: int, among: int) -> None:
        """Let this process have at most so many of the ``allowed`` calls in flight, which ``among`` processes share."""
        self.adaptive.among = self.budget.among = among
        if calls != self._granted:
            self._granted = calls
            self._resize()

    def pause(self, by: str, *, pause: bool) -> None:
        """Let no call leave, or no longer hold calls back, for this reason; there may be several."""
        (self._pauses.add if pause else self._pauses.discard)(by)
        if bool(self._pauses) != self.outlook.paused:
            self.outlook.paused = bool(self._pauses)
            self.reserving.withdraw()
            self.worker.hold()

    async def work(self) -> Ending:
        """Read the input, if it is read here, and work it off, at once; returns when both are over.

        Raises:
            InputError: a line cannot be read; what came before it is in the store and may have been called.
            StoreError: the store cannot be used.
        """
        try:
            await self.steering.look()
            async with asyncio.TaskGroup() as group:
                producing = group.create_task(self._produce())
                beside = [group.create_task(self.steering.run()), group.create_task(self.reserving.run())]
                ending = await self.worker.run()
                for task in beside:
                    task.cancel()
                if ending.reason not in ("done", "limit"):
                    producing.cancel()
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        finally:
            self.caller.close()
        if self._input_error:
            raise self._input_error
        return ending

    def totals(self) -> dict[str, object]:
        """What the run did so far, as JSON values."""
        tally = self._tally
        return {
            "calls": tally.calls,
            "done": tally.done,
            "failed": tally.failed,
            "by_status": dict(tally.by_status),
            "tokens": asdict(tally.usage),
            "latency_s": {f"p{p}": tally.latencies.percentile(p / 100) for p in (50, 95, 99)},
            "retried": tally.settled[Action.RETRY],
        }

    def _told(self) -> dict[str, object]:
        return self.totals() | {"live": self.vitals.read()}

    async def _produce(self) -> None:
        if self._elsewhere:
            return
        try:
            await self.producer.run()
        except InputError as error:
            self._input_error = error
            self.worker.stop(Ending("input", error.message))
        except Full as full:
            self.worker.stop_full(full)
        else:
            enqueued = self.producer.enqueued
            self._emit(InputRead(total=enqueued.total, **asdict(enqueued)))

    def _wire(self, begun: StartedRun, concurrency: int) -> CallResources:
        return CallResources(
            begun.client,
            Foreseen(self.rate, self.outlook),
            concurrency,
            begun.parts.call_key,
            self._emit,
            begun.parts.prices,
            places=self.reserving,
            adaptive=self.adaptive,
        )

    def _settler(self, begun: StartedRun, concurrency: int) -> Settler:
        return Settler(
            begun.store,
            concurrency=concurrency,
            emit=self._emit,
            loaded=lambda: self.worker.in_flight > 0,
            full=lambda full: self.worker.stop_full(full),
            share=self._config.input.dedupe and begun.options.limit is None,
            written=lambda group: self.worker.written(group),
        )

    def _reserving(self, begun: StartedRun) -> SharedLimits:
        return SharedLimits(
            begun.store,
            begun.parts.target,
            self.outlook,
            emit=self._emit,
            rested=lambda seconds: self.steering.rest(seconds),
            full=lambda full: self.worker.stop_full(full),
        )

    def _worker(self, begun: StartedRun, concurrency: int) -> Worker:
        config, caller = self._config, self.caller
        backoff = config.retry.backoff
        policy = RetryPolicy(config.retry.attempts, backoff.first, backoff.max, config.response.budgets)
        judge = Judge(self.gate, policy, request_known=begun.known)
        return Worker(
            begun.store,
            Executor(caller, judge, self.settler, emit=self._emit),
            judge,
            _seen_by_worker(self.rate, self.outlook, caller),
            self.settler,
            self._assignment(begun, concurrency),
            emit=self._emit,
            input_over=lambda: self.input_over,
            budget=self.budget,
            twins=DuplicateJobs() if config.input.dedupe else None,
            most=None if caller.takes_places else lambda: self.adaptive.slots,
        )

    def _follow(self, settings: LiveSettings) -> None:
        """Let the config hold, and over it what a person set."""
        self._limit(settings)
        self.pause("set", pause=settings.pause)
        if str(settings) != self._followed:
            self._followed = str(settings)
            self._emit(Followed(self._followed))

    def _limit(self, settings: LiveSettings) -> None:
        pace, most = self._config.pace, self._config.stop.max_cost
        requests = pace.requests if settings.requests is None else settings.requests
        tokens = pace.tokens if settings.tokens is None else settings.tokens
        most = most if settings.max_cost is None else settings.max_cost
        self.allowed = raise_descriptor_limit(settings.concurrency or pace.concurrency)
        self._resize()
        self.reserving.limit(buckets_of(requests or (), tokens or TokenLimits()))
        self.budget.limit = None if most is None or math.isinf(most) else nano(most)

    def _resize(self) -> None:
        concurrency = self.granted
        together = self.caller.together
        calls = concurrency if together == 1 or not concurrency else (concurrency + 1) * together  # one group gathers
        self.caller.resize(concurrency)
        self.adaptive.resize(concurrency)
        self.worker.resize(calls)
        self.settler.resize(min(calls, 2 * max(concurrency, together)))
        if not calls:
            self.worker.hold()

    def _assignment(self, begun: StartedRun, concurrency: int) -> Assignment:
        stop = self._config.stop
        return Assignment(
            begun.session,
            self._config.name,
            begun.run.pass_,
            concurrency,
            limit=begun.options.limit,
            grace=stop.grace,
            patience=StopLimits(stop.first_success, stop.offline_for, None if begun.helps else stop.max_failures),
            beat=min(self._config.store.lease / 12, 5.0),
            max_wait=self._config.retry.max_wait,
        )


class Helpers(Protocol):
    """Other processes that work on a run."""

    def hear(self, event: Event) -> None:
        """An event of this process."""

    def during(
        self, engine: Engine, begun: StartedRun, hear_of: Callable[[Event], None]
    ) -> AbstractAsyncContextManager[None]:
        """They work while the engine does, and have ended afterwards; ``hear_of`` takes their events."""

    def drop(self) -> None:
        """Let them drop their calls in flight."""


def _seen_by_worker(rate: Rate, outlook: Outlook, caller: Caller) -> Rate:
    """How soon calls may start: those that wait for places of their own take none, and several may go at one."""
    seen = Foreseen(Onlooker(rate) if caller.takes_places else rate, outlook)
    return seen if caller.together == 1 else Bundled(seen, caller.together)


def _first(errors: BaseExceptionGroup) -> BaseException:
    """The first error of a group, which is the one that ended the others."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

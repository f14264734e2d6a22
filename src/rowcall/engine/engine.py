"""The engine of one run: reads, claims, calls and writes, and follows what a person sets while it works."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Protocol

from rowcall.calls.door import Door
from rowcall.calls.requests import CallResources
from rowcall.calls.shared_limits import SharedLimits, buckets_of
from rowcall.client import Client, raise_descriptor_limit
from rowcall.config import Config
from rowcall.config.live_settings import LiveSettings
from rowcall.config.units import TokenLimits
from rowcall.engine.build_worker import WorkerOptions, build_worker
from rowcall.engine.claimer import ClaimScope
from rowcall.engine.input_watch import InputWatch
from rowcall.engine.live_status import HelperTotals, LiveStatus
from rowcall.engine.live_view import LiveView, held_up
from rowcall.engine.options import Options
from rowcall.engine.producer import Destination, Producer
from rowcall.engine.run_parts import RunParts
from rowcall.engine.run_state import RunState
from rowcall.engine.stop_reasons import Ending, StopLimits
from rowcall.engine.store_sync import StoreSync
from rowcall.failures.decide import Judge
from rowcall.failures.gate import ALONE_FOR, PROBE_WAITS, Gate
from rowcall.failures.retries import RetryPolicy
from rowcall.limits.budget import Budget
from rowcall.limits.concurrency import Concurrency
from rowcall.limits.server_limits import ServerLimits
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
    """The engine's own waits, in seconds.

    Attributes:
        probe_waits: before each probe during an outage; 1, 2, 4 and then every 5.
        alone_for: for which the first call of a run is left alone, at most 5.
    """

    probe_waits: tuple[float, ...] = PROBE_WAITS
    alone_for: float = ALONE_FOR


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that the store knows of.

    Attributes:
        store: holds its jobs.
        parts: what the config names.
        client: sends its requests.
        session: this process, as the store knows it.
        run, request: the run and its request, as the store knows them.
        known: the request has answers from earlier.
        batch: the label of records that come in.
        spent: nano-dollars spent before this run.
        options: what it was asked for.
        helps: the run belongs to another process, which counts what this one does too.
        trusted: that process has reached the target.
        watch: sees what others bring in, where this process reads no input.
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
    watch: InputWatch | None = None

    @property
    def source(self) -> Source:
        """The input that this run reads: all of it, or a sample. The export always reads all of it."""
        source, sample = self.parts.source, self.options.sample
        return Sample(source, self.parts.keying.key.of, sample) if sample else source


class Engine:
    """Does the work of one run.

    Args:
        config: how.
        started: the run, as the store knows it.
        stats: counts of this run so far, kept by the caller.
        emit: learns of all that happens.
        timing: the engine's own waits.

    Attributes:
        state: the jobs in hand, and why the run stops.
        door: decides when calls may leave.
        concurrency: how many calls may be in flight.
        helpers: the helper processes of the run, as they are now.
    """

    def __init__(self, config: Config, started: StartedRun, stats: RunStats, *, emit: Listener, timing: Timing) -> None:
        self._config = config
        self._started = started
        self._stats = stats
        self._emit = emit
        self._followed = ""
        self._input_error: InputError | None = None
        self.helpers = HelperTotals()
        self.concurrency = Concurrency(config.pace.concurrency, fit=raise_descriptor_limit)
        gate = Gate(probe_waits=timing.probe_waits, alone_for=timing.alone_for, trusted=started.trusted)
        self._server = ServerLimits(self.concurrency, learns=config.pace.adaptive)
        self.door = Door(gate, self._server)
        watch = started.watch
        self.state = RunState(self.door, emit, input_over=watch.over if watch else started.options.input_over)
        self._caller = started.parts.make_caller(
            CallResources(started.client, self.door, started.parts.call_key, emit, started.parts.prices)
        )
        self.concurrency.shape(self._caller.records_per_request, waits_by_request=self._caller.waits_by_request)
        most = config.stop.max_cost
        self.budget = Budget(None if most is None else nano(most), started.spent, self._caller.guess)
        self.door.budget = self.budget
        judge = Judge(gate, _retry_policy(config), request_known=started.known)
        options = _worker_options(config, started)
        self._parts = build_worker(started.store, self.state, self._caller, judge, options, emit=emit)
        self._limits = SharedLimits(started.store, started.parts.target, self._parts.rests, emit=emit)
        self.door.limits = self._limits
        self._status = LiveStatus()
        self._sync = StoreSync(
            started.store,
            started.run,
            config.name,
            started.parts.target,
            door=self.door,
            rests=self._parts.rests,
            totals=None if started.helps else self._totals_and_status,
        )
        to = Destination(config.name, started.run.pass_, started.request, started.batch)
        self._producer = Producer(
            started.store,
            started.source,
            started.parts.keying,
            to,
            notice=self.state.notice,
            left_behind=started.options.left_behind,
        )

    # What others ask of it

    @property
    def busy(self) -> int:
        """Requests that are in flight or about to leave."""
        return self.state.in_flight if self.concurrency.records_per_request == 1 else self.concurrency.in_flight

    @property
    def idle(self) -> bool:
        """Nothing is in flight, and everything is written."""
        return not (self.state.in_flight or self._parts.settler.unwritten)

    @property
    def grace(self) -> float:
        """Seconds for which calls in flight are waited for at a stop."""
        return self._config.stop.grace

    def view(self) -> LiveView:
        """Return how the run stands now."""
        now = monotonic()
        answer = self.door.look(now)
        enqueued, stats, watch = self._producer.enqueued, self._stats, self._started.watch
        if watch:
            total, done, failed = watch.extent
        else:
            done, failed = enqueued.done + enqueued.restored + stats.done, enqueued.failed + stats.failed
            total = max(enqueued.total, done + failed)
        return LiveView(
            concurrency=self.concurrency.allowed,
            slots=self.concurrency.slots + self.helpers.slots,
            in_flight=self.state.in_flight + self.helpers.in_flight,
            total=total,
            done=done,
            failed=failed,
            ended=watch.ended if watch else stats.done + stats.failed,
            enqueued=enqueued,
            reading=not self.state.input_over,
            answer=answer,
            held_up=held_up(self.door, answer, now),
        )

    def totals(self) -> dict[str, object]:
        """Return what the run has done so far, as JSON values."""
        stats = self._stats
        return {
            "calls": stats.calls,
            "done": stats.done,
            "failed": stats.failed,
            "by_status": dict(stats.by_status),
            "tokens": asdict(stats.usage),
            "latency_s": {f"p{p}": stats.latencies.percentile(p / 100) for p in (50, 95, 99)},
            "retried": stats.settled[Action.RETRY],
        }

    # What others tell it

    def hear(self, event: Event) -> None:
        """Take in an event of this process: it may change the pace or the budget."""
        if isinstance(event, GateClosed):
            self._server.outage()
        self.budget(event)

    def hear_helper(self, event: Event) -> None:
        """Take in an event of a helper that concerns all processes of the run."""
        self.budget(event)
        if isinstance(event, Settled):
            self._parts.effects.count(event)
        if isinstance(event, Resting):
            self._parts.rests.rest_elsewhere(event.seconds, event.cause)

    def grant(self, calls: int, among: int) -> None:
        """Give this process its share of the calls in flight of a run that ``among`` processes work on."""
        self._server.among = self.budget.among = among
        self.concurrency.grant(calls)

    def pause(self, by: str, *, pause: bool) -> None:
        """Let no call leave, or take that back, for one of several reasons that may exist at a time."""
        if self.door.pause(by, pause=pause):
            self._limits.withdraw()
            self._parts.worker.adapt()

    def follow(self, settings: LiveSettings) -> None:
        """Let the config's settings hold, and over them what a person has set."""
        pace, most = self._config.pace, self._config.stop.max_cost
        requests = pace.requests if settings.requests is None else settings.requests
        tokens = pace.tokens if settings.tokens is None else settings.tokens
        most = most if settings.max_cost is None else settings.max_cost
        self.concurrency.set(settings.concurrency or pace.concurrency)
        self._limits.limit(buckets_of(requests or (), tokens or TokenLimits()))
        self.budget.limit = None if most is None or math.isinf(most) else nano(most)
        self.pause("set", pause=settings.pause)
        if str(settings) != self._followed:
            self._followed = str(settings)
            self._emit(Followed(self._followed))

    async def reap(self) -> bool:
        """Take back what dead processes held; returns whether that was anything."""
        return await self._parts.heart.reap()

    def drop(self) -> None:
        """Drop the calls in flight; their jobs are put back uncharged."""
        self._parts.worker.drop()

    # The work

    async def work(self) -> Ending:
        """Read the input, if this process reads it, while its records are worked on; returns when both are over.

        Raises:
            InputError: a line cannot be read; the lines before it are in the store and may have been called.
            StoreError: the store cannot be used.
        """
        try:
            await self._sync.look(self)
            async with asyncio.TaskGroup() as group:
                producing = group.create_task(self._produce())
                beside = [group.create_task(self._sync.run(self)), group.create_task(self._limits.run())]
                ending = await self._parts.worker.run()
                for task in beside:
                    task.cancel()
                if ending.reason not in ("done", "limit"):
                    producing.cancel()
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        finally:
            self._caller.close()
        if self._input_error:
            raise self._input_error
        return ending

    async def _produce(self) -> None:
        if not self.state.reads_input:
            return
        try:
            await self._producer.run()
        except InputError as error:
            self._input_error = error
            self.state.stop(Ending("input", error.message))
        except Full as full:
            self.state.stop_full(full)
        else:
            self.state.input_read = True
            self.state.notice()
            enqueued = self._producer.enqueued
            self._emit(InputRead(total=enqueued.total, **asdict(enqueued)))

    def _totals_and_status(self) -> dict[str, object]:
        granted = self.concurrency.jobs + self.helpers.concurrency
        return self.totals() | {"live": self._status.read(self.view(), granted, self._stats.done)}


class Helpers(Protocol):
    """Other processes that work on a run."""

    def hear(self, event: Event) -> None:
        """Take in an event of this process."""

    def during(
        self, engine: Engine, started: StartedRun, hear_helper: Callable[[Event], None]
    ) -> AbstractAsyncContextManager[None]:
        """Have them work while the block runs; they have ended afterwards. ``hear_helper`` takes their events."""

    def drop(self) -> None:
        """Let them drop their calls in flight."""


def _retry_policy(config: Config) -> RetryPolicy:
    backoff = config.retry.backoff
    return RetryPolicy(config.retry.attempts, backoff.first, backoff.max, config.response.budgets)


def _worker_options(config: Config, started: StartedRun) -> WorkerOptions:
    stop = config.stop
    max_failures = None if started.helps else stop.max_failures  # the main process counts those of all
    return WorkerOptions(
        ClaimScope(started.session, config.name, started.run.pass_),
        limit=started.options.limit,
        stop_limits=StopLimits(stop.first_success, stop.offline_for, max_failures, stop.grace),
        beat=min(config.store.lease / 12, 5.0),
        max_wait=config.retry.max_wait,
        dedupe=config.input.dedupe,
    )


def _first(errors: BaseExceptionGroup) -> BaseException:
    """The first error of a group, which is the one that ended the others."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

"""Puts the parts together: input, store, API, output. The only room that knows all concrete classes, with parts.py."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Literal, Protocol

from rowcall.backoff import RetryPolicy
from rowcall.calling import Caller, Wire
from rowcall.client import Client, raise_descriptor_limit
from rowcall.config import Config
from rowcall.config.live import LiveSettings
from rowcall.config.units import TokenLimits
from rowcall.ending import Ending, Patience
from rowcall.errors import Full, InputError, RequestChanged, RowcallError, SchemaMismatch, Unavailable
from rowcall.events import Event, Exporting, Followed, GateClosed, InputRead, Joined, Listener, StoreWaits
from rowcall.executor import Executor
from rowcall.exports import FormatName
from rowcall.job import Status
from rowcall.judge import Judge
from rowcall.network import make_client
from rowcall.outcome import Action
from rowcall.pace.adaptive import Adaptive, Narrowed
from rowcall.pace.budget import Budget
from rowcall.pace.gate import ALONE_FOR, PROBE_WAITS, Closed, Gate
from rowcall.pace.outlook import Foreseen, Outlook
from rowcall.pace.rate import Bundled, Onlooker, Rate
from rowcall.parts import Parts, assemble, check_output, check_output_columns, make_mock, open_reader, open_store
from rowcall.price import nano
from rowcall.producer import Destination, Producer
from rowcall.reserving import Reserving, buckets_of
from rowcall.settler import Settler
from rowcall.sources.base import Source
from rowcall.sources.sampled import Sampled
from rowcall.steering import Helm, Steering
from rowcall.store.base import Counts, Enqueued, ErrorGroup, Reader, RequestStanding, Run, Selection, Store
from rowcall.tally import Tally
from rowcall.twins import Twins
from rowcall.vitals import HeldUp, Vitals
from rowcall.worker import Assignment, Worker
from rowcall.writing import write_output

CONNECTIONS = 10_000
"""Connections that the wire allows: the worker keeps calls in flight to the concurrency, which may be set live."""
IfChanged = Literal["keep", "redo", "stop"]
"""What to do about records that were done with another request: keep their answers, call them again, or stop."""
Ask = Callable[[RequestStanding], IfChanged]


@dataclass(frozen=True, slots=True)
class Options:
    """What one run is asked for.

    Attributes:
        limit: most records worked on; None: all.
        batch: label of the records that come in; None: the number of the pass.
        if_changed: what to do when the request has changed; None: ``ask``, or stop where there is nobody to ask.
        ask: decides when the request has changed.
        retry_failed: failed records are set back to pending first.
        output: the export goes there instead of to the config's path.
        left_behind: pending records that are no longer in the input are worked on too.
        sample: only so many records of the input, the same ones each time; None: all.
        now: a rest that an earlier run was asked for is not kept.
    """

    limit: int | None = None
    batch: str | None = None
    if_changed: IfChanged | None = None
    ask: Ask | None = None
    retry_failed: bool = False
    output: Path | None = None
    left_behind: bool = False
    sample: int | None = None
    now: bool = False


@dataclass(frozen=True, slots=True)
class Timing:
    """The engine's own waits, in seconds: before probes 1, 2, 4, 5; the first call alone for 5."""

    probe_waits: tuple[float, ...] = PROBE_WAITS
    alone_for: float = ALONE_FOR


class Assembling(Protocol):
    """Makes the parts of a run from a resolved config; blocks, and raises what ``parts.assemble`` does."""

    def __call__(self, config: Config, *, base_url: str | None = None) -> Parts:
        """The parts; ``base_url`` goes before the config's."""


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """What a run did and how things stand after it.

    Attributes:
        ending: why it ended.
        enqueued: what the input brought.
        counts: the whole kind, afterwards.
        strays: records of earlier inputs that are no longer in this one, and not done.
        output: the file that was written, with its rows.
        elapsed: seconds.
        errors: failed records of the kind by reason, most first.
    """

    kind: str
    ending: Ending
    enqueued: Enqueued
    tally: Tally
    counts: Counts
    strays: int
    joined: bool
    output: Path | None
    rows: int
    elapsed: float
    errors: Sequence[ErrorGroup] = ()

    @property
    def done(self) -> int:
        """Records of the kind that are done."""
        return self.counts.of(Status.DONE)

    @property
    def failed(self) -> int:
        """Records of the kind that are failed."""
        return self.counts.of(Status.FAILED)

    @property
    def left(self) -> int:
        """Records of the kind that are neither done nor failed, those of earlier inputs too."""
        return self.counts.of(Status.PENDING) + self.counts.of(Status.RUNNING)

    @property
    def total(self) -> int:
        """All records of the kind."""
        return self.counts.total

    def __repr__(self) -> str:
        said = f"{self.total:,} records: {self.done:,} done, {self.failed:,} failed"
        left = self.counts.of(Status.PENDING) + self.counts.of(Status.RUNNING)
        return f"<Report {self.kind}: {self.ending.reason}; {said}, {left:,} left; {self.elapsed:.1f} s>"


@dataclass(frozen=True, slots=True)
class _Agreement:
    """What was agreed about answers made with another request, before a row is read."""

    keep: bool = False
    known: bool = False  # the request has answers already


@dataclass(frozen=True, slots=True)
class _Begun:
    """A run that the store knows of."""

    store: Store
    parts: Parts
    client: Client
    session: int
    run: Run
    request: int
    known: bool
    batch: str
    limit: int | None
    left_behind: bool
    spent: int
    sample: int | None

    @property
    def source(self) -> Source:
        """What is read in this run; the export reads all of the input."""
        source = self.parts.source
        return Sampled(source, self.parts.keying.key.of, self.sample) if self.sample else source


@dataclass(frozen=True, slots=True)
class _Live:
    """What a run in progress shows."""

    worker: Worker
    producer: Producer
    gate: Gate
    rate: Rate
    adaptive: Adaptive
    caller: Caller
    settler: Settler
    outlook: Outlook
    reserving: Reserving
    steering: Steering
    vitals: Vitals
    budget: Budget


class Pipeline:
    """One batch job: a config, its store, its API.

    Args:
        config: what to do.
        emit: told what happens, for the display.
        timing: the engine's own waits.
        assembling: makes the parts; left out: as the config says.
    """

    def __init__(
        self,
        config: Config,
        *,
        emit: Listener | None = None,
        timing: Timing = Timing(),
        assembling: Assembling = assemble,
    ) -> None:
        self.config = config
        self.tally = Tally()
        self._listener = emit
        self._timing = timing
        self._assembling = assembling
        self._concurrency = raise_descriptor_limit(config.pace.concurrency)
        self._live: _Live | None = None
        self._followed = ""
        self._worked_off = False
        self._budget: Budget | None = None
        self._stopped: Ending | None = None
        self._input_error: InputError | None = None

    # What people see while it runs

    @property
    def enqueued(self) -> Enqueued:
        """What became of the input so far."""
        return self._live.producer.enqueued if self._live else Enqueued()

    @property
    def reading(self) -> bool:
        """The input has not been read to its end."""
        return not (self._live and self._live.producer.over)

    @property
    def progress(self) -> tuple[int, int, int]:
        """Records of the input so far, those done, those failed; done and failed never exceed the total."""
        enqueued, tally = self.enqueued, self.tally
        done, failed = enqueued.done + enqueued.restored + tally.done, enqueued.failed + tally.failed
        return max(enqueued.total, done + failed), done, failed

    @property
    def concurrency(self) -> int:
        """Most calls in flight: as configured or set, or what the limit of open files allows."""
        return self._live.worker.concurrency if self._live else self._concurrency

    @property
    def slots(self) -> int:
        """Calls that may be in flight now: at most ``concurrency``, fewer where the API takes no more."""
        return self._live.worker.slots if self._live else self._concurrency

    @property
    def in_flight(self) -> int:
        """Calls under way."""
        return self._live.worker.in_flight if self._live else 0

    @property
    def outage(self) -> Closed | None:
        """The outage, while the API cannot be reached."""
        return self._live.gate.closed if self._live else None

    @property
    def working(self) -> bool:
        """Calls may be under way, so that a stop has something to wait for."""
        return self._live is not None and not self._worked_off

    @property
    def resting_for(self) -> float:
        """Seconds for which no call leaves, as the API asked."""
        return max(0.0, self._live.rate.resting_until - monotonic()) if self._live else 0.0

    @property
    def held_up(self) -> HeldUp | None:
        """What keeps calls from leaving."""
        return self._live.vitals.held_up if self._live else None

    @property
    def paused(self) -> bool:
        """A person wants no call to leave."""
        return self._live is not None and self._live.outlook.paused

    @property
    def first_alone(self) -> bool:
        """The first call of the run is out, and the others wait for what it gives."""
        gate = self._live.gate if self._live else None
        return bool(gate and gate.sent and gate.closed is None and gate.room(monotonic()) == 0)

    @property
    def api_wait(self) -> float:
        """Seconds until the API's limits, told by it or learned, let the next call leave."""
        now = monotonic()
        return max(0.0, self._live.adaptive.next_at(now) - now) if self._live else 0.0

    @property
    def spent_for(self) -> float:
        """Seconds for which nothing is left of a limit that the API told of."""
        now = monotonic()
        return max(0.0, (self._live.adaptive.spent_until(now) or now) - now) if self._live else 0.0

    @property
    def rate_wait(self) -> float:
        """Seconds until the limits let the next call leave."""
        now = monotonic()
        return max(0.0, self._live.outlook.next_at(now) - now) if self._live else 0.0

    @property
    def limits(self) -> str:
        """The limits in force, as people write them."""
        return ", ".join(map(str, self._live.reserving.buckets)) if self._live else ""

    def stop(self, reason: str, message: str = "") -> None:
        """Take no more jobs; calls in flight are waited for up to ``[stop] grace``."""
        self._stopped = self._stopped or Ending(reason, message)
        if self._live:
            self._live.worker.stop(self._stopped)

    def drop(self) -> None:
        """Drop the calls in flight; their records go back uncharged."""
        if self._live:
            self._live.worker.drop()

    # A run, from its start to its report

    async def run(self, options: Options = Options()) -> Report:
        """Start, or go on: bring the input in, call what is not done, export.

        Raises:
            ConfigError: a template does not fit the input, a secret is not set.
            InputError: a line cannot be read; what came before it is in the store and may have been called.
            RequestChanged: done records were made with another request, and nobody said what to do.
            StoreError: the store cannot be used.
        """
        started = monotonic()
        output = options.output or self.config.output_path
        if output:
            check_output(self.config, output)
        async with AsyncExitStack() as stack:
            parts = await self._prepare(stack)
            if output:
                check_output_columns(self.config, parts.source.columns())
            agreement = await self._agree(parts, options)
            begun = await self._begin(stack, parts, agreement, options)
            try:
                ending = await self._work(begun)
            except RowcallError as error:
                await begun.store.end_run(begun.run, "error", {"message": error.message})
                raise
            await begun.store.end_run(begun.run, ending.reason, self._totals())
            self._worked_off = True
            return await self._report(begun, ending, output, monotonic() - started)

    async def bring_in(self, stack: AsyncExitStack, options: Options = Options()) -> tuple[Store, Parts]:
        """Bring the input in and call nothing; the store stays open until ``stack`` ends.

        Raises:
            ConfigError, InputError, RequestChanged, StoreError: as ``run``.
        """
        parts = await self._prepare(stack)
        agreement = await self._agree(parts, options)
        begun = await self._begin(stack, parts, agreement, options)
        to = Destination(self.config.name, begun.run.pass_, begun.request, begun.batch)
        try:
            await Producer(begun.store, parts.source, parts.keying, to, notice=lambda: None).run()
        finally:
            await begun.store.end_run(begun.run, "brought in", {})
        return begun.store, parts

    async def export(self, path: Path, *, format_: FormatName | None = None, only: Status | None = None) -> int:
        """Write the input with its answers; returns how many rows.

        Args:
            path: where to; ``-`` is stdout.
            format_: None: the config's for the config's own path, else by the path's suffix.
            only: records with that status alone.
        """
        check_output(self.config, path, format_)
        parts = await asyncio.to_thread(lambda: self._assembling(self.config.resolve()))
        check_output_columns(self.config, parts.source.columns())
        async with await open_reader(self.config) as reader:
            return await self._export(reader, parts, path, format_, only)

    async def _prepare(self, stack: AsyncExitStack) -> Parts:
        base_url = None
        if self.config.api.preset == "mock":
            base_url = (await stack.enter_async_context(make_mock(self.config))).url
        return await asyncio.to_thread(lambda: self._assembling(self.config.resolve(), base_url=base_url))

    async def _agree(self, parts: Parts, options: Options) -> _Agreement:
        """Ask before a changed request makes done records be called again."""
        standing = await self._standing(parts)
        known = standing.done > 0
        if standing.latest or not standing.done_under_others:
            return _Agreement(known=known)
        choice = options.if_changed or (options.ask(standing) if options.ask else "stop")
        if choice == "stop":
            raise _changed(self.config.name, standing)
        return _Agreement(keep=choice == "keep", known=known)

    async def _standing(self, parts: Parts) -> RequestStanding:
        try:
            reader = await open_reader(self.config)
        except (Unavailable, SchemaMismatch):  # not made yet, or half made; else opening it to write says the same
            return RequestStanding(None, latest=True, done=0, done_under_others=0)
        async with reader:
            return await reader.request_standing(self.config.name, parts.request_hash)

    async def _begin(self, stack: AsyncExitStack, parts: Parts, agreement: _Agreement, options: Options) -> _Begun:
        """Open the store and make this run known in it; what begins here ends with ``stack``."""
        name = self.config.name
        store = await stack.enter_async_context(await open_store(self.config, self._wait))
        client = await stack.enter_async_context(make_client(self.config, CONNECTIONS, parts.network))
        session = await store.begin_session()
        stack.push_async_callback(store.end_session, session)
        await store.reap()
        request = await (store.adopt if agreement.keep else store.request)(name, parts.request_hash)
        if options.retry_failed:
            await store.retry(name, Selection(statuses=(Status.FAILED,)))
        run = await store.begin_run(session, name, self.config.settings())
        if run.joined:
            self._emit(Joined(run.pass_))
        batch = options.batch or f"pass-{run.pass_}"
        spent = await store.spent(name)
        left_behind = options.left_behind
        if options.now:
            await store.end_rest(parts.target)
        return _Begun(
            store,
            parts,
            client,
            session,
            run,
            request,
            agreement.known,
            batch,
            options.limit,
            left_behind,
            spent,
            options.sample,
        )

    async def _work(self, begun: _Begun) -> Ending:
        """Read the input and work it off, at once; returns when both are over."""
        live = self._live = self._wire_up(begun)
        if self._stopped:
            live.worker.stop(self._stopped)
        try:
            await live.steering.look()
            async with asyncio.TaskGroup() as group:
                producing = group.create_task(self._produce(live))
                beside = [group.create_task(live.steering.run()), group.create_task(live.reserving.run())]
                ending = await live.worker.run()
                for task in beside:
                    task.cancel()
                if ending.reason not in ("done", "limit"):
                    producing.cancel()
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        finally:
            live.caller.close()
        if self._input_error:
            raise self._input_error
        return ending

    async def _produce(self, live: _Live) -> None:
        try:
            await live.producer.run()
        except InputError as error:
            self._input_error = error
            live.worker.stop(Ending("input", error.message))
        except Full as full:
            live.worker.stop_full(full)
        else:
            self._emit(InputRead(total=self.enqueued.total, **asdict(self.enqueued)))

    def _wire_up(self, begun: _Begun) -> _Live:
        config, store, run = self.config, begun.store, begun.run
        gate = Gate(probe_waits=self._timing.probe_waits, alone_for=self._timing.alone_for)
        backoff = config.retry.backoff
        policy = RetryPolicy(config.retry.attempts, backoff.first, backoff.max, config.response.budgets)
        judge = Judge(gate, policy, request_known=begun.known)
        adaptive = Adaptive(self._concurrency, learns=config.pace.adaptive)
        rate, outlook, parts = Narrowed(adaptive), Outlook(), begun.parts
        settler = Settler(
            store,
            concurrency=self._concurrency,
            emit=self._emit,
            loaded=lambda: worker.in_flight > 0,
            full=lambda full: worker.stop_full(full),
            share=config.input.dedupe and begun.limit is None,
            written=lambda group: worker.written(group),
        )
        reserving = Reserving(
            store,
            parts.target,
            outlook,
            emit=self._emit,
            rested=lambda seconds: steering.rest(seconds),
            full=lambda full: worker.stop_full(full),
        )
        foreseen = Foreseen(rate, outlook)
        wire = Wire(
            begun.client,
            foreseen,
            self._concurrency,
            parts.call_key,
            self._emit,
            parts.prices,
            places=reserving,
            adaptive=adaptive,
        )
        caller = parts.make_caller(wire)
        most = config.stop.max_cost
        budget = Budget(None if most is None else nano(most), begun.spent, caller.guess)
        self._budget = budget
        executor = Executor(caller, judge, settler, emit=self._emit)
        worker = Worker(
            store,
            executor,
            judge,
            _seen_by_worker(rate, outlook, caller),
            settler,
            self._assignment(begun),
            emit=self._emit,
            input_over=lambda: producer.over,
            budget=budget,
            twins=Twins() if config.input.dedupe else None,
            most=None if caller.takes_places else lambda: adaptive.slots,
        )
        vitals = Vitals(self.tally, worker, gate, rate, outlook)
        helm = Helm(rate, worker.rest, self._follow, lambda: self._totals() | {"live": vitals.read()})
        steering = Steering(store, run, config.name, parts.target, helm)
        to = Destination(config.name, run.pass_, begun.request, begun.batch)
        producer = Producer(store, begun.source, parts.keying, to, notice=worker.notice, left_behind=begun.left_behind)
        live = _Live(
            worker, producer, gate, rate, adaptive, caller, settler, outlook, reserving, steering, vitals, budget
        )
        self._resize(live, self._concurrency)
        return live

    def _follow(self, settings: LiveSettings) -> None:
        """Let the config hold, and over it what a person set."""
        live = self._live
        assert live is not None
        self._limit(live, settings)
        if settings.pause != live.outlook.paused:
            live.outlook.paused = settings.pause
            live.reserving.withdraw()
            live.worker.hold()
        if str(settings) != self._followed:
            self._followed = str(settings)
            self._emit(Followed(self._followed))

    def _limit(self, live: _Live, settings: LiveSettings) -> None:
        pace, most = self.config.pace, self.config.stop.max_cost
        requests = pace.requests if settings.requests is None else settings.requests
        tokens = pace.tokens if settings.tokens is None else settings.tokens
        most = most if settings.max_cost is None else settings.max_cost
        self._resize(live, raise_descriptor_limit(settings.concurrency or pace.concurrency))
        live.reserving.limit(buckets_of(requests or (), tokens or TokenLimits()))
        live.budget.limit = None if most is None or math.isinf(most) else nano(most)

    def _resize(self, live: _Live, concurrency: int) -> None:
        together = live.caller.together
        calls = concurrency if together == 1 else (concurrency + 1) * together  # one group gathers
        live.caller.resize(concurrency)
        live.adaptive.resize(concurrency)
        live.worker.resize(calls)
        live.settler.resize(min(calls, 2 * max(concurrency, together)))

    def _assignment(self, begun: _Begun) -> Assignment:
        stop = self.config.stop
        return Assignment(
            begun.session,
            self.config.name,
            begun.run.pass_,
            self._concurrency,
            limit=begun.limit,
            grace=stop.grace,
            patience=Patience(stop.first_success, stop.offline_for, stop.max_failures),
            beat=min(self.config.store.lease / 12, 5.0),
            max_wait=self.config.retry.max_wait,
        )

    async def _report(self, begun: _Begun, ending: Ending, output: Path | None, elapsed: float) -> Report:
        name, store = self.config.name, begun.store
        return Report(
            kind=name,
            ending=ending,
            enqueued=self.enqueued,
            tally=self.tally,
            counts=await store.counts(name),
            strays=0 if self.reading or begun.sample else await store.strays(name, begun.run.pass_),
            joined=begun.run.joined,
            output=output,
            rows=await self._export(store, begun.parts, output) if output else 0,
            elapsed=elapsed,
            errors=await store.errors(name),
        )

    async def _export(
        self, reader: Reader, parts: Parts, path: Path, format_: FormatName | None = None, only: Status | None = None
    ) -> int:
        self._emit(Exporting(str(path)))
        return await write_output(self.config, parts, reader, path, format_=format_, only=only)

    def _totals(self) -> dict[str, object]:
        tally = self.tally
        return {
            "calls": tally.calls,
            "done": tally.done,
            "failed": tally.failed,
            "by_status": dict(tally.by_status),
            "tokens": asdict(tally.usage),
            "latency_s": {f"p{p}": tally.latencies.percentile(p / 100) for p in (50, 95, 99)},
            "retried": tally.settled[Action.RETRY],
        }

    def _wait(self, message: str) -> None:
        self._emit(StoreWaits(message))

    def _emit(self, event: Event) -> None:
        self.tally(event)
        if isinstance(event, GateClosed) and self._live:
            self._live.adaptive.outage()
        if self._budget:
            self._budget(event)
        if self._listener:
            self._listener(event)


def _seen_by_worker(rate: Rate, outlook: Outlook, caller: Caller) -> Rate:
    """How soon calls may start: those that wait for places of their own take none, and several may go at one."""
    seen = Foreseen(Onlooker(rate) if caller.takes_places else rate, outlook)
    return seen if caller.together == 1 else Bundled(seen, caller.together)


def _changed(name: str, standing: RequestStanding) -> RequestChanged:
    return RequestChanged(
        f"{name}: the request has changed since {standing.done_under_others:,} records were done",
        done=standing.done_under_others,
        remedy="--if-changed keep   their answers stand\n  --if-changed redo   they are called again",
    )


def _first(errors: BaseExceptionGroup) -> BaseException:
    """The first error of a group, which is the one that ended the others."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

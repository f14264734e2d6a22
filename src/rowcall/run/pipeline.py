"""Puts the parts together: input, store, API, output. With engine.py and parts.py it knows all concrete classes."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Protocol

from rowcall.client import raise_descriptor_limit
from rowcall.client.network import make_client
from rowcall.config import Config
from rowcall.engine.engine import Engine, Helpers, StartedRun, Timing
from rowcall.engine.input_watch import InputWatch
from rowcall.engine.live_status import HeldUp
from rowcall.engine.options import Options, Report
from rowcall.engine.producer import Destination, Producer, alive, leave
from rowcall.engine.run_parts import RunParts
from rowcall.engine.stop_reasons import Ending
from rowcall.failures.gate import Closed
from rowcall.model.errors import Busy, Full, RowcallError
from rowcall.model.events import Event, Exporting, Joined, Listener, Resting, Stopping, StoreWaits
from rowcall.model.job import Status
from rowcall.model.run_stats import RunStats
from rowcall.output import FormatName
from rowcall.run.assembly import assemble, assemble_without_input
from rowcall.run.job_store import open_reader, open_store
from rowcall.run.make_calls import make_mock
from rowcall.run.output_config import check_output, check_output_columns
from rowcall.run.request_check import REQUEST_HASH, CheckedRequest, check_request, require_one_request
from rowcall.run.write_output import write_output
from rowcall.store.base import Reader, Store
from rowcall.store.types import Enqueued, Role, Run, Selection
from rowcall.system.threads import apart

CONNECTIONS = 10_000
"""Connections that the wire allows: the worker keeps calls in flight to the concurrency, which may be set live."""


class Assembling(Protocol):
    """Makes the parts of a run from a resolved config; blocks, and raises what ``parts.assemble`` does."""

    def __call__(self, config: Config, *, base_url: str | None = None) -> RunParts:
        """The parts; ``base_url`` goes before the config's."""


@dataclass(frozen=True, slots=True)
class BroughtIn:
    """An input that stands in the store, uncalled.

    Attributes:
        withheld: why workers need the config; empty where they do not.
    """

    store: Store
    parts: RunParts
    run: Run
    enqueued: Enqueued
    withheld: str


class Pipeline:
    """One batch job: a config, its store, its API.

    Args:
        config: what to do.
        emit: told what happens, for the display.
        timing: the engine's own waits.
        assembling: makes the parts; left out: as the config says. Without helpers, who reads no input needs none.
        helpers: other processes that work on the run too.
    """

    def __init__(
        self,
        config: Config,
        *,
        emit: Listener | None = None,
        timing: Timing = Timing(),
        assembling: Assembling = assemble,
        helpers: Helpers | None = None,
    ) -> None:
        self.config = config
        self.tally = RunStats()
        self._listener = emit
        self._timing = timing
        self._assembling = assembling
        self._helpers = helpers
        self._concurrency = raise_descriptor_limit(config.pace.concurrency)
        self._engine: Engine | None = None
        self._upstream: InputWatch | None = None
        self._worked_off = False
        self._stopped: Ending | None = None

    # What people see while it runs

    @property
    def enqueued(self) -> Enqueued:
        """What became of the input so far."""
        return self._engine.producer.enqueued if self._engine else Enqueued()

    @property
    def reading(self) -> bool:
        """The input has not been read to its end."""
        return not (self._engine and self._engine.input_over)

    @property
    def progress(self) -> tuple[int, int, int]:
        """Records of the input so far, those done, those failed; done and failed never exceed the total.

        Where no input is read, of the kind, whoever works on it.
        """
        if self._upstream:
            return self._upstream.extent
        enqueued, tally = self.enqueued, self.tally
        done, failed = enqueued.done + enqueued.restored + tally.done, enqueued.failed + tally.failed
        return max(enqueued.total, done + failed), done, failed

    @property
    def ended(self) -> int:
        """Records that were done or failed in this run; where no input is read, by whoever works on the kind."""
        return self._upstream.ended if self._upstream else self.tally.done + self.tally.failed

    @property
    def concurrency(self) -> int:
        """Most calls in flight: as configured or set, or what the limit of open files allows."""
        return self._engine.allowed if self._engine else self._concurrency

    @property
    def slots(self) -> int:
        """Calls that may be in flight now: at most ``concurrency``, fewer where the API takes no more."""
        return self._engine.worker.slots + self._engine.vitals.others.slots if self._engine else self._concurrency

    @property
    def in_flight(self) -> int:
        """Calls under way."""
        return self._engine.worker.in_flight + self._engine.vitals.others.in_flight if self._engine else 0

    @property
    def outage(self) -> Closed | None:
        """The outage, while the API cannot be reached."""
        return self._engine.gate.closed if self._engine else None

    @property
    def working(self) -> bool:
        """Calls may be under way, so that a stop has something to wait for."""
        return self._engine is not None and not self._worked_off

    @property
    def resting_for(self) -> float:
        """Seconds for which no call leaves, as the API asked."""
        return max(0.0, self._engine.rate.resting_until - monotonic()) if self._engine else 0.0

    @property
    def held_up(self) -> HeldUp | None:
        """What keeps calls from leaving."""
        return self._engine.vitals.held_up if self._engine else None

    @property
    def paused(self) -> bool:
        """A person wants no call to leave."""
        return self._engine is not None and self._engine.outlook.paused

    @property
    def first_alone(self) -> bool:
        """The first call of the run is out, and the others wait for what it gives."""
        gate = self._engine.gate if self._engine else None
        return bool(gate and gate.sent and gate.closed is None and gate.room(monotonic()) == 0)

    @property
    def api_wait(self) -> float:
        """Seconds until the API's limits, told by it or learned, let the next call leave."""
        now = monotonic()
        return max(0.0, self._engine.adaptive.next_at(now) - now) if self._engine else 0.0

    @property
    def spent_for(self) -> float:
        """Seconds for which nothing is left of a limit that the API told of."""
        now = monotonic()
        return max(0.0, (self._engine.adaptive.spent_until(now) or now) - now) if self._engine else 0.0

    @property
    def rate_wait(self) -> float:
        """Seconds until the limits let the next call leave."""
        now = monotonic()
        return max(0.0, self._engine.outlook.next_at(now) - now) if self._engine else 0.0

    @property
    def limits(self) -> str:
        """The limits in force, as people write them."""
        return ", ".join(map(str, self._engine.reserving.buckets)) if self._engine else ""

    def stop(self, reason: str, message: str = "") -> None:
        """Take no more jobs; calls in flight are waited for up to ``[stop] grace``."""
        self._stopped = self._stopped or Ending(reason, message)
        if self._engine:
            self._engine.worker.stop(self._stopped)

    def drop(self) -> None:
        """Drop the calls in flight; their records go back uncharged."""
        if self._engine:
            self._engine.worker.drop()
        if self._helpers:
            self._helpers.drop()

    # A run, from its start to its report

    async def run(self, options: Options = Options()) -> Report:
        """Start, or go on: bring the input in, call what is not done, export.

        With ``options.input_over``, and in the role of work, no input is brought in and nothing is exported.

        Raises:
            ConfigError: a template does not fit the input, a secret is not set.
            InputError: a line cannot be read; what came before it is in the store and may have been called.
            RequestChanged: done records were made with another request, and nobody said what to do.
            StoreError: the store cannot be used.
        """
        started = monotonic()
        output = (options.output or self.config.output_path) if options.reads else None
        if output:
            check_output(self.config, output)
        async with AsyncExitStack() as stack:
            parts = await self._prepare(stack, options)
            if output:
                check_output_columns(self.config, parts.source.columns())
            checked = await check_request(self.config, parts, options)
            begun = await self._begin(stack, parts, checked, options)
            engine = self._engine = self._wired(begun)
            try:
                async with self._helped(engine, begun):
                    ending = await engine.work()
            except RowcallError as error:
                await self._end(begun, "error", {"message": error.message})
                raise
            await self._end(begun, ending.reason, engine.totals())
            self._worked_off = True
            return await self._report(begun, ending, output, monotonic() - started)

    async def bring_in(self, stack: AsyncExitStack, options: Options = Options()) -> BroughtIn:
        """Bring the input in and call nothing; the store stays open until ``stack`` ends.

        Raises:
            ConfigError, InputError, RequestChanged, StoreError: as ``run``.
        """
        options = replace(options, role=Role.ENQUEUE)
        parts = await self._prepare(stack, options)
        checked = await check_request(self.config, parts, options)
        begun = await self._begin(stack, parts, checked, options)
        to = Destination(self.config.name, begun.run.pass_, begun.request, begun.batch)
        producer = Producer(begun.store, begun.source, parts.keying, to, notice=lambda: None)
        try:
            async with alive(begun.store, begun.session, self.config.store.lease):
                await producer.run()
        finally:
            await begun.store.end_run(begun.run, "enqueued", {})
        return BroughtIn(begun.store, parts, begun.run, producer.enqueued, checked.recipe.withheld)

    async def export(self, path: Path, *, format_: FormatName | None = None, only: Status | None = None) -> int:
        """Write the input with its answers; returns how many rows.

        Args:
            path: where to; ``-`` is stdout.
            format_: None: the config's for the config's own path, else by the path's suffix.
            only: records with that status alone.
        """
        check_output(self.config, path, format_)
        parts = await apart(lambda: self._assembling(self.config.resolve()), "input")
        check_output_columns(self.config, parts.source.columns())
        async with await open_reader(self.config) as reader:
            return await self._export(reader, parts, path, format_, only)

    async def _prepare(self, stack: AsyncExitStack, options: Options) -> RunParts:
        base_url = None
        assembling = self._assembling if options.reads or self._helpers else assemble_without_input
        if self.config.api.preset == "mock":
            base_url = (await stack.enter_async_context(make_mock(self.config))).url
        return await apart(lambda: assembling(self.config.resolve(), base_url=base_url), "input")

    async def _begin(
        self, stack: AsyncExitStack, parts: RunParts, checked: CheckedRequest, options: Options
    ) -> StartedRun:
        """Open the store and make this run known in it; what begins here ends with ``stack``."""
        name = self.config.name
        store = await stack.enter_async_context(await open_store(self.config, self._wait))
        client = await stack.enter_async_context(make_client(self.config, CONNECTIONS, parts.network))
        session = await store.begin_session()
        stack.push_async_exit(partial(leave, store, session))
        await store.reap()
        settings = self.config.settings() | {REQUEST_HASH: parts.request_hash}
        run = await store.begin_run(session, name, settings, role=options.role)
        if run.joined:
            await require_one_request(store, name, run, parts.request_hash)
            self._emit(Joined(run.pass_))
        request = await (store.adopt if checked.keep else store.request)(name, parts.request_hash)
        if options.retry_failed:
            await store.retry(name, Selection(statuses=(Status.FAILED,)))
        if options.role is Role.ENQUEUE or (options.reads and not run.joined):
            await store.publish(name, checked.recipe.to_keep())
        if options.role is Role.WORK:
            options = await self._look_upstream(stack, options)
        batch = options.batch or f"pass-{run.pass_}"
        spent = await store.spent(name)
        if options.now:
            await store.end_rest(parts.target)
        return StartedRun(store, parts, client, session, run, request, checked.known, batch, spent, options)

    async def _look_upstream(self, stack: AsyncExitStack, options: Options) -> Options:
        """Know from now on whether others bring more in."""
        reader = await stack.enter_async_context(await open_reader(self.config))
        self._upstream = InputWatch(reader, self.config.name, wait=options.wait)
        await stack.enter_async_context(self._upstream.watched())
        return replace(options, input_over=self._upstream.over)

    async def _end(self, begun: StartedRun, reason: str, totals: dict[str, object]) -> None:
        """Write how a run ended; where the store takes nothing more, whoever looks sees that its process is gone."""
        with suppress(Busy, Full):
            await begun.store.end_run(begun.run, reason, totals)

    def _wired(self, begun: StartedRun) -> Engine:
        engine = Engine(
            self.config,
            begun,
            self.tally,
            emit=self._emit,
            concurrency=self._concurrency,
            timing=self._timing,
        )
        if self._stopped:
            engine.worker.stop(self._stopped)
        return engine

    async def _report(self, begun: StartedRun, ending: Ending, output: Path | None, elapsed: float) -> Report:
        name, store = self.config.name, begun.store
        return Report(
            kind=name,
            ending=ending,
            enqueued=self.enqueued,
            tally=self.tally,
            counts=await store.counts(name),
            strays=await self._strays(begun),
            role=begun.options.role,
            joined=begun.run.joined,
            output=output,
            rows=await self._export(store, begun.parts, output) if output else 0,
            elapsed=elapsed,
            errors=await store.errors(name),
        )

    async def _strays(self, begun: StartedRun) -> int:
        """Records that are no longer in the input; none where this run was to read it, and has not read all of it."""
        unread = self.reading or not begun.options.reads or begun.options.sample
        if unread and begun.options.role is not Role.WORK:
            return 0
        return await begun.store.strays(self.config.name, begun.run.pass_)

    async def _export(
        self, reader: Reader, parts: RunParts, path: Path, format_: FormatName | None = None, only: Status | None = None
    ) -> int:
        self._emit(Exporting(str(path)))
        return await write_output(self.config, parts, reader, path, format_=format_, only=only)

    def _wait(self, message: str) -> None:
        self._emit(StoreWaits(message))

    def _helped(self, engine: Engine, begun: StartedRun) -> AbstractAsyncContextManager[None]:
        return self._helpers.during(engine, begun, self._hear_of) if self._helpers else nullcontext()

    def _emit(self, event: Event) -> None:
        if isinstance(event, Stopping):
            event = replace(event, in_flight=self.in_flight)
        if self._engine:
            self._engine.hear(event)
        if self._helpers:
            self._helpers.hear(event)
        self._tell(event)

    def _hear_of(self, event: Event) -> None:
        """Take in what a helper says; a rest that it was asked for becomes this process's own."""
        assert self._engine is not None
        self._engine.hear_of(event)
        if not isinstance(event, Resting):
            self._tell(event)

    def _tell(self, event: Event) -> None:
        self.tally(event)
        if self._listener:
            self._listener(event)

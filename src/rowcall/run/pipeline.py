"""Puts the parts of a run together, from its start to its report: input, store, API, output."""

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
from rowcall.engine.live_view import LiveView, view_before
from rowcall.engine.options import Options, Report
from rowcall.engine.producer import Destination, Producer, alive, leave
from rowcall.engine.run_parts import RunParts
from rowcall.engine.stop_reasons import Ending
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
from rowcall.system.threads import run_in_own_thread

CONNECTIONS = 10_000
"""Connections that the client may open. The engine limits calls in flight, and that limit may be set live."""


class MakeParts(Protocol):
    """Makes the parts of a run from a resolved config. It blocks, and raises what ``assemble`` raises."""

    def __call__(self, config: Config, *, base_url: str | None = None) -> RunParts:
        """Return the parts; ``base_url`` replaces the one in the config."""


@dataclass(frozen=True, slots=True)
class EnqueuedInput:
    """An input whose records were added to the store but not called.

    Attributes:
        withheld: why workers need the config file; empty if the store holds all they need.
    """

    store: Store
    parts: RunParts
    run: Run
    enqueued: Enqueued
    withheld: str


class Pipeline:
    """One batch job: a config, its store and its API.

    Args:
        config: what to do.
        emit: called with each event.
        timing: the engine's own waits.
        make_parts: makes the parts of a run; default: as the config says.
        helpers: other processes that work on the run too; None: none.

    Attributes:
        tally: counts of this run so far.
        working: calls may be in flight, so that a stop has something to wait for.
    """

    def __init__(
        self,
        config: Config,
        *,
        emit: Listener | None = None,
        timing: Timing = Timing(),
        make_parts: MakeParts = assemble,
        helpers: Helpers | None = None,
    ) -> None:
        self.config = config
        self.tally = RunStats()
        self._listener = emit
        self._timing = timing
        self._make_parts = make_parts
        self._helpers = helpers
        self._allowed = raise_descriptor_limit(config.pace.concurrency)
        self._engine: Engine | None = None
        self.working = False
        self._stopped: Ending | None = None

    @property
    def view(self) -> LiveView:
        """How the run stands now, for people who look at it."""
        return self._engine.view() if self._engine else view_before(self._allowed)

    def stop(self, reason: str, message: str = "") -> None:
        """Take no more jobs and wait for the calls in flight, ``[stop] grace`` seconds at most."""
        self._stopped = self._stopped or Ending(reason, message)
        if self._engine:
            self._engine.state.stop(self._stopped)

    def drop(self) -> None:
        """Drop the calls in flight; their records are put back uncharged."""
        if self._engine:
            self._engine.drop()
        if self._helpers:
            self._helpers.drop()

    # A run, from its start to its report

    async def run(self, options: Options = Options()) -> Report:
        """Start or resume: read the input, call the records that are not done, export.

        With ``options.input_over`` set, and in the role of work, no input is read and nothing is exported.

        Raises:
            ConfigError: a template does not fit the input, a secret is not set.
            InputError: a line cannot be read; the lines before it are in the store and may have been called.
            RequestChanged: records were done with another request, and the options do not say what to do.
            StoreError: the store cannot be used.
        """
        began = monotonic()
        output = (options.output or self.config.output_path) if options.reads else None
        if output:
            check_output(self.config, output)
        async with AsyncExitStack() as stack:
            parts = await self._prepare(stack, options)
            if output:
                check_output_columns(self.config, parts.source.columns())
            checked = await check_request(self.config, parts, options)
            started = await self._begin(stack, parts, checked, options)
            engine = self._engine = self._wired(started)
            self.working = True
            try:
                async with self._helped(engine, started):
                    ending = await engine.work()
            except RowcallError as error:
                await self._end(started, "error", {"message": error.message})
                raise
            await self._end(started, ending.reason, engine.totals())
            self.working = False
            return await self._report(started, ending, output, monotonic() - began)

    async def enqueue(self, stack: AsyncExitStack, options: Options = Options()) -> EnqueuedInput:
        """Add the input to the store without calling anything. The store stays open until ``stack`` ends.

        Raises:
            ConfigError, InputError, RequestChanged, StoreError: for the same reasons as ``run``.
        """
        options = replace(options, role=Role.ENQUEUE)
        parts = await self._prepare(stack, options)
        checked = await check_request(self.config, parts, options)
        started = await self._begin(stack, parts, checked, options)
        to = Destination(self.config.name, started.run.pass_, started.request, started.batch)
        producer = Producer(started.store, started.source, parts.keying, to, notice=lambda: None)
        try:
            async with alive(started.store, started.session, self.config.store.lease):
                await producer.run()
        finally:
            await started.store.end_run(started.run, "enqueued", {})
        return EnqueuedInput(started.store, parts, started.run, producer.enqueued, checked.recipe.withheld)

    async def export(self, path: Path, *, format_: FormatName | None = None, only: Status | None = None) -> int:
        """Write the input with its answers; returns the number of rows.

        Args:
            path: the file to write; ``-`` is stdout.
            format_: its format; None: the config's for the config's own path, otherwise by the suffix of the path.
            only: write only records with this status; None: all.
        """
        check_output(self.config, path, format_)
        parts = await run_in_own_thread(lambda: self._make_parts(self.config.resolve()), "input")
        check_output_columns(self.config, parts.source.columns())
        async with await open_reader(self.config) as reader:
            return await self._export(reader, parts, path, format_, only)

    async def _prepare(self, stack: AsyncExitStack, options: Options) -> RunParts:
        base_url = None
        make_parts = self._make_parts if options.reads or self._helpers else assemble_without_input
        if self.config.api.preset == "mock":
            base_url = (await stack.enter_async_context(make_mock(self.config))).url
        return await run_in_own_thread(lambda: make_parts(self.config.resolve(), base_url=base_url), "input")

    async def _begin(
        self, stack: AsyncExitStack, parts: RunParts, checked: CheckedRequest, options: Options
    ) -> StartedRun:
        """Open the store and begin the run in it; what is opened here is closed with ``stack``."""
        name = self.config.name
        store = await stack.enter_async_context(
            await open_store(self.config, lambda text: self._emit(StoreWaits(text)))
        )
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
        watch = await self._watch_input(stack, options) if options.role is Role.WORK else None
        batch = options.batch or f"pass-{run.pass_}"
        spent = await store.spent(name)
        if options.now:
            await store.end_rest(parts.target)
        return StartedRun(
            store, parts, client, session, run, request, checked.known, batch, spent, options, watch=watch
        )

    async def _watch_input(self, stack: AsyncExitStack, options: Options) -> InputWatch:
        """Begin to watch whether other processes add records."""
        reader = await stack.enter_async_context(await open_reader(self.config))
        watch = InputWatch(reader, self.config.name, wait=options.wait)
        await stack.enter_async_context(watch.watched())
        return watch

    async def _end(self, started: StartedRun, reason: str, totals: dict[str, object]) -> None:
        """Write how a run ended. If the store cannot be written, ``status`` still shows that the process died."""
        with suppress(Busy, Full):
            await started.store.end_run(started.run, reason, totals)

    def _wired(self, started: StartedRun) -> Engine:
        engine = Engine(self.config, started, self.tally, emit=self._emit, timing=self._timing)
        if self._stopped:
            engine.state.stop(self._stopped)
        return engine

    async def _report(self, started: StartedRun, ending: Ending, output: Path | None, elapsed: float) -> Report:
        name, store = self.config.name, started.store
        return Report(
            kind=name,
            ending=ending,
            enqueued=self.view.enqueued,
            tally=self.tally,
            counts=await store.counts(name),
            strays=await self._strays(started),
            role=started.options.role,
            joined=started.run.joined,
            output=output,
            rows=await self._export(store, started.parts, output) if output else 0,
            elapsed=elapsed,
            errors=await store.errors(name),
        )

    async def _strays(self, started: StartedRun) -> int:
        """Count the records that are no longer in the input; 0 if this run has not read all of it."""
        unread = self.view.reading or not started.options.reads or started.options.sample
        if unread and started.options.role is not Role.WORK:
            return 0
        return await started.store.strays(self.config.name, started.run.pass_)

    async def _export(
        self, reader: Reader, parts: RunParts, path: Path, format_: FormatName | None = None, only: Status | None = None
    ) -> int:
        self._emit(Exporting(str(path)))
        return await write_output(self.config, parts, reader, path, format_=format_, only=only)

    def _helped(self, engine: Engine, started: StartedRun) -> AbstractAsyncContextManager[None]:
        return self._helpers.during(engine, started, self._hear_of) if self._helpers else nullcontext()

    def _emit(self, event: Event) -> None:
        if isinstance(event, Stopping):
            event = replace(event, in_flight=self.view.in_flight)
        if self._engine:
            self._engine.hear(event)
        if self._helpers:
            self._helpers.hear(event)
        self._tell(event)

    def _hear_of(self, event: Event) -> None:
        """Handle an event of a helper. A rest that the API asked for is reported by this process."""
        assert self._engine is not None
        self._engine.hear_helper(event)
        if not isinstance(event, Resting):
            self._tell(event)

    def _tell(self, event: Event) -> None:
        self.tally(event)
        if self._listener:
            self._listener(event)

"""``rowcall run --rehearse``: run the whole config against the fake API, on a copy of the store."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rowcall.cli.running.run_messages import input_text, start_text
from rowcall.cli.setup.check_findings import Findings, find_problems
from rowcall.cli.setup.forecast import ASSUMED_LATENCY, Forecast, SampleTotals, make_forecast
from rowcall.cli.setup.request_preview import RequestPreview, SecretPlaceholders
from rowcall.client.network import Network
from rowcall.config import Config, KeyPath
from rowcall.engine.options import Options, Report
from rowcall.engine.run_parts import Calls, RunParts
from rowcall.mock import MockAPI
from rowcall.model.errors import Exit, NoStore, RowcallError
from rowcall.model.events import Event, InputRead
from rowcall.model.outcome import Outcome, Reply, Success
from rowcall.model.prices import usd
from rowcall.progress import ProgressDisplay, clean, counted, latency_text, rate_text, short_number, short_time
from rowcall.providers.base import CallContext, GroupProvider, Request
from rowcall.providers.dialect import GroupFormat
from rowcall.run.assembly import assemble_from
from rowcall.run.job_store import open_reader
from rowcall.run.make_calls import make_mock, provider_of, request_caller
from rowcall.run.open_input import open_input
from rowcall.run.pipeline import MakeParts, Pipeline

LONGEST = 20.0
"""A rehearsal takes at most so many seconds."""
_TIME_UP = "rehearsed"
"""The reason of the stop of a rehearsal that ends before all records are done."""
_ENOUGH_PER_SLOT = 3
"""Once so many records per slot have ended, the measured speed is a better estimate than the settings."""
_PROBLEMS_SHOWN = 10
_LATENCY: KeyPath = ("api", "mock", "latency")


def rehearse(config: Config, options: Options, *, quiet: bool, longest: float = LONGEST) -> Exit:
    """Rehearse a run, and print what the real one will take and what would go wrong in it.

    Args:
        config: of the real run.
        options: of the real run; nothing is exported.
        quiet: print only the result.
        longest: how many seconds it may take.

    Raises:
        RowcallError: the config has a handler; or what the real run would raise.
    """
    if config.handler:
        what = f"the handler {config.handler.path} cannot be rehearsed: its calls may go anywhere"
        raise RowcallError(what, remedy="try the first five records for real with: rowcall run -n 5")
    findings = find_problems(config)
    forecast, _ = make_forecast(config, open_input(config), RequestPreview(config))
    latency, known = _latency(config, forecast)
    report = asyncio.run(_run(config, replace(options, output=None), latency, longest, quiet=quiet))
    click.echo("\n  ".join(_result_lines(config, report, forecast, f"{latency_text(latency)} per call{known}")))
    click.echo("\n  ".join(_problem_lines(findings, report)))
    return Exit.SOME_FAILED if findings.problem_count or report.tally.failed else Exit.DONE


def _latency(config: Config, forecast: Forecast) -> tuple[float, str]:
    """Return the latency of the fake API: as the config says, as in the last run, or a second; and which of them."""
    if config.source_of(_LATENCY) != "default":
        return config.api.mock.latency, " as [api.mock] latency says"
    return (forecast.latency, " as in the last run") if forecast.latency else (ASSUMED_LATENCY, " assumed")


async def _run(config: Config, options: Options, latency: float, longest: float, *, quiet: bool) -> Report:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowcall-rehearsal-")))
        rehearsed = await _with_copied_store(config, folder)
        api = await stack.enter_async_context(_fake_api(config, latency))
        progress = ProgressDisplay(sys.stderr, quiet=quiet)
        pipeline = Pipeline(rehearsed, emit=_listener(progress), make_parts=_make_parts(config, api.url))
        progress.say(f"Rehearsal, nothing is sent. {start_text(config, pipeline.view.concurrency)}")
        progress.start(pipeline, limit=options.limit)
        asyncio.get_running_loop().call_later(longest, pipeline.stop, _TIME_UP, "the time of the rehearsal is up")
        try:
            return await pipeline.run(options)
        finally:
            await progress.close()


def _listener(progress: ProgressDisplay) -> Callable[[Event], None]:
    def hear(event: Event) -> None:
        if isinstance(event, InputRead):
            progress.say(input_text(event))
        progress.hear(event)

    return hear


async def _with_copied_store(config: Config, folder: Path) -> Config:
    """Return the config with a snapshot of its store, and without an export."""
    copy = folder / "store.db"
    with suppress(NoStore):
        async with await open_reader(config) as reader:
            await reader.backup(copy)
    store = config.store.model_copy(update={"path": str(copy), "durability": "normal"})
    return config.model_copy(update={"store": store, "output": config.output.model_copy(update={"path": None})})


@asynccontextmanager
async def _fake_api(config: Config, latency: float) -> AsyncIterator[MockAPI]:
    """Serve the fake API with the faults of ``[api.mock]``; it answers at any path."""
    described = make_mock(config)
    async with MockAPI(latency=latency, faults=described.faults, keep_calls=False, any_path=True) as api:
        yield api


def _make_parts(real: Config, url: str) -> MakeParts:
    """Return what makes the parts of the real run, except that calls go to ``url`` and carry no secrets."""

    def assemble(config: Config, *, base_url: str | None = None) -> RunParts:
        masked = real.masked(SecretPlaceholders(real.folder))
        provider = _AcceptingProvider(provider_of(masked, url))
        caller = request_caller(masked, provider)
        calls = Calls(provider.columns, provider.trees, caller, provider.target, provider.files)
        return replace(assemble_from(masked, open_input(real), calls), network=Network())

    return assemble


class _AcceptingProvider:
    """A provider that accepts every 2xx reply, because the fake API does not answer as the real one will."""

    def __init__(self, provider: GroupProvider) -> None:
        self._provider = provider
        self.target, self.columns = provider.target, provider.columns
        self.trees, self.files = provider.trees, provider.files
        self.group, self.trees_around_body = provider.group, provider.trees_around_body

    def build(self, data: Mapping[str, Any], call: CallContext) -> Request:
        """Build the request of the real run."""
        return self._provider.build(data, call)

    def read(self, reply: Reply) -> Outcome:
        """Read the outcome of a reply."""
        return _accepted(reply, self._provider.read(reply), None)

    def read_group(self, reply: Reply, group: GroupFormat, count: int) -> Outcome:
        """Read the outcome of a reply to several records."""
        each = Success(None, reply.status, latency=reply.latency)
        return _accepted(reply, self._provider.read_group(reply, group, count), (each,) * count)


def _accepted(reply: Reply, outcome: Outcome, answer: Any) -> Outcome:
    """Return the outcome, or a success with ``answer`` if the status is 2xx."""
    if not 200 <= reply.status < 300:
        return outcome
    return Success(answer, reply.status, outcome.request_id, reply.latency, outcome.usage)


def _result_lines(config: Config, report: Report, forecast: Forecast, latency: str) -> Iterator[str]:
    """Yield what was rehearsed, and what the real run will take."""
    tally = report.tally
    ended = tally.done + tally.failed
    yield f"{config.name}: rehearsed {counted(ended, 'record')} in {short_time(report.elapsed)}, {latency}"
    statuses = ", ".join(f"{clean(status)}: {number:,}" for status, number in sorted(tally.by_status.items()))
    yield f"{counted(tally.calls, 'call')} ({statuses})" if tally.calls else "no calls"
    to_do = ended + report.left
    if not to_do:
        yield (
            "the rehearsal was too short to say anything"
            if report.ending.reason == _TIME_UP
            else "the real run has nothing to do"
        )
        return
    seconds, how = _time(config, report, forecast, to_do)
    yield f"the real run will take about {short_time(seconds)} for {counted(to_do, 'record')}: {how}"
    sample = SampleTotals(max(1, ended), tally.failed, 0.0, tally.usage)
    if tokens := forecast.tokens(sample):
        yield f"about {short_number(tokens * to_do)} tokens in"
    if (cost := forecast.cost(sample)) is not None:
        yield f"about {usd(round(cost * to_do))}{forecast.assumption(sample)}"


def _time(config: Config, report: Report, forecast: Forecast, to_do: int) -> tuple[float, str]:
    """Estimate the seconds of the real run by the speed of the rehearsal, or by the settings if too few ended."""
    ended = report.tally.done + report.tally.failed
    if ended == to_do or ended >= _ENOUGH_PER_SLOT * config.pace.concurrency * (config.group.size or 1):
        speed = ended / max(report.elapsed, 1e-3)
        return to_do / speed, f"{rate_text(speed)} in the rehearsal"
    p50 = report.tally.latencies.percentile(0.5) or ASSUMED_LATENCY
    return forecast.time(SampleTotals(1, 0, p50), to_do, config)


def _problem_lines(findings: Findings, report: Report) -> Iterator[str]:
    """Yield what would go wrong, and what a rehearsal cannot know."""
    if findings.problem_count:
        yield f"the real run would meet {counted(findings.problem_count, 'problem')}:"
        yield from (clean(str(problem).replace("\n", " ")) for problem in findings.problems[:_PROBLEMS_SHOWN])
    if report.ending.reason not in ("done", "limit", _TIME_UP, "interrupted", "terminated"):
        yield f"the real run would stop: {clean(report.ending.reason)}: {clean(report.ending.message)}"
    yield "not tested: what the real API answers, limits and refuses, and whether its answers satisfy [response]"

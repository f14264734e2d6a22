"""``rowcall run --rehearse``: the whole config against the fake API, on a copy of the store."""

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
from rowcall.cli.setup.checks import Findings, examine
from rowcall.cli.setup.forecast import ASSUMED, Foresight, Measured, foresee
from rowcall.cli.setup.shown_requests import Marks, Preview
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
from rowcall.run.pipeline import Assembling, Pipeline

FOR = 20.0
"""Seconds that a rehearsal takes, at most."""
_CUT = "rehearsed"
"""Why a rehearsal ends that is over before its run is."""
_ENOUGH = 3
"""Records for each slot that must have ended before the measured speed says more than the settings."""
_SHOWN = 10
"""Problems that are shown."""
_LATENCY: KeyPath = ("api", "mock", "latency")


def rehearse(config: Config, options: Options, *, quiet: bool, lasting: float = FOR) -> Exit:
    """Rehearse a run, and say what the real one will take and what would go wrong in it.

    Args:
        config: of the real run.
        options: of the real run; nothing is exported.
        quiet: only the outcome is said.
        lasting: seconds, at most.

    Raises:
        RowcallError: there is a handler, whose calls may go anywhere; or what the real run would raise.
    """
    if config.handler:
        what = f"the calls of {config.handler.path} cannot be rehearsed: they may go anywhere"
        raise RowcallError(what, remedy="rowcall run -n 5 tries the first five records in earnest")
    findings = examine(config)
    foresight = foresee(config, open_input(config), Preview(config), keep=([], 0))
    latency, known = _latency(config, foresight)
    report = asyncio.run(_run(config, replace(options, output=None), latency, lasting, quiet=quiet))
    click.echo("\n  ".join(_outcome(config, report, foresight, f"{latency_text(latency)} a call{known}")))
    click.echo("\n  ".join(_troubles(findings, report)))
    return Exit.SOME_FAILED if findings.problem_count or report.tally.failed else Exit.DONE


def _latency(config: Config, foresight: Foresight) -> tuple[float, str]:
    """How long the fake API takes: as the config says, as the real one took, or a second."""
    if config.source_of(_LATENCY) != "default":
        return config.api.mock.latency, " as [api.mock] latency says"
    return (foresight.latency, " as in the last run") if foresight.latency else (ASSUMED, " assumed")


async def _run(config: Config, options: Options, latency: float, lasting: float, *, quiet: bool) -> Report:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowcall-rehearsal-")))
        rehearsed = await _with_copied_store(config, folder)
        api = await stack.enter_async_context(_fake_api(config, latency))
        progress = ProgressDisplay(sys.stderr, quiet=quiet)
        pipeline = Pipeline(rehearsed, emit=_listener(progress), assembling=_assembling(config, api.url))
        progress.say(f"rehearsal, nothing is sent: {start_text(config, pipeline.view.concurrency)}")
        progress.start(pipeline, limit=options.limit)
        asyncio.get_running_loop().call_later(lasting, pipeline.stop, _CUT, "seen enough")
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
    """The config with a snapshot of its store, and without an export."""
    copy = folder / "store.db"
    with suppress(NoStore):
        async with await open_reader(config) as reader:
            await reader.backup(copy)
    store = config.store.model_copy(update={"path": str(copy), "durability": "normal"})
    return config.model_copy(update={"store": store, "output": config.output.model_copy(update={"path": None})})


@asynccontextmanager
async def _fake_api(config: Config, latency: float) -> AsyncIterator[MockAPI]:
    """The fake API with the faults of ``[api.mock]``, answering at any path."""
    described = make_mock(config)
    async with MockAPI(latency=latency, faults=described.faults, keep_calls=False, any_path=True) as api:
        yield api


def _assembling(real: Config, url: str) -> Assembling:
    """Makes the parts of the real run, but for where its calls go; secrets are stood in for, and stay here."""

    def assemble(config: Config, *, base_url: str | None = None) -> RunParts:
        masked = real.masked(Marks(real.folder))
        provider = _Accepting(provider_of(masked, url))
        caller = request_caller(masked, provider)
        calls = Calls(provider.columns, provider.trees, caller, provider.target, provider.files)
        return replace(assemble_from(masked, open_input(real), calls), network=Network())

    return assemble


class _Accepting:
    """A provider that takes every 2xx for an answer: what the fake API says is not what the real one will say."""

    def __init__(self, provider: GroupProvider) -> None:
        self._provider = provider
        self.target, self.columns = provider.target, provider.columns
        self.trees, self.files = provider.trees, provider.files
        self.group, self.trees_around_body = provider.group, provider.trees_around_body

    def build(self, data: Mapping[str, Any], call: CallContext) -> Request:
        """The request of the real run."""
        return self._provider.build(data, call)

    def read(self, reply: Reply) -> Outcome:
        """What a reply gives."""
        return _accepted(reply, self._provider.read(reply), None)

    def read_group(self, reply: Reply, group: GroupFormat, count: int) -> Outcome:
        """What a reply gives to each of several records."""
        each = Success(None, reply.status, latency=reply.latency)
        return _accepted(reply, self._provider.read_group(reply, group, count), (each,) * count)


def _accepted(reply: Reply, outcome: Outcome, answer: Any) -> Outcome:
    """The outcome, with this answer where the fake API gave any."""
    if not 200 <= reply.status < 300:
        return outcome
    return Success(answer, reply.status, outcome.request_id, reply.latency, outcome.usage)


def _outcome(config: Config, report: Report, foresight: Foresight, latency: str) -> Iterator[str]:
    """What was done here, and what the real run will take."""
    tally = report.tally
    ended = tally.done + tally.failed
    yield f"{config.name}: rehearsed {counted(ended, 'record')} in {short_time(report.elapsed)}, {latency}"
    statuses = ", ".join(f"{clean(status)}: {number:,}" for status, number in sorted(tally.by_status.items()))
    yield f"{counted(tally.calls, 'call')} ({statuses})" if tally.calls else "no calls"
    to_do = ended + report.left
    if not to_do:
        yield "too short to see anything" if report.ending.reason == _CUT else "the real run has nothing to do"
        return
    seconds, how = _time(config, report, foresight, to_do)
    yield f"the real run: about {short_time(seconds)} for {counted(to_do, 'record')}: {how}"
    measured = Measured(max(1, ended), tally.failed, 0.0, tally.usage)
    if tokens := foresight.tokens(measured):
        yield f"about {short_number(tokens * to_do)} tokens in"
    if (cost := foresight.cost(measured)) is not None:
        yield f"about {usd(round(cost * to_do))}{foresight.assumption(measured)}"


def _time(config: Config, report: Report, foresight: Foresight, to_do: int) -> tuple[float, str]:
    """Seconds, by the speed here, or by the settings where too little ended here for that."""
    ended = report.tally.done + report.tally.failed
    if ended == to_do or ended >= _ENOUGH * config.pace.concurrency * (config.group.size or 1):
        speed = ended / max(report.elapsed, 1e-3)
        return to_do / speed, f"{rate_text(speed)} here"
    p50 = report.tally.latencies.percentile(0.5) or ASSUMED
    return foresight.time(Measured(1, 0, p50), to_do, config)


def _troubles(findings: Findings, report: Report) -> Iterator[str]:
    """What would go wrong, and what no rehearsal can know."""
    if findings.problem_count:
        yield f"would go wrong: {counted(findings.problem_count, 'problem')}"
        yield from (clean(str(problem).replace("\n", " ")) for problem in findings.problems[:_SHOWN])
    if report.ending.reason not in ("done", "limit", _CUT, "interrupted", "terminated"):
        yield f"would stop: {clean(report.ending.reason)}: {clean(report.ending.message)}"
    yield "not known here: what the API itself answers, limits and refuses, and answers that break [response]"

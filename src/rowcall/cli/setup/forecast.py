"""Estimates what a run would take: records, tokens, cost and time, from the input, the store and a sample of calls."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from statistics import fmean

from rowcall.cli.setup.request_preview import RequestPreview
from rowcall.config import Config
from rowcall.model.errors import NoStore, RowcallError, SchemaMismatch, TemplateError
from rowcall.model.job import Record, Status
from rowcall.model.outcome import Usage
from rowcall.model.prices import guess
from rowcall.progress import counted, latency_text, rate_text, short_number
from rowcall.run.call_prices import make_prices
from rowcall.run.job_store import open_reader
from rowcall.sources.base import Source
from rowcall.sources.keys import request_hash
from rowcall.store.types import Counts, RequestStanding, RunRow

MOST_READ = 200_000
"""At most so many records are counted; a longer input is reported with "or more"."""
MOST_RENDERED = 300
"""Records whose requests are rendered to estimate their length."""
CHARACTERS_PER_TOKEN = 4.0
"""An average for English text."""
ASSUMED_LATENCY = 1.0
"""Seconds of a call, as long as nothing is known about it."""


@dataclass(frozen=True, slots=True)
class SampleTotals:
    """The totals of a sample of calls: seconds are the sum of their latencies."""

    calls: int = 0
    failed: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is known before a run.

    Attributes:
        records: how many the input holds; ``more`` if not all were counted.
        done: how many of them are done already, by the store.
        characters: average length of a request's body; None if a handler makes the requests.
        tokens_per_done: average input tokens of a done record, by the store.
        guessed_cost: average cost of a call by its length and the prices, in nano-dollars; None without prices.
        guessed_output: output tokens that ``guessed_cost`` assumes for a call; None if they cost nothing.
        cost_per_done: average cost of a done record in nano-dollars, by the store.
        latency: median latency of the last run, in seconds.
    """

    records: int
    more: bool
    done: int
    characters: float | None
    tokens_per_done: float | None
    guessed_cost: float | None
    guessed_output: float | None
    cost_per_done: float | None
    latency: float | None

    def tokens(self, sample: SampleTotals) -> float | None:
        """Return the input tokens of a call: as measured, by the store, or by the length of the requests."""
        if sample.usage.input:
            return sample.usage.input / sample.calls
        if self.tokens_per_done:
            return self.tokens_per_done
        return None if self.characters is None else self.characters / CHARACTERS_PER_TOKEN

    def cost(self, sample: SampleTotals) -> float | None:
        """Return the nano-dollars of a call: as measured, by the store, or by the prices."""
        if sample.usage.cost is not None:
            return sample.usage.cost / sample.calls
        return self.guessed_cost if self.cost_per_done is None else self.cost_per_done

    def assumption(self, sample: SampleTotals) -> str:
        """Return what the cost of a call assumes, to be printed after it; empty if the cost is known."""
        if sample.usage.cost is not None or self.cost_per_done is not None or self.guessed_output is None:
            return ""
        return f", assuming {short_number(self.guessed_output)} tokens out per call; rowcall preview --send measures it"

    def time(self, sample: SampleTotals, records: int, config: Config) -> tuple[float, str]:
        """Return the seconds that the calls for ``records`` take, and how that was estimated."""
        each, known = ASSUMED_LATENCY, " assumed; --send measures it"
        if self.latency:
            each, known = self.latency, " as in the last run"
        if sample.seconds:
            each, known = sample.seconds / sample.calls, " as just measured"
        slots, rates = config.pace.concurrency, config.pace.requests or ()
        together = config.group.size or 1
        calls = math.ceil(records / together)
        seconds = calls * each / min(slots, max(1, calls))
        slowest = max(rates, key=lambda rate: rate.per / rate.count, default=None)
        if slowest and calls * slowest.per / slowest.count > seconds:
            return calls * slowest.per / slowest.count, f"limited by [pace] requests = {slowest}"
        groups = f", groups of {together}" if together > 1 else ""
        speed = rate_text(slots * together / each)
        return seconds, f"{slots} at a time{groups} ({speed}), {latency_text(each)} per call{known}"


def make_forecast(
    config: Config, source: Source, requests: RequestPreview | None, *, keep_first: int = 0
) -> tuple[Forecast, list[Record]]:
    """Read the input, and the store if there is one; nothing is changed.

    Args:
        config: of the job.
        source: its input, which is read once.
        requests: builds the requests; None if a handler makes them.
        keep_first: how many of the first records to return.
    """
    first: list[Record] = []
    number, prices = 0, make_prices(config)
    bodies: list[str] = []
    for record in islice(source, MOST_READ):
        number += 1
        if len(first) < keep_first:
            first.append(record)
        if requests and len(bodies) < MOST_RENDERED:
            bodies.append(_body_or_empty(requests, record))
    counts, run = asyncio.run(_known(config))
    done = counts.of(Status.DONE) if counts else 0
    guesses = [guess(body.encode()) for body in bodies] if prices else []
    forecast = Forecast(
        records=number,
        more=number == MOST_READ,
        done=min(number, done),
        characters=fmean(map(len, bodies)) if bodies else None,
        tokens_per_done=counts.input_tokens / done if counts and done and counts.input_tokens else None,
        guessed_cost=fmean(prices.cost(usage, calls=1) for usage in guesses) if prices and guesses else None,
        guessed_output=fmean(usage.output for usage in guesses) if prices and prices.output and guesses else None,
        cost_per_done=counts.cost / done if counts and done and counts.cost is not None else None,
        latency=(run.totals.get("latency_s") or {}).get("p50") if run else None,
    )
    return forecast, first


def _body_or_empty(requests: RequestPreview, record: Record) -> str:
    """Return a request's body; empty if it cannot be rendered, which ``check`` reports with its line."""
    try:
        return requests.show("", record.data).body
    except TemplateError:
        return ""


def changed_text(config: Config) -> str:
    """Return a warning if the request has changed since records were done, so that a run would ask; else empty."""
    standing = asyncio.run(_standing(config))
    if standing is None or standing.latest or not standing.done_under_others:
        return ""
    number = standing.done_under_others
    since = f"the request has changed since {counted(number, 'record')} {'was' if number == 1 else 'were'} done"
    return f"{since}: add --if-changed keep or --if-changed redo to rowcall run"


def require_store(config: Config) -> None:
    """Check that the store can be reached, if there is one.

    Raises:
        RowcallError: it cannot be reached, or its location is not set.
    """

    async def open_and_close() -> None:
        async with await open_reader(config):
            pass

    with suppress(NoStore, SchemaMismatch):  # a run creates the store or updates its schema, or reports the same
        asyncio.run(open_and_close())


async def _standing(config: Config) -> RequestStanding | None:
    try:
        reader = await open_reader(config)
    except RowcallError:
        return None
    async with reader:
        return await reader.request_standing(config.name, request_hash(config.fingerprint()))


async def _known(config: Config) -> tuple[Counts | None, RunRow | None]:
    """Read the counts of the job and its last run, if there is a store."""
    try:
        reader = await open_reader(config)
    except RowcallError:
        return None, None
    async with reader:
        return await reader.counts(config.name), await reader.last_run(config.name)

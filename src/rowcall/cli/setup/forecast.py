"""What a run would take, before it begins: records, tokens, time; from the input, the store, and a sample of calls."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from statistics import fmean

from rowcall.cli.setup.shown_requests import Preview
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
"""Records that are counted; an input with more has "or more"."""
MOST_RENDERED = 300
"""Records whose requests are rendered to measure them."""
CHARACTERS_A_TOKEN = 4.0
"""Of text in the languages that models know best."""
ASSUMED = 1.0
"""Seconds of a call, where nothing is known of it."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a sample of calls took; seconds and tokens of all of them."""

    calls: int = 0
    failed: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Foresight:
    """What is known before a run.

    Attributes:
        records: of the input; ``more`` where they were not all counted.
        done: of the kind in the store.
        characters: of a request's body, on average; None where a handler makes the requests.
        per_done: tokens in for each done record, as the store knows them.
        guessed: what a call costs by the prices and the length of its request, in nano-dollars; None without prices.
        guessed_out: tokens out that ``guessed`` takes a call to have; None where they cost nothing.
        cost_per_done: what each done record has cost, as the store knows it.
        latency: seconds of half the calls of the last run.
    """

    records: int
    more: bool
    done: int
    characters: float | None
    per_done: float | None
    guessed: float | None
    guessed_out: float | None
    cost_per_done: float | None
    latency: float | None

    def tokens(self, measured: Measured) -> float | None:
        """Tokens in for each call: as measured, as the store knows, or by the characters."""
        if measured.usage.input:
            return measured.usage.input / measured.calls
        if self.per_done:
            return self.per_done
        return None if self.characters is None else self.characters / CHARACTERS_A_TOKEN

    def cost(self, measured: Measured) -> float | None:
        """Nano-dollars for each call: as measured, as the store knows, or by the prices."""
        if measured.usage.cost is not None:
            return measured.usage.cost / measured.calls
        return self.guessed if self.cost_per_done is None else self.cost_per_done

    def assumption(self, measured: Measured) -> str:
        """What the cost of a call hangs on that nobody knows yet, to be said behind it; empty where it is known."""
        if measured.usage.cost is not None or self.cost_per_done is not None or self.guessed_out is None:
            return ""
        return f": {short_number(self.guessed_out)} tokens out assumed for each; rowcall preview --send measures it"

    def time(self, measured: Measured, records: int, config: Config) -> tuple[float, str]:
        """Seconds that the calls for so many records take, and how that comes."""
        each, known = ASSUMED, " assumed; --send measures it"
        if self.latency:
            each, known = self.latency, " as in the last run"
        if measured.seconds:
            each, known = measured.seconds / measured.calls, " as just measured"
        slots, rates = config.pace.concurrency, config.pace.requests or ()
        together = config.group.size or 1
        calls = math.ceil(records / together)
        seconds = calls * each / min(slots, max(1, calls))
        slowest = max(rates, key=lambda rate: rate.per / rate.count, default=None)
        if slowest and calls * slowest.per / slowest.count > seconds:
            return calls * slowest.per / slowest.count, f"[pace] requests = {slowest}"
        groups = f", groups of {together}" if together > 1 else ""
        speed = rate_text(slots * together / each)
        return seconds, f"{slots} at a time{groups} ({speed}), {latency_text(each)} a call{known}"


def foresee(config: Config, source: Source, requests: Preview | None, *, keep: tuple[list[Record], int]) -> Foresight:
    """Read the input, and look into the store if there is one; nothing is changed.

    Args:
        config: of the job.
        source: its input, which is read once.
        requests: what renders them; None: a handler makes them.
        keep: the first so many records are put there.
    """
    first, wanted = keep
    number, prices = 0, make_prices(config)
    bodies: list[str] = []
    for record in islice(source, MOST_READ):
        number += 1
        if len(first) < wanted:
            first.append(record)
        if requests and len(bodies) < MOST_RENDERED:
            bodies.append(_body(requests, record))
    counts, run = asyncio.run(_known(config))
    done = counts.of(Status.DONE) if counts else 0
    guesses = [guess(body.encode()) for body in bodies] if prices else []
    return Foresight(
        records=number,
        more=number == MOST_READ,
        done=min(number, done),
        characters=fmean(map(len, bodies)) if bodies else None,
        per_done=counts.input_tokens / done if counts and done and counts.input_tokens else None,
        guessed=fmean(prices.cost(usage, calls=1) for usage in guesses) if prices and guesses else None,
        guessed_out=fmean(usage.output for usage in guesses) if prices and prices.output and guesses else None,
        cost_per_done=counts.cost / done if counts and done and counts.cost is not None else None,
        latency=(run.totals.get("latency_s") or {}).get("p50") if run else None,
    )


def _body(requests: Preview, record: Record) -> str:
    """A request's body; nothing where it cannot be rendered, which ``check`` says with its line."""
    try:
        return requests.show("", record.data).body
    except TemplateError:
        return ""


def changed_text(config: Config) -> str:
    """That a run would stop and ask, since the request has changed after records were done; else empty."""
    standing = asyncio.run(_standing(config))
    if standing is None or standing.latest or not standing.done_under_others:
        return ""
    number = standing.done_under_others
    since = f"the request has changed since {counted(number, 'record')} {'was' if number == 1 else 'were'} done"
    return f"{since}: rowcall run needs --if-changed keep or --if-changed redo"


def require_store(config: Config) -> None:
    """See that the store can be reached, where there is one yet.

    Raises:
        RowcallError: it cannot, or nothing says where it is.
    """
    with suppress(NoStore, SchemaMismatch):  # a run makes it, or brings it up to date, or says the same
        asyncio.run(_look_at(config))


async def _look_at(config: Config) -> None:
    async with await open_reader(config):
        pass


async def _standing(config: Config) -> RequestStanding | None:
    try:
        reader = await open_reader(config)
    except RowcallError:
        return None
    async with reader:
        return await reader.request_standing(config.name, request_hash(config.fingerprint()))


async def _known(config: Config) -> tuple[Counts | None, RunRow | None]:
    """What the store knows of the job."""
    try:
        reader = await open_reader(config)
    except RowcallError:
        return None, None
    async with reader:
        return await reader.counts(config.name), await reader.last_run(config.name)

"""What a call is, and its first kind: one request made from the config's templates. Build, wait, send, read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Protocol, Self

from rowcall.calls.door import Departure, Door
from rowcall.client import Client, failure_of
from rowcall.limits.learned_concurrency import RequestStart
from rowcall.model.errors import TemplateError
from rowcall.model.events import Listener, RequestEnded, Slowed
from rowcall.model.job import Job
from rowcall.model.outcome import Failure, FailureClass, Outcome, Reply
from rowcall.model.prices import Prices, guess, priced
from rowcall.providers.base import CallContext, Provider, Request


@dataclass(frozen=True, slots=True)
class CallResources:
    """What a run shares with everything that makes its calls.

    Attributes:
        client: sends requests; one call of ``exchange`` is one HTTP request.
        door: decides when a request may leave, and learns what the API shows of its limits.
        call_key: the key of a job's call, the same over retries, restarts and processes.
        emit: learns of every request that ended.
        prices: what a call costs; None where that is not known.
    """

    client: Client
    door: Door
    call_key: Callable[[Job], str]
    emit: Listener
    prices: Prices | None = None


class RequestInFlight:
    """A ``with`` block around one request, from the moment it leaves, so that the API's limits are learned from it."""

    def __init__(self, resources: CallResources) -> None:
        self._resources = resources
        self._start: RequestStart | None = resources.door.server.depart()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._start:
            self._resources.door.server.drop()

    def end(self, headers: Mapping[str, str], failure: Failure | None) -> None:
        """Note how it ended, and the headers of its reply; a block that ends without this was dropped."""
        assert self._start is not None
        start, self._start = self._start, None
        door = self._resources.door
        if door.server.arrive(start, monotonic(), headers, failure) and failure:
            self._resources.emit(Slowed(door.concurrency.now, failure.message))


class Caller(Protocol):
    """Makes the calls of a run.

    Attributes:
        waits_by_request: each request waits by itself until it may leave. False: the worker has waited for the call.
        records_per_request: how many records may share one request.
    """

    waits_by_request: bool
    records_per_request: int

    async def call(self, job: Job, departure: Departure) -> Outcome | None:
        """Make a job's call and return its outcome, whatever goes wrong. ``departure.leave`` marks a request leaving.

        None: the call could not leave now, and the job is to be put back as if it had never been claimed.
        """

    def guess(self, job: Job) -> int:
        """Return roughly what a job's call will cost, in nano-dollars; 0 where nothing is known."""

    def close(self) -> None:
        """Free resources; the run is over and no call is under way."""


class RequestCaller:
    """Sends one request, made from the config's templates, for each job."""

    waits_by_request = False
    records_per_request = 1

    def __init__(self, provider: Provider, resources: CallResources) -> None:
        self._provider = provider
        self._resources = resources

    async def call(self, job: Job, departure: Departure) -> Outcome | None:
        """Build the request, wait until it may leave, send it, read the reply."""
        attached = self._provider.files is not None  # reading files blocks
        built = await asyncio.to_thread(self._build, job) if attached else self._build(job)
        if isinstance(built, Failure):
            return built
        return await exchange(self._resources, built, job, departure, self._provider.read)

    def guess(self, job: Job) -> int:
        """Estimate the cost by the characters of the request and the tokens that it allows for the answer."""
        built, prices = self._build(job, bare=True), self._resources.prices
        if prices is None or isinstance(built, Failure):
            return 0
        return prices.cost(guess(built.content), calls=1)

    def close(self) -> None:
        """There is nothing to free."""

    def _build(self, job: Job, *, bare: bool = False) -> Request | Failure:
        call = CallContext(self._resources.call_key(job), longer="truncated" in job.rejected, bare=bare)
        return request_of(self._provider, job, call)


def request_of(provider: Provider, job: Job, call: CallContext) -> Request | Failure:
    """Build a job's request; a record that does not fit the templates gives a failure."""
    try:
        return provider.build(job.data, call)
    except TemplateError as error:
        return Failure(FailureClass.RECORD, error.reason, error.message)


async def exchange(
    resources: CallResources,
    request: Request,
    job: Job,
    departure: Departure,
    read: Callable[[Reply], Outcome],
    *,
    patient: bool = False,
) -> Outcome | None:
    """Wait until a request may leave, send it, read the reply; None: it could not leave now.

    Args:
        resources: what the run shares.
        request: what is sent.
        job: whose request it is, or one of several jobs.
        departure: of that job.
        read: turns a reply into an outcome.
        patient: the request waits for the rate limits as long as it takes.
    """
    limits = resources.door.limits
    estimate = limits.estimate(lambda: request.content)
    if not await limits.wait(estimate, patient=patient) or departure.held:
        return None
    departure.leave()
    with RequestInFlight(resources) as in_flight:
        reply = await _send(resources.client, request, fresh=departure.fresh)
        resources.emit(request_ended(job, reply))
        outcome = reply if isinstance(reply, Failure) else priced(read(reply), resources.prices)
        headers = reply.headers if isinstance(reply, Reply) else {}
        in_flight.end(headers, outcome if isinstance(outcome, Failure) else None)
    limits.correct(estimate, outcome.usage)
    return outcome


async def _send(client: Client, request: Request, *, fresh: bool) -> Reply | Failure:
    try:
        return await client.exchange(request, fresh=fresh)
    except Exception as error:  # noqa: BLE001  whatever the client raises is an outcome; failure_of knows its class
        return failure_of(error)


def request_ended(job: Job, reply: Reply | Failure) -> RequestEnded:
    """Return the event of a request that ended."""
    reason = reply.reason if isinstance(reply, Failure) else ""
    return RequestEnded(job.key, reply.status, reason, reply.latency)

"""What the call of a job is: the contract, and its first kind, a request by templates: build, send, read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol, Self

from rowcall.calls.shared_limits import UNLIMITED, RequestPacing
from rowcall.client import Client, failure_of
from rowcall.failures.gate import Gate
from rowcall.limits.learned_concurrency import RequestStart
from rowcall.limits.rate import Rate
from rowcall.limits.server_limits import ServerLimits
from rowcall.model.errors import TemplateError
from rowcall.model.events import Listener, RequestEnded, Slowed
from rowcall.model.job import Job
from rowcall.model.outcome import Failure, FailureClass, Outcome, Reply
from rowcall.model.prices import Prices, guess, priced
from rowcall.providers.base import CallContext, Provider, Request


class Departure:
    """The moment at which a job's call leaves; the gate numbers it.

    Args:
        gate: the gate of the run.
        fresh: it goes over a new connection.
        probe: it asks whether the API is back.
        held: whether no call may leave now, for a reason that the gate does not know: a rest, a pause, the end.

    Attributes:
        number: its number; None until a request has left.
    """

    def __init__(
        self, gate: Gate, *, fresh: bool = False, probe: bool = False, held: Callable[[], bool] = lambda: False
    ) -> None:
        self._gate = gate
        self._probe = probe
        self._held = held
        self.fresh = fresh
        self.number: int | None = None

    @property
    def barred(self) -> bool:
        """The gate has closed meanwhile, and this call is not the one that may pass."""
        return self._gate.closed is not None and not self._probe

    @property
    def held(self) -> bool:
        """The call may not leave now, for whatever reason."""
        return self.barred or self._held()

    @property
    def alone(self) -> bool:
        """No other call may leave beside it: the first of a run, or a probe."""
        return self._gate.room(monotonic()) is not None

    def leave(self) -> None:
        """A request leaves; the first one is what counts."""
        if self.number is None:
            self.number = self._gate.depart(monotonic())

    def arrive(self) -> None:
        """The request, if one has left, has ended."""
        if self.number is not None:
            self._gate.arrive(self.number, monotonic())

    def another(self) -> Departure:
        """One for a request that is not this job's alone."""
        return Departure(self._gate, fresh=self.fresh, probe=self._probe, held=self._held)

    def follow(self, shared: Departure) -> None:
        """The job has gone with that request, whatever it went with before."""
        self.number = shared.number

    def stay(self) -> None:
        """The call has ended, and nothing was sent."""
        self._gate.stay()


ANY = 1_000_000
"""More requests than can ever be in flight."""


@dataclass(frozen=True, slots=True)
class CallResources:
    """What a run lends to those who make its calls.

    Attributes:
        client: sends; one call of ``exchange`` is one HTTP request.
        rate: gives the places at which requests may leave, as far as this process alone is concerned.
        concurrency: most requests in flight.
        call_key: the key of a job's call, stable over tries, restarts and processes.
        emit: told of every request that ended.
        prices: what a call costs; None where that is not known.
        places: gives the places that processes share.
        adaptive: told of every request, and what its reply says of the server's limits.
    """

    client: Client
    rate: Rate
    concurrency: int
    call_key: Callable[[Job], str]
    emit: Listener
    prices: Prices | None = None
    places: RequestPacing = UNLIMITED
    adaptive: ServerLimits = field(default_factory=lambda: ServerLimits(ANY, learns=False))


class RequestInFlight:
    """One request under way, as the pace sees it: a ``with`` block that it leaves within."""

    def __init__(self, wire: CallResources) -> None:
        self._wire = wire
        self._passage: RequestStart | None = wire.adaptive.depart(monotonic())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._passage:
            self._wire.adaptive.drop()

    def end(self, headers: Mapping[str, str], failure: Failure | None) -> None:
        """It came to this, with these headers in its reply; without it, it was dropped."""
        assert self._passage is not None
        passage, self._passage = self._passage, None
        adaptive = self._wire.adaptive
        if adaptive.arrive(passage, monotonic(), headers, failure) and failure:
            self._wire.emit(Slowed(adaptive.slots, failure.message))


class Caller(Protocol):
    """Makes the calls of a run.

    Attributes:
        takes_places: each request takes a place of the rate when it leaves; False where one was taken for the call.
        together: how many calls may go in one request.
    """

    takes_places: bool
    together: int

    async def call(self, job: Job, departure: Departure) -> Outcome | None:
        """Make a job's call; whatever goes wrong is an outcome. ``departure.leave`` is said when a request leaves.

        None: it could not leave now, and the job is to be put back as if it had never been claimed.
        """

    def resize(self, concurrency: int) -> None:
        """Let so many requests be in flight from now on; the worker sees to it where a call is one request."""

    def guess(self, job: Job) -> int:
        """Roughly what a job's call will cost, in nano-dollars; 0 where nothing is known."""

    def close(self) -> None:
        """The run is over, and no call is under way."""


class RequestCaller:
    """One request by the config's templates for each job."""

    takes_places = False
    together = 1

    def __init__(self, provider: Provider, wire: CallResources) -> None:
        self._provider = provider
        self._wire = wire

    async def call(self, job: Job, departure: Departure) -> Outcome | None:
        """Build, wait for a place, send, read."""
        built = await self._built(job)
        if isinstance(built, Failure):
            return built
        return await exchange(self._wire, built, job, departure, self._provider.read)

    def resize(self, concurrency: int) -> None:
        """Nothing to change."""

    def guess(self, job: Job) -> int:
        """By the characters of its request, and the tokens that it allows for the answer."""
        built, prices = self._build(job, bare=True), self._wire.prices
        if prices is None or isinstance(built, Failure):
            return 0
        return prices.cost(guess(built.content), calls=1)

    def close(self) -> None:
        """Nothing to let go."""

    async def _built(self, job: Job) -> Request | Failure:
        """The request; where files are attached they are read in a thread."""
        return self._build(job) if self._provider.files is None else await asyncio.to_thread(self._build, job)

    def _build(self, job: Job, *, bare: bool = False) -> Request | Failure:
        call = CallContext(self._wire.call_key(job), longer="truncated" in job.rejected, bare=bare)
        return request_of(self._provider, job, call)


def request_of(provider: Provider, job: Job, call: CallContext) -> Request | Failure:
    """A job's request; a record that does not fit the templates has its failure."""
    try:
        return provider.build(job.data, call)
    except TemplateError as error:
        return Failure(FailureClass.RECORD, error.reason, error.message)


async def exchange(
    wire: CallResources,
    request: Request,
    job: Job,
    departure: Departure,
    read: Callable[[Reply], Outcome],
    *,
    patient: bool = False,
) -> Outcome | None:
    """Wait for a place, send, read; None: the request could not leave now.

    Args:
        wire: what the run lends.
        request: what is sent.
        job: whose request it is, or one of those.
        departure: of that job.
        read: what a reply gives.
        patient: the request waits for its place as long as it must.
    """
    estimate = wire.places.estimate(lambda: request.content)
    if not await wire.places.place(estimate, patient=patient) or departure.held:
        return None
    departure.leave()
    with RequestInFlight(wire) as crossing:
        reply = await _send(wire.client, request, fresh=departure.fresh)
        wire.emit(request_ended(job, reply))
        outcome = reply if isinstance(reply, Failure) else priced(read(reply), wire.prices)
        headers = reply.headers if isinstance(reply, Reply) else {}
        crossing.end(headers, outcome if isinstance(outcome, Failure) else None)
    wire.places.correct(estimate, outcome.usage)
    return outcome


async def _send(client: Client, request: Request, *, fresh: bool) -> Reply | Failure:
    try:
        return await client.exchange(request, fresh=fresh)
    except Exception as error:  # noqa: BLE001  whatever the wire raises is an outcome; failure_of knows its class
        return failure_of(error)


def request_ended(job: Job, reply: Reply | Failure) -> RequestEnded:
    """The event of a request that ended."""
    reason = reply.reason if isinstance(reply, Failure) else ""
    return RequestEnded(job.key, reply.status, reason, reply.latency)

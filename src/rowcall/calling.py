"""What the call of a job is: the contract, and its first kind, a request by templates: build, send, read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol, Self

from rowcall.client import Client, failure_of
from rowcall.errors import TemplateError
from rowcall.events import Listener, RequestEnded, Slowed
from rowcall.job import Job
from rowcall.outcome import Failure, FailureClass, Outcome, Reply
from rowcall.pace.adaptive import Adaptive, Passage
from rowcall.pace.gate import Gate
from rowcall.pace.rate import Rate
from rowcall.price import Prices, guess, priced
from rowcall.providers.base import Call, Provider, Request


class Departure:
    """The moment at which a job's call leaves; the gate numbers it.

    Args:
        gate: the gate of the run.
        fresh: it goes over a new connection.
        probe: it asks whether the API is back.

    Attributes:
        number: its number; None until a request has left.
    """

    def __init__(self, gate: Gate, *, fresh: bool = False, probe: bool = False) -> None:
        self._gate = gate
        self._probe = probe
        self.fresh = fresh
        self.number: int | None = None

    @property
    def barred(self) -> bool:
        """The gate has closed meanwhile, and this call is not the one that may pass."""
        return self._gate.closed is not None and not self._probe

    def leave(self) -> None:
        """A request leaves; the first one is what counts."""
        if self.number is None:
            self.number = self._gate.depart(monotonic())

    def stay(self) -> None:
        """The call has ended, and nothing was sent."""
        self._gate.stay()


ANY = 1_000_000
"""More requests than can ever be in flight."""


@dataclass(frozen=True, slots=True)
class Wire:
    """What a run lends to those who make its calls.

    Attributes:
        client: sends; one call of ``exchange`` is one HTTP request.
        rate: gives the places at which requests may leave.
        concurrency: most requests in flight.
        call_key: the key of a job's call, stable over tries, restarts and processes.
        emit: told of every request that ended.
        prices: what a call costs; None where that is not known.
        adaptive: told of every request, and what its reply says of the server's limits.
    """

    client: Client
    rate: Rate
    concurrency: int
    call_key: Callable[[Job], str]
    emit: Listener
    prices: Prices | None = None
    adaptive: Adaptive = field(default_factory=lambda: Adaptive(ANY, learns=False))


class Crossing:
    """One request under way, as the pace sees it: a ``with`` block that it leaves within."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._passage: Passage | None = wire.adaptive.depart(monotonic())

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
    """

    takes_places: bool

    async def call(self, job: Job, departure: Departure) -> Outcome:
        """Make a job's call; whatever goes wrong is an outcome. ``departure.leave`` is said when a request leaves."""

    def guess(self, job: Job) -> int:
        """Roughly what a job's call will cost, in nano-dollars; 0 where nothing is known."""

    def close(self) -> None:
        """The run is over, and no call is under way."""


class RequestCaller:
    """One request by the config's templates for each job."""

    takes_places = False

    def __init__(self, provider: Provider, wire: Wire) -> None:
        self._provider = provider
        self._wire = wire

    async def call(self, job: Job, departure: Departure) -> Outcome:
        """Build, send, read."""
        built = self._build(job)
        if isinstance(built, Failure):
            return built
        departure.leave()
        with Crossing(self._wire) as crossing:
            reply = await self._send(built, fresh=departure.fresh)
            self._wire.emit(request_ended(job, reply))
            outcome = reply if isinstance(reply, Failure) else priced(self._provider.read(reply), self._wire.prices)
            headers = reply.headers if isinstance(reply, Reply) else {}
            crossing.end(headers, outcome if isinstance(outcome, Failure) else None)
        return outcome

    def guess(self, job: Job) -> int:
        """By the characters of its request, and the tokens that it allows for the answer."""
        built, prices = self._build(job), self._wire.prices
        if prices is None or isinstance(built, Failure):
            return 0
        return prices.cost(guess(built.content), calls=1)

    def close(self) -> None:
        """Nothing to let go."""

    def _build(self, job: Job) -> Request | Failure:
        try:
            return self._provider.build(job.data, Call(self._wire.call_key(job)))
        except TemplateError as error:
            return Failure(FailureClass.RECORD, "template_error", error.message)

    async def _send(self, request: Request, *, fresh: bool) -> Reply | Failure:
        try:
            return await self._wire.client.exchange(request, fresh=fresh)
        except Exception as error:  # noqa: BLE001  whatever the wire raises is an outcome; failure_of knows its class
            return failure_of(error)


def request_ended(job: Job, reply: Reply | Failure) -> RequestEnded:
    """The event of a request that ended."""
    reason = reply.reason if isinstance(reply, Failure) else ""
    return RequestEnded(job.key, reply.status, reason, reply.latency)

"""The ``call`` object that a handler calls the API with; each run of a handler has one of its own."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Generic, TypedDict, TypeVar, Unpack

import httpx

from rowcall.calls.door import Departure
from rowcall.calls.handlers.responses import Offline, Response, StatusFailed, read, usage_of
from rowcall.calls.requests import CallResources, RequestInFlight, request_ended
from rowcall.client import CallFailed
from rowcall.limits.concurrency import RequestSlots
from rowcall.limits.token_estimates import Estimate
from rowcall.model import json_values
from rowcall.model.job import Job
from rowcall.model.outcome import FailureClass, Reply, Usage
from rowcall.providers.handler_endpoint import Endpoint

T = TypeVar("T")

_LOOK_AGAIN = 1.0
"""Seconds after which a request that waits for the end of a rest checks again: the rest may have become longer."""


@dataclass(frozen=True, slots=True)
class HandlerResources:
    """What all handler runs share.

    Attributes:
        endpoint: the base URL and the headers of requests.
        answers: statuses beyond 2xx that count as answers.
        run: what the run shares with all calls.
        slots: one for each request in flight.
    """

    endpoint: Endpoint
    answers: frozenset[int]
    run: CallResources
    slots: RequestSlots


class How(TypedDict, total=False):
    """The parts of a request beside its method and URL; the names are those of httpx.

    Attributes:
        params: the query string.
        headers: they override those of ``[api]``.
        json: the body as JSON; numbers of the record are sent digit by digit as they came in.
        content: the body as text or bytes.
        data: form fields.
        files: a multipart body.
        timeout: seconds for the whole request; default: ``[api] timeout``.
    """

    params: Any
    headers: Mapping[str, str] | None
    json: Any
    content: str | bytes | None
    data: Mapping[str, Any] | None
    files: Any
    timeout: float


class Verbs(Generic[T]):
    """The HTTP methods; each calls ``request``."""

    @abstractmethod
    def request(self, method: str, url: str, **how: Unpack[How]) -> T:
        """Send one request."""

    def get(self, url: str, **how: Unpack[How]) -> T:
        """Send a GET request; for keyword arguments see ``How``."""
        return self.request("GET", url, **how)

    def post(self, url: str, **how: Unpack[How]) -> T:
        """Send a POST request; for keyword arguments see ``How``."""
        return self.request("POST", url, **how)

    def put(self, url: str, **how: Unpack[How]) -> T:
        """Send a PUT request; for keyword arguments see ``How``."""
        return self.request("PUT", url, **how)

    def patch(self, url: str, **how: Unpack[How]) -> T:
        """Send a PATCH request; for keyword arguments see ``How``."""
        return self.request("PATCH", url, **how)

    def delete(self, url: str, **how: Unpack[How]) -> T:
        """Send a DELETE request; for keyword arguments see ``How``."""
        return self.request("DELETE", url, **how)


class Call(Verbs[Coroutine[Any, Any, Response]]):
    """One run of an async handler for one record.

    Attributes:
        key: a value for an ``Idempotency-Key`` header. It stays the same over retries and restarts, and differs for
            another input or handler version.
        number: the number of this attempt of the record, from 1.
        last: the latest reply; None before the first.
        usage: tokens and cost of all replies so far.
    """

    def __init__(self, shared: HandlerResources, job: Job, departure: Departure) -> None:
        self.key = shared.run.call_key(job)
        self.number = job.attempts + 1
        self.last: Reply | None = None
        self.usage = Usage()
        self._shared = shared
        self._job = job
        self._departure = departure
        self._over = False

    async def request(self, method: str, url: str, **how: Unpack[How]) -> Response:
        """Send one request, as soon as the limits allow, and read the whole reply.

        Redirects are not followed, cookies are not kept, and nothing is sent twice.

        Args:
            method: ``GET``, ``POST`` and so on.
            url: a path below the base URL, or a whole URL. Only the host of the base URL is sent the API key.
            how: see ``How``.

        Raises:
            CallFailed: there is no reply, or its status is neither 2xx nor in ``[response] answer``. The engine knows
                what to do about it, even if the handler raises it again or another exception from it.
            RuntimeError: the handler has returned already.
        """
        self.check()
        return await self._exchange(self._request(method, self._shared.endpoint.url(url), how))

    def check(self) -> None:
        """Refuse requests after the handler has returned: nobody paces, counts or waits for them.

        Raises:
            RuntimeError: the handler has returned.
        """
        if self._over:
            raise RuntimeError("this call is over: its handler has returned or was dropped")

    def close(self) -> None:
        """Note that the handler has returned."""
        self._over = True

    def _request(self, method: str, url: httpx.URL, how: How) -> httpx.Request:
        options: dict[str, Any] = {**how}
        body, own = options.pop("json", None), options.pop("headers", None)
        headers = httpx.Headers(self._shared.endpoint.headers(url, self._job.data, self.key))
        if body is not None:
            options["content"] = json_values.dumps(body)
            headers["Content-Type"] = "application/json"
        headers.update(own or {})
        return self._shared.run.client.build_request(method, url, headers=headers, **options)

    async def _exchange(self, request: httpx.Request) -> Response:
        async with self._shared.slots:
            estimate = await self._wait(request)
            self._leave(request)
            try:
                with RequestInFlight(self._shared.run) as in_flight:
                    return await self._send(request, in_flight, estimate)
            finally:
                self._shared.slots.wake()

    async def _send(self, request: httpx.Request, in_flight: RequestInFlight, estimate: Estimate) -> Response:
        try:
            reply = await self._reply(request)
        except CallFailed as error:
            in_flight.end({}, error.failure)
            raise
        self.last = reply
        dialect = self._shared.endpoint.dialect_at(request.url.path)
        used = usage_of(reply, dialect, self._shared.run.prices)
        self._shared.run.door.limits.correct(estimate, used)
        self.usage += used
        try:
            response = read(request, reply, self._shared.answers)
        except StatusFailed as error:
            in_flight.end(reply.headers, error.failure)
            self._obey(error)
            raise
        in_flight.end(reply.headers, None)
        return response

    async def _wait(self, request: httpx.Request) -> Estimate:
        """Wait until the request may leave; returns what was reserved for it."""
        door = self._shared.run.door
        await self._wait_until(door.take(monotonic()))
        estimate = door.limits.estimate(partial(_body, request))
        await door.limits.wait(estimate, patient=True)
        await self._wait_until(0.0)  # a rest may have begun meanwhile
        return estimate

    async def _wait_until(self, leaves: float) -> None:
        """Wait until a time and until the end of a rest, and then until one more request may be in flight."""
        door, slots = self._shared.run.door, self._shared.slots
        while True:
            if (wait := max(leaves, door.resting_until) - monotonic()) > 0:
                await asyncio.sleep(min(wait, _LOOK_AGAIN))
            elif not door.concurrency.free:
                await slots.room()
            else:
                return

    def _leave(self, request: httpx.Request) -> None:
        self.check()
        if self._departure.offline:
            raise Offline("not sent: the API cannot be reached", request=request)
        self._departure.leave()

    async def _reply(self, request: httpx.Request) -> Reply:
        run, endpoint = self._shared.run, self._shared.endpoint
        try:
            reply = await run.client.exchange(request, fresh=self._departure.fresh)
        except CallFailed as error:
            run.emit(request_ended(self._job, error.failure))
            raise
        run.emit(request_ended(self._job, reply))
        return reply if 200 <= reply.status < 300 else _with_body(reply, endpoint.without_secrets(reply.body))

    def _obey(self, error: StatusFailed) -> None:
        """Begin a rest that the API asked for at once, whatever the handler does about the exception."""
        failure = error.failure
        if failure.cls is FailureClass.PACE and failure.retry_after:
            self._shared.run.door.rest(failure.retry_after, failure.message, monotonic())


class SyncCall(Verbs[Response]):
    """One run of a plain (not async) handler for one record, in a thread; see ``Call``."""

    def __init__(self, call: Call, loop: asyncio.AbstractEventLoop) -> None:
        self.key = call.key
        self.number = call.number
        self._call = call
        self._loop = loop
        self._requests: set[asyncio.Task[Any]] = set()

    def request(self, method: str, url: str, **how: Unpack[How]) -> Response:
        """Send one request and read the whole reply; see ``Call.request``."""
        self._call.check()
        return asyncio.run_coroutine_threadsafe(self._request(method, url, how), self._loop).result()

    def close(self) -> None:
        """Note that the handler has returned, or that nobody waits for it. Must be called in the event loop."""
        self._call.close()
        for request in tuple(self._requests):
            request.cancel()

    async def _request(self, method: str, url: str, how: How) -> Response:
        task = asyncio.current_task()
        assert task is not None
        self._requests.add(task)
        try:
            return await self._call.request(method, url, **how)
        finally:
            self._requests.discard(task)


def _body(request: httpx.Request) -> bytes:
    """The body; empty where it is only produced while it is sent."""
    try:
        return request.content
    except httpx.RequestNotRead:
        return b""


def _with_body(reply: Reply, body: bytes) -> Reply:
    return Reply(reply.status, reply.headers, body, reply.latency)

"""What a handler is given to call the API with: one object for each of its runs."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Generic, TypedDict, TypeVar, Unpack

import httpx

from rowcall.calls.handlers.responses import Offline, Response, StatusFailed, read, usage_of
from rowcall.calls.requests import CallResources, Departure, RequestInFlight, request_ended
from rowcall.client import CallFailed
from rowcall.limits.room import Room
from rowcall.limits.slots import Slots
from rowcall.limits.token_estimates import Estimate
from rowcall.model import json_values
from rowcall.model.job import Job
from rowcall.model.outcome import FailureClass, Reply, Usage
from rowcall.providers.handler_endpoint import Endpoint

T = TypeVar("T")

_LOOK_AGAIN = 1.0
"""Seconds after which a request that waits for the end of a rest looks again."""


@dataclass(frozen=True, slots=True)
class HandlerResources:
    """What all calls of a run share.

    Attributes:
        endpoint: where paths are joined to, and its headers.
        answers: statuses beyond 2xx that are answers.
        wire: client, pace and listener.
        slots: one for each request in flight.
        room: for as many of them as the API takes at a time.
    """

    endpoint: Endpoint
    answers: frozenset[int]
    wire: CallResources
    slots: Slots
    room: Room


class How(TypedDict, total=False):
    """What a request is made of beside method and URL; the words are httpx's.

    Attributes:
        params: the query.
        headers: they win over those of ``[api]``.
        json: the body as JSON; numbers of the record go out as they came in.
        content: the body as it is.
        data: the fields of a form.
        files: a multipart body.
        timeout: seconds for this request, all of it; left out: ``[api] timeout``.
    """

    params: Any
    headers: Mapping[str, str] | None
    json: Any
    content: str | bytes | None
    data: Mapping[str, Any] | None
    files: Any
    timeout: float


class Verbs(Generic[T]):
    """The methods of HTTP, each a ``request``."""

    @abstractmethod
    def request(self, method: str, url: str, **how: Unpack[How]) -> T:
        """Send one request."""

    def get(self, url: str, **how: Unpack[How]) -> T:
        """GET; keyword arguments as in ``How``."""
        return self.request("GET", url, **how)

    def post(self, url: str, **how: Unpack[How]) -> T:
        """POST; keyword arguments as in ``How``."""
        return self.request("POST", url, **how)

    def put(self, url: str, **how: Unpack[How]) -> T:
        """PUT; keyword arguments as in ``How``."""
        return self.request("PUT", url, **how)

    def patch(self, url: str, **how: Unpack[How]) -> T:
        """PATCH; keyword arguments as in ``How``."""
        return self.request("PATCH", url, **how)

    def delete(self, url: str, **how: Unpack[How]) -> T:
        """DELETE; keyword arguments as in ``How``."""
        return self.request("DELETE", url, **how)


class Call(Verbs[Coroutine[Any, Any, Response]]):
    """One run of an async handler for one record.

    Attributes:
        key: for an Idempotency-Key: the same over tries and restarts, another for another input or version.
        number: which charged try of the record this is, from 1.
        last: the latest reply; None before the first.
        usage: tokens and cost of all replies so far.
    """

    def __init__(self, shared: HandlerResources, job: Job, departure: Departure) -> None:
        self.key = shared.wire.call_key(job)
        self.number = job.attempts + 1
        self.last: Reply | None = None
        self.usage = Usage()
        self._shared = shared
        self._job = job
        self._departure = departure
        self._over = False

    async def request(self, method: str, url: str, **how: Unpack[How]) -> Response:
        """Send one request and read the whole reply; it waits until the pace allows.

        No redirect is followed, no cookie kept, and nothing is sent twice.

        Args:
            method: ``GET``, ``POST`` and so on.
            url: a path below the base URL, or a whole URL; only the base URL's own host gets the key.
            how: see ``How``.

        Raises:
            CallFailed: anything but a reply of 2xx or of a status in ``[response] answer``. The engine knows what
                to do about it, also where it is raised again or another exception on top of it.
            RuntimeError: the handler has returned already.
        """
        self.check()
        return await self._exchange(self._request(method, self._shared.endpoint.url(url), how))

    def check(self) -> None:
        """Refuse what comes after the handler has returned: nobody paces, counts or waits for it.

        Raises:
            RuntimeError: it has.
        """
        if self._over:
            raise RuntimeError("this call is over: its handler has returned or was dropped")

    def close(self) -> None:
        """The handler has returned."""
        self._over = True

    def _request(self, method: str, url: httpx.URL, how: How) -> httpx.Request:
        options: dict[str, Any] = {**how}
        body, own = options.pop("json", None), options.pop("headers", None)
        headers = httpx.Headers(self._shared.endpoint.headers(url, self._job.data, self.key))
        if body is not None:
            options["content"] = json_values.dumps(body)
            headers["Content-Type"] = "application/json"
        headers.update(own or {})
        return self._shared.wire.client.build_request(method, url, headers=headers, **options)

    async def _exchange(self, request: httpx.Request) -> Response:
        async with self._shared.slots:
            estimate = await self._wait_for_place(request)
            self._leave(request)
            try:
                with RequestInFlight(self._shared.wire) as crossing:
                    return await self._cross(request, crossing, estimate)
            finally:
                self._shared.room.wake()

    async def _cross(self, request: httpx.Request, crossing: RequestInFlight, estimate: Estimate) -> Response:
        try:
            reply = await self._reply(request)
        except CallFailed as error:
            crossing.end({}, error.failure)
            raise
        self.last = reply
        dialect = self._shared.endpoint.dialect_at(request.url.path)
        used = usage_of(reply, dialect, self._shared.wire.prices)
        self._shared.wire.places.correct(estimate, used)
        self.usage += used
        try:
            response = read(request, reply, self._shared.answers)
        except StatusFailed as error:
            crossing.end(reply.headers, error.failure)
            self._obey(error)
            raise
        crossing.end(reply.headers, None)
        return response

    async def _wait_for_place(self, request: httpx.Request) -> Estimate:
        """Wait for a place, and for the end of a rest that the API asked for; returns what was reserved."""
        rate, places = self._shared.wire.rate, self._shared.wire.places
        await self._rest(rate.take(monotonic()))
        estimate = places.estimate(partial(_body, request))
        await places.place(estimate, patient=True)
        await self._rest(0.0)
        return estimate

    async def _rest(self, leaves: float) -> None:
        """Wait until a time, as long as the target rests, and until there is room."""
        rate, room = self._shared.wire.rate, self._shared.room
        while True:
            if (wait := max(leaves, rate.resting_until) - monotonic()) > 0:
                await asyncio.sleep(min(wait, _LOOK_AGAIN))
            elif not room.is_free:
                await room.more()
            else:
                return

    def _leave(self, request: httpx.Request) -> None:
        self.check()
        if self._departure.barred:
            raise Offline("not sent: the API cannot be reached", request=request)
        self._departure.leave()

    async def _reply(self, request: httpx.Request) -> Reply:
        wire, endpoint = self._shared.wire, self._shared.endpoint
        try:
            reply = await wire.client.exchange(request, fresh=self._departure.fresh)
        except CallFailed as error:
            wire.emit(request_ended(self._job, error.failure))
            raise
        wire.emit(request_ended(self._job, reply))
        return reply if 200 <= reply.status < 300 else _with_body(reply, endpoint.without_secrets(reply.body))

    def _obey(self, error: StatusFailed) -> None:
        """A rest that was asked for begins now, whatever the handler makes of the exception."""
        failure = error.failure
        if failure.cls is FailureClass.PACE and failure.retry_after:
            self._shared.wire.rate.rest(failure.retry_after, monotonic())


class SyncCall(Verbs[Response]):
    """One run of a plain handler for one record, which happens in a thread; see ``Call``."""

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
        """The handler has returned, or nobody waits for it any more; to be said in the loop."""
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
    """What goes out; nothing where it is made only while it is sent."""
    try:
        return request.content
    except httpx.RequestNotRead:
        return b""


def _with_body(reply: Reply, body: bytes) -> Reply:
    return Reply(reply.status, reply.headers, body, reply.latency)

"""The mock API's server: correct answers in the formats of four APIs, and faults as they are asked for.

    async with MockAPI(latency=0.05, faults=Faults(errors=0.05)) as api:
        ...  # call api.url

``[api] preset = "mock"`` and ``rowcall mock`` run it, and the tests call it.
"""

from __future__ import annotations

import asyncio
import hashlib
import signal
import socket
import time
from collections.abc import Callable, Collection
from typing import Any, Literal, NamedTuple, NoReturn, Self

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from rowcall.mock.call_log import CallLog, RecordedCall
from rowcall.mock.endpoints import Question, error, read
from rowcall.mock.injected_faults import Faults
from rowcall.mock.listener import Listener, bind, reset

Outage = Literal["503", "html", "blackhole", "reset"]
Poison = Collection[str] | Callable[[str], int | None]

_KEY_HEADERS = ("Authorization", "x-api-key", "x-goog-api-key")
_LARGEST_BODY = 64 * 2**20
_PORTAL = "<!doctype html><title>Welcome</title><h1>Please sign in to use this network</h1>"


class _Verdict(NamedTuple):
    """How a call ends. Without a response the connection is closed in the way that the status names."""

    status: int | str
    response: web.Response | None = None


_DROPPED = _Verdict("dropped")


class MockAPI(CallLog):
    """The fake API, as an async context manager.

    ``POST /v1/chat/completions`` judges the last user message and answers ``{"label": ..., "score": ...}``. So do
    ``/v1/responses``, ``/v1/messages`` and ``/v1beta/models/{model}:generateContent``, each in its own format.
    ``GET /v1/words/{word}`` looks a word up, with 404 for an unknown one. ``GET /v1/sentiment?text=`` judges a text.

    Args:
        host: the address to listen at.
        port: the port; 0 takes any free one and keeps it, even after ``close_port``.
        latency: seconds from request to answer.
        faults: the random faults; none by default.
        capacity: the most calls in flight; a further call gets 429 at once. None: no limit.
        api_key: the key required in ``Authorization: Bearer``, ``x-api-key`` or ``x-goog-api-key``; None: no key.
        keep_calls: keep every call in ``calls``; False only counts them, so that memory stays flat.
        any_path: answer unknown paths with ``{}`` and status 200, to stand in for an API with other paths.

    Attributes:
        outage: the behaviour of all calls from now on: ``503``, ``html`` (a sign-in page with status 200),
            ``blackhole`` (never an answer) or ``reset``; None for no outage.
        poison: texts that always get 500, or a function that returns the status that a text always gets, or None.
        respond: a function that may return a response to a call, which must be a new object each time, or None.

    ``latency``, ``faults``, ``capacity``, ``outage``, ``poison`` and ``respond`` can be changed at any time, also for
    calls in flight. They apply in this order: capacity, outage, respond, key, poison, faults, the correct answer.

    Raises:
        RowcallError: on entering, if the port cannot be opened.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        latency: float = 0.05,
        faults: Faults | None = None,
        capacity: int | None = None,
        api_key: str | None = None,
        keep_calls: bool = True,
        any_path: bool = False,
    ) -> None:
        super().__init__(keep=keep_calls)
        self.latency = latency
        self.faults = faults or Faults()
        self.capacity = capacity
        self.outage: Outage | None = None
        self.poison: Poison = frozenset()
        self.respond: Callable[[RecordedCall], web.Response | None] | None = None
        self._host, self._port = host, port
        self._any_path = any_path
        self._key = api_key
        self._held: socket.socket | None = None
        self._listener: Listener | None = None

    @property
    def origin(self) -> str:
        """Scheme, host and port: ``http://127.0.0.1:8080``."""
        return f"http://{self._host}:{self._port}"

    @property
    def url(self) -> str:
        """The base URL for an OpenAI client: ``http://127.0.0.1:8080/v1``."""
        return f"{self.origin}/v1"

    async def __aenter__(self) -> Self:
        await self.open_port()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close_port()
        if self._held is not None:
            self._held.close()
            self._held = None

    async def open_port(self) -> None:
        """Accept connections, after ``close_port`` at the same port."""
        if self._listener is not None:
            return
        bound, self._held = self._held or bind(self._host, self._port), None
        self._port = bound.getsockname()[1]
        server = web.Server(
            self._handle, request_factory=_request, handler_cancellation=True, access_log=None, tcp_keepalive=False
        )
        self._listener = Listener(bound, server)

    async def close_port(self) -> None:
        """Refuse new connections and reset the open ones, which drops calls in flight."""
        if self._listener is None:
            return
        listener, self._listener = self._listener, None
        listener.close()
        self._held = bind(self._host, self._port)
        await listener.drop()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        body = await request.read()
        question = read(request.method, request.path, request.query, body, any_path=self._any_path)
        call = self._call(request, question.text, body)
        self._begin(call)
        verdict = _DROPPED
        try:
            verdict = await self._decide(call, question)
        finally:
            self._end(call, verdict.status)
        if verdict.response is None:
            await _cut(request, verdict.status)
        verdict.response.headers.setdefault("x-request-id", call.id)
        return verdict.response

    def _call(self, request: web.BaseRequest, text: str, body: bytes) -> RecordedCall:
        record = _record(request, body)
        return RecordedCall(
            method=request.method,
            path=request.path_qs,
            text=text,
            record=record,
            number=self._number(record),
            connection=_port_of_client(request),
            arrived=time.monotonic(),
            early=self._too_early(record),
            headers=request.headers,
            body=body,
            id=f"req_{self.arrived + 1:08d}",
        )

    async def _decide(self, call: RecordedCall, question: Question) -> _Verdict:
        if self.capacity is not None and self.in_flight > self.capacity:
            return self._rate_limit(call)
        await asyncio.sleep(self.latency)
        if self.outage == "blackhole":
            await _forever()
        return (
            self._in_outage()
            or self._by_respond(call)
            or self._by_key(call)
            or self._by_poison(call)
            or self._by_chance(call)
            or _answered(question.answer(call.id))
        )

    def _in_outage(self) -> _Verdict | None:
        if self.outage == "503":
            return _failed(503, "The server is overloaded or not ready yet.")
        if self.outage == "html":
            return _portal()
        return _Verdict("reset") if self.outage == "reset" else None

    def _by_respond(self, call: RecordedCall) -> _Verdict | None:
        response = self.respond(call) if self.respond else None
        return None if response is None else _answered(response)

    def _by_key(self, call: RecordedCall) -> _Verdict | None:
        keys = (call.headers.get(name, "").removeprefix("Bearer ") for name in _KEY_HEADERS)
        if self._key is None or self._key in keys:
            return None
        return _failed(401, "Incorrect API key provided.", code="invalid_api_key")

    def _by_poison(self, call: RecordedCall) -> _Verdict | None:
        status = self.poison(call.text) if callable(self.poison) else 500 if call.text in self.poison else None
        return None if status is None else _failed(status, f"This record always gets {status}.", code="poison")

    def _by_chance(self, call: RecordedCall) -> _Verdict | None:
        match self.faults.draw(call.record, call.number):
            case "rate_limited":
                return self._rate_limit(call)
            case "error":
                return _failed(500, "The server had an error while processing your request.")
            case "html":
                return _portal()
            case fault:
                return fault and _Verdict(fault)

    def _rate_limit(self, call: RecordedCall) -> _Verdict:
        self._rest(call, self.faults.retry_after)
        response = error(
            429,
            "Rate limit reached for requests.",
            code="rate_limit_exceeded",
            headers=self.faults.wait(call.record, call.number),
        )
        return _Verdict(429, response)


async def serve(api: MockAPI, *, announce: Callable[[MockAPI], None]) -> None:
    """Run the API until SIGINT or SIGTERM; ``announce`` is called once it accepts connections."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, stop.set)
    try:
        async with api:
            announce(api)
            await stop.wait()
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


def _answered(response: web.Response) -> _Verdict:
    return _Verdict(response.status, response)


def _failed(status: int, message: str, *, code: str | None = None) -> _Verdict:
    return _Verdict(status, error(status, message, code=code))


def _portal() -> _Verdict:
    return _Verdict("html", web.Response(text=_PORTAL, content_type="text/html"))


def _record(request: web.BaseRequest, body: bytes) -> bytes:
    key = request.headers.get("Idempotency-Key")
    named = (
        f"key {key}".encode(errors="surrogateescape")
        if key
        else f"{request.method} {request.path_qs}\n".encode() + body
    )
    return hashlib.blake2b(named, digest_size=8).digest()


def _port_of_client(request: web.BaseRequest) -> int:
    return request.transport.get_extra_info("peername")[1] if request.transport else 0


def _request(
    message: Any, payload: Any, protocol: Any, writer: AbstractStreamWriter, task: asyncio.Task[None]
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_LARGEST_BODY)


async def _cut(request: web.BaseRequest, how: int | str) -> NoReturn:
    """Close the connection without an answer, with RST or FIN."""
    transport = request.transport
    if transport is not None and how == "reset":
        reset(transport)
    elif transport is not None:
        transport.close()
    await _forever()


async def _forever() -> NoReturn:
    """Wait until the end of the connection cancels the call."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError("only a cancellation ends this wait")

"""httpx's transport over aiohttp's connections; one request is one HTTP request, nothing here tries again."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any

import httpx

from rowcall.client.attempt import Attempt
from rowcall.client.connections import Connections
from rowcall.client.http1 import Incoming, head_of, talk
from rowcall.client.proxies import Proxies
from rowcall.client.reply_body import Body, RawHeaders

PROBE_CONNECT_TIMEOUT = 5.0
"""Seconds to connect for a call on a fresh connection, at most."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A reply read to its end, its body decoded."""

    status: int
    reason: str
    headers: RawHeaders
    body: bytes


class Transport(httpx.AsyncBaseTransport):
    """Sends httpx requests over aiohttp.

    A request's ``timeout`` extension counts as httpx sets it, but for two things: ``read`` is the deadline for the
    whole attempt from the call to the last byte of the reply, and ``connect`` covers look-up, TCP and TLS together.

    Args:
        concurrency: connections at once, at most; a request that finds none free waits.
        timeout: seconds for the whole attempt, where the request does not say.
        connect_timeout: seconds for a new connection, where the request does not say.
        max_reply: bytes of a decoded body, at most.
        verify: as httpx takes it: True for the usual authorities (certifi, or SSL_CERT_FILE), or an own context.
        proxies: which proxy a request goes through; None: none.
    """

    def __init__(
        self,
        *,
        concurrency: int,
        timeout: float,
        connect_timeout: float,
        max_reply: int,
        verify: ssl.SSLContext | bool = True,
        proxies: Proxies | None = None,
    ) -> None:
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._max_reply = max_reply
        self._proxies = proxies or Proxies()
        self._connections = Connections(concurrency=concurrency, verify=verify)
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the reply's body is streamed, decoded.

        Raises:
            WireError: here or while the body is read.
        """
        attempt = self._attempt(request, fresh=False)
        reply = await attempt.within(self._open(request, attempt, fresh=False))
        body = Body(reply, attempt, self._max_reply)
        return httpx.Response(reply.status, headers=body.headers, stream=body, extensions=extensions(reply.reason))

    async def whole(self, request: httpx.Request, *, fresh: bool = False) -> Whole:
        """Send a request and read all of the reply.

        Args:
            request: its body is bytes, or an async stream that is sent chunked.
            fresh: on a new connection that is closed afterwards, made within 5 s.

        Raises:
            WireError: there is no whole reply.
        """
        attempt = self._attempt(request, fresh=fresh)
        return await attempt.within(self._whole(request, attempt, fresh))

    async def aclose(self) -> None:
        """Close all connections, for good."""
        self._closed = True
        await self._connections.close()

    async def _whole(self, request: httpx.Request, attempt: Attempt, fresh: bool) -> Whole:
        reply = await self._open(request, attempt, fresh=fresh)
        body = Body(reply, attempt, self._max_reply)
        try:
            pieces = []
            while piece := await body.read():
                pieces.append(piece)
        finally:
            await body.aclose()
        return Whole(reply.status, reply.reason, body.headers, b"".join(pieces))

    async def _open(self, request: httpx.Request, attempt: Attempt, *, fresh: bool) -> Incoming:
        """Send the request and read the head of the reply."""
        if self._closed:
            raise RuntimeError("the client is closed")
        proxy = self._proxies.of(request.url)
        head = head_of(request, proxy, keep=not fresh)
        connection = await self._connections.connect(request.url, proxy, attempt, fresh=fresh)
        try:
            reply = await talk(connection, request, head)
        except BaseException:
            connection.close()
            raise
        attempt.answered = True
        return reply

    def _attempt(self, request: httpx.Request, *, fresh: bool) -> Attempt:
        limits = request.extensions.get("timeout", {})
        connect = limits.get("connect", self._connect_timeout)
        if fresh:
            connect = PROBE_CONNECT_TIMEOUT if connect is None else min(connect, PROBE_CONNECT_TIMEOUT)
        return Attempt(request, limits.get("read", self._timeout), connect)


def extensions(reason: str) -> dict[str, Any]:
    """What httpx keeps of a reply beside its parts."""
    return {"http_version": b"HTTP/1.1", "reason_phrase": reason.encode("utf-8", "replace")}

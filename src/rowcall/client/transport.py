"""An httpx transport over aiohttp. One request is one HTTP request: nothing here tries again."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any

import httpx

from rowcall.client.aiohttp_version import make_sender
from rowcall.client.attempt import Attempt
from rowcall.client.proxies import Proxies
from rowcall.client.reply_body import Body, RawHeaders
from rowcall.client.sender import IncomingReply

PROBE_CONNECT_TIMEOUT = 5.0
"""Longest connect timeout of a call on a fresh connection, in seconds."""


@dataclass(frozen=True, slots=True)
class WholeReply:
    """A reply that was read to its end, with its body decoded."""

    status: int
    reason: str
    headers: RawHeaders
    body: bytes


class Transport(httpx.AsyncBaseTransport):
    """Sends httpx requests over aiohttp.

    The ``timeout`` extension of a request counts as in httpx, with two exceptions: ``read`` is the deadline for the
    whole attempt, from the call to the last byte of the reply, and ``connect`` covers name look-up, TCP and TLS.

    Args:
        concurrency: how many connections there may be at once; a request that finds none free waits.
        timeout: seconds for the whole attempt, unless the request has its own.
        connect_timeout: seconds for a new connection, unless the request has its own.
        max_reply: size limit of a decoded body, in bytes.
        verify: as httpx takes it: True for the usual authorities (certifi, or SSL_CERT_FILE), or a context.
        proxies: decides which proxy a request goes through; None for no proxy.
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
        self._sender = make_sender(concurrency=concurrency, verify=verify)
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. The body of the response is streamed, decoded.

        Raises:
            WireError: here or while the body is read.
        """
        attempt = self._attempt(request, fresh=False)
        reply = await attempt.within(self._open(request, attempt, fresh=False))
        body = Body(reply, attempt, self._max_reply)
        return httpx.Response(reply.status, headers=body.headers, stream=body, extensions=extensions(reply.reason))

    async def whole(self, request: httpx.Request, *, fresh: bool = False) -> WholeReply:
        """Send a request and read the whole reply.

        Args:
            request: its body is bytes, or an async stream that is sent chunked.
            fresh: on a new connection that is closed afterwards, made within 5 s.

        Raises:
            WireError: there is no whole reply.
        """
        attempt = self._attempt(request, fresh=fresh)
        return await attempt.within(self._whole(request, attempt, fresh))

    async def aclose(self) -> None:
        """Close all connections. The transport cannot be used afterwards."""
        self._closed = True
        await self._sender.close()

    async def _whole(self, request: httpx.Request, attempt: Attempt, fresh: bool) -> WholeReply:
        reply = await self._open(request, attempt, fresh=fresh)
        body = Body(reply, attempt, self._max_reply)
        try:
            pieces = []
            while piece := await body.read():
                pieces.append(piece)
        finally:
            await body.aclose()
        return WholeReply(reply.status, reply.reason, body.headers, b"".join(pieces))

    async def _open(self, request: httpx.Request, attempt: Attempt, *, fresh: bool) -> IncomingReply:
        """Send the request and read the head of the reply."""
        if self._closed:
            raise RuntimeError("the client is closed")
        reply = await self._sender.send(request, self._proxies.of(request.url), attempt, fresh=fresh)
        attempt.answered = True
        return reply

    def _attempt(self, request: httpx.Request, *, fresh: bool) -> Attempt:
        limits = request.extensions.get("timeout", {})
        connect = limits.get("connect", self._connect_timeout)
        if fresh:
            connect = PROBE_CONNECT_TIMEOUT if connect is None else min(connect, PROBE_CONNECT_TIMEOUT)
        return Attempt(request, limits.get("read", self._timeout), connect)


def extensions(reason: str) -> dict[str, Any]:
    """What httpx stores about a reply beside its parts."""
    return {"http_version": b"HTTP/1.1", "reason_phrase": reason.encode("utf-8", "replace")}

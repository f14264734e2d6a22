"""httpx's transport over aiohttp's connections; one request is one HTTP request, nothing here tries again."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import aiohttp
import httpx
from yarl import URL

from rowcall.client.attempt import Attempt, tracing
from rowcall.client.body import Body, RawHeaders
from rowcall.client.names import Resolver
from rowcall.client.proxies import Proxies

DEFAULT_HEADERS = {"User-Agent": "rowcall", "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
"""Sent where a request does not say otherwise."""

PROBE_CONNECT_TIMEOUT = 5.0
"""Seconds to connect for a call on a fresh connection, at most."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A reply read to its end, its body decoded."""

    status: int
    headers: RawHeaders
    body: bytes
    extensions: dict[str, Any]


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
        self._concurrency = concurrency
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._max_reply = max_reply
        self._verify = verify
        self._proxies = proxies or Proxies()
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the reply's body is streamed, decoded.

        Raises:
            WireError: here or while the body is read.
        """
        attempt = self._attempt(request, fresh=False)
        reply = await attempt.within(self._open(request, attempt, fresh=False))
        body = Body(reply, attempt, self._max_reply)
        return httpx.Response(reply.status, headers=body.headers, stream=body, extensions=_extensions(reply))

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
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    async def _whole(self, request: httpx.Request, attempt: Attempt, fresh: bool) -> Whole:
        reply = await self._open(request, attempt, fresh=fresh)
        body = Body(reply, attempt, self._max_reply)
        try:
            pieces = []
            while piece := await body.read():
                pieces.append(piece)
        finally:
            await body.aclose()
        return Whole(reply.status, body.headers, b"".join(pieces), _extensions(reply))

    async def _open(self, request: httpx.Request, attempt: Attempt, *, fresh: bool) -> aiohttp.ClientResponse:
        """Send the request and read the head of the reply."""
        proxy = self._proxies.of(request.url)
        credentials = {"Proxy-Authorization": proxy.authorization} if proxy and proxy.authorization else {}
        tunnel = request.url.scheme == "https"
        reply = await self._session(fresh).request(
            request.method,
            _exact_url(request.url),
            headers=[*_headers(request), *({} if tunnel else credentials).items()],
            data=_content(request),
            allow_redirects=False,
            ssl=self._tls if tunnel or (proxy and proxy.url.startswith("https")) else True,
            proxy=proxy.url if proxy else None,
            proxy_headers=credentials if tunnel else None,
            trace_request_ctx=attempt,
        )
        attempt.answered = True
        return reply

    def _attempt(self, request: httpx.Request, *, fresh: bool) -> Attempt:
        limits = request.extensions.get("timeout", {})
        connect = limits.get("connect", self._connect_timeout)
        if fresh:
            connect = PROBE_CONNECT_TIMEOUT if connect is None else min(connect, PROBE_CONNECT_TIMEOUT)
        return Attempt(request, limits.get("read", self._timeout), connect)

    def _session(self, fresh: bool) -> aiohttp.ClientSession:
        if self._closed:
            raise RuntimeError("the client is closed")
        if fresh not in self._sessions:
            self._sessions[fresh] = _session(self._fresh_connector() if fresh else self._keeping_connector())
        return self._sessions[fresh]

    def _keeping_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(
            limit=self._concurrency, resolver=Resolver(), ttl_dns_cache=60, keepalive_timeout=30.0
        )

    def _fresh_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(limit=self._concurrency, resolver=Resolver(), ttl_dns_cache=0, force_close=True)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        if isinstance(self._verify, ssl.SSLContext):
            return self._verify
        context = httpx.create_ssl_context(self._verify)
        context.set_alpn_protocols(["http/1.1"])
        return context


def _session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    session = aiohttp.ClientSession(
        connector=connector,
        headers=DEFAULT_HEADERS,
        skip_auto_headers=["Content-Type"],
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(),  # none: an attempt keeps its own deadlines
        trace_configs=[tracing()],
        max_line_size=2**16,
        max_field_size=2**16,
    )
    session._retry_connection = False  # noqa: SLF001  it would send again; there is no public switch
    return session


def _exact_url(url: httpx.URL) -> URL:
    """The URL as httpx encoded it, without credentials and fragment."""
    return URL((b"%b://%b%b" % (url.raw_scheme, url.netloc, url.raw_path)).decode("ascii"), encoded=True)


def _headers(request: httpx.Request) -> list[tuple[str, str]]:
    """The request's headers; whether a streamed body goes out in chunks is aiohttp's to say."""
    return [
        (name.decode(), value.decode()) for name, value in request.headers.raw if name.lower() != b"transfer-encoding"
    ]


def _content(request: httpx.Request) -> bytes | httpx.SyncByteStream | httpx.AsyncByteStream | None:
    if isinstance(request.stream, httpx.ByteStream):  # ``request.content`` is not there after a redirect
        return b"".join(request.stream) or None
    return request.stream


def _extensions(reply: aiohttp.ClientResponse) -> dict[str, Any]:
    return {"http_version": b"HTTP/1.1", "reason_phrase": (reply.reason or "").encode("utf-8", "replace")}

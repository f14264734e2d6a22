"""The sender for aiohttp versions whose internals were not tested: it uses only what aiohttp and asyncio document.

aiohttp's session does not tell everything that an exact error needs, so two documented hooks are used. The connector's
``connect`` is overridden, to see each connection before the session writes to it. And a ``Watch`` is set between each
connection and aiohttp's own protocol, to see whether bytes arrived and how the connection ended.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any

import aiohttp
import httpx
from multidict import CIMultiDict
from yarl import URL

from rowcall.client.attempt import Attempt, NotHTTP
from rowcall.client.name_lookup import NameResolver
from rowcall.client.proxies import Proxy
from rowcall.client.request_head import DEFAULT_HEADERS, FRAMING, body_of, declared_length, head_of
from rowcall.client.sender import DNS_CACHE, KEEP_ALIVE, LONGEST_LINE
from rowcall.client.tls import TLSContext

_LARGE = 2**16
"""Larger bodies are sent in pieces of this many bytes: aiohttp writes bytes at once, and warns from 1 MiB on."""
_NO_TIMEOUTS = aiohttp.ClientTimeout()  # an attempt keeps its own deadlines
_SKIPPED = (*DEFAULT_HEADERS, "Content-Type")  # headers that aiohttp would add where a request has none


class SessionSender:
    """Sends requests over aiohttp's sessions; a request that finds no free connection waits.

    Args:
        concurrency: how many connections there may be at once.
        verify: as httpx takes it: True for the usual authorities (certifi, or SSL_CERT_FILE), or a context.
    """

    def __init__(self, *, concurrency: int, verify: ssl.SSLContext | bool) -> None:
        self._concurrency = concurrency
        self._tls = TLSContext(verify)
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    async def send(self, request: httpx.Request, proxy: Proxy | None, attempt: Attempt, *, fresh: bool) -> SessionReply:
        """Send a request and read the head of its reply.

        Raises:
            Exception: aiohttp's, for ``Attempt.within`` to classify.
        """
        head_of(request, proxy, keep=not fresh)  # aiohttp writes a head of its own; this refuses what is not HTTP
        url = request.url
        _refuse_odd_address(url.host)
        tunnel = url.scheme == "https"
        current = Current(attempt)
        token = _CURRENT.set(current)
        try:
            response = await self._session(fresh).request(
                request.method,
                URL(f"{url.scheme}://{url.netloc.decode()}{url.raw_path.decode()}", encoded=True),
                headers=_headers(request, proxy, fresh=fresh),
                data=_data(request, current),
                proxy=URL(proxy.url) if proxy else None,
                proxy_headers={"Proxy-Authorization": proxy.authorization}
                if proxy and proxy.authorization and tunnel
                else None,
                ssl=self._tls.context if tunnel or (proxy and proxy.url.startswith("https")) else True,
                allow_redirects=False,
                trace_request_ctx=attempt,
            )
        except BaseException:
            attempt.reply_began = current.watch is not None and current.watch.heard
            current.end_upload()
            raise
        finally:
            _CURRENT.reset(token)
            current.attempt = None  # timers that aiohttp started have copied the context and live for seconds
        reply = SessionReply(response, response.status, response.reason or "", response.headers, current)
        if current.watch:
            current.watch.reply = reply
        return reply

    async def close(self) -> None:
        """Close all connections."""
        for session in self._sessions.values():
            await session.close()

    def _session(self, fresh: bool) -> aiohttp.ClientSession:
        if fresh not in self._sessions:
            options: dict[str, Any] = (
                {"ttl_dns_cache": 0, "force_close": True}
                if fresh
                else {"ttl_dns_cache": DNS_CACHE, "keepalive_timeout": KEEP_ALIVE}
            )
            self._sessions[fresh] = aiohttp.ClientSession(
                connector=_Connector(limit=self._concurrency, resolver=NameResolver(), **options),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=_NO_TIMEOUTS,
                skip_auto_headers=_SKIPPED,
                auto_decompress=False,
                requote_redirect_url=False,
                max_line_size=LONGEST_LINE,
                max_field_size=LONGEST_LINE,
                trace_configs=[_CONNECT_SIGNALS],
            )
        return self._sessions[fresh]


@dataclass(slots=True, eq=False)
class SessionReply:
    """A reply whose head has been read; see ``IncomingReply``."""

    response: aiohttp.ClientResponse
    status: int
    reason: str
    headers: Mapping[str, str]
    current: Current

    @property
    def raw_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """The headers as they arrived."""
        return self.response.raw_headers

    @property
    def content(self) -> aiohttp.StreamReader:
        """The body, still encoded."""
        return self.response.content

    def connection_lost(self) -> asyncio.Future[None] | None:
        """Done once the connection is closed; None if the whole body has already arrived."""
        watch = self.current.watch
        return None if self.content.is_eof() or watch is None else watch.lost

    def connection_error(self) -> Exception | None:
        """What ended the connection: an OSError, or NotHTTP if it was aiohttp that closed it."""
        return self.current.watch.error() if self.current.watch else None

    def close(self) -> None:
        """Give the connection back if request and reply passed whole, otherwise close it. Safe to repeat."""
        if self.content.is_eof():
            self.response.release()
        else:
            self.response.close()
        self.current.end_upload()
        watch = self.current.watch
        if watch and watch.reply is self:  # otherwise it may serve the next request already
            watch.reply = None
            watch.heard = False


class Watch(asyncio.Protocol):
    """Passes everything on to aiohttp's protocol, and notes what aiohttp does not tell.

    Attributes:
        reply: the reply that is being read; None between two requests.
        heard: bytes arrived since the last reply was closed.
        uploading: a streamed body is being written, or was broken off.
        lost: done once the connection is closed.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._inner: Any = transport.get_protocol()
        self._ended_by_server = False
        self._closed = False
        self._reset: OSError | None = None
        self.reply: SessionReply | None = None
        self.heard = False
        self.uploading = False
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        transport.set_protocol(self)

    def error(self) -> Exception | None:
        """What ended the connection, if it was neither this side nor a regular end."""
        if self._closed and not self._ended_by_server and not self._reset:
            return NotHTTP("aiohttp could not parse it")  # the one cause for which aiohttp closes a connection in use
        return self._reset

    def data_received(self, data: bytes) -> None:
        """Note that bytes arrived."""
        self.heard = True
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Note that the server ended the connection."""
        self._ended_by_server = True
        keep_open: bool | None = self._inner.eof_received()
        return keep_open

    def connection_lost(self, exc: Exception | None) -> None:
        """Note how the connection ended, before aiohttp wakes the reader."""
        self._closed = True
        self._reset = exc if isinstance(exc, OSError) else None
        self._inner.connection_lost(exc)
        if not self.lost.done():
            self.lost.set_result(None)

    def pause_writing(self) -> None:
        """Nothing to note."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Nothing to note."""
        self._inner.resume_writing()


@dataclass(slots=True, eq=False)
class Current:
    """The request that the running task sends, with its streamed body, and with its connection once it has one."""

    attempt: Attempt | None
    watch: Watch | None = None
    upload: AsyncGenerator[bytes, None] | None = None

    def end_upload(self) -> None:
        """End the generator of a streamed body, so that its ``finally`` runs now and not when it is collected."""
        if self.upload:
            ending = asyncio.create_task(_end(self.upload))
            _ENDING.add(ending)  # the event loop holds tasks by weak references only
            ending.add_done_callback(_ENDING.discard)
            self.upload = None


_ENDING: set[asyncio.Task[None]] = set()
_CURRENT: ContextVar[Current] = ContextVar("current request")  # the session does not pass it on to the connector


class _Connector(aiohttp.TCPConnector):
    """Hands out connections that are watched, and to each request one only."""

    async def connect(self, *args: Any, **kwargs: Any) -> Any:
        """Get a connection for the request that the running task sends."""
        current = _CURRENT.get()
        if current.watch:
            # The session sends a GET or PUT again if a kept connection was lost. The server may have carried out the
            # first one, so whether to send it again is not for the session to decide.
            raise aiohttp.ServerDisconnectedError
        while True:
            connection = await super().connect(*args, **kwargs)
            transport: Any = connection.transport
            known = transport.get_protocol()
            if not isinstance(known, Watch):
                current.watch = Watch(transport)
            elif not _is_reusable(known, connection):
                connection.close()
                continue
            else:
                current.watch = known
            if current.attempt:
                current.attempt.connected = True
            return connection


def _is_reusable(watch: Watch, connection: Any) -> bool:
    """Whether a kept connection is free of leftovers: no unread bytes of a server, no unsent bytes of a request."""
    leftovers = watch.heard or watch.uploading or connection.transport.get_write_buffer_size()
    return not leftovers and not getattr(connection.protocol, "should_close", False)


async def _on_create_start(session: aiohttp.ClientSession, context: SimpleNamespace, params: object) -> None:
    context.trace_request_ctx.start_connecting()


async def _on_create_end(session: aiohttp.ClientSession, context: SimpleNamespace, params: object) -> None:
    context.trace_request_ctx.end_connecting()


async def _on_headers_sent(session: aiohttp.ClientSession, context: SimpleNamespace, params: object) -> None:
    context.trace_request_ctx.connected = True  # or a timeout would count as not sent, if ``connect`` were not called


_CONNECT_SIGNALS = aiohttp.TraceConfig()
_CONNECT_SIGNALS.on_connection_create_start.append(_on_create_start)
_CONNECT_SIGNALS.on_connection_create_end.append(_on_create_end)
_CONNECT_SIGNALS.on_request_headers_sent.append(_on_headers_sent)


def _refuse_odd_address(host: str) -> None:
    """Refuse short forms such as 127.1. Older versions of aiohttp look them up, newer ones refuse them."""
    if host.replace(".", "").isdecimal():
        ip_address(host)


def _headers(request: httpx.Request, proxy: Proxy | None, *, fresh: bool) -> CIMultiDict[str]:
    """The headers of a request. aiohttp adds those that say how long the body is."""
    headers = CIMultiDict((n.decode(), v.decode()) for n, v in request.headers.raw if n.lower() not in FRAMING)
    for name, value in DEFAULT_HEADERS.items():
        headers.setdefault(name, value)
    if fresh:
        headers.add("Connection", "close")
    if proxy and proxy.authorization and request.url.scheme == "http":
        headers["Proxy-Authorization"] = proxy.authorization  # aiohttp itself would send it once a connection only
    if (length := _streamed_length(request)) is not None:
        headers["Content-Length"] = length
    return headers


def _streamed_length(request: httpx.Request) -> str | None:
    body = body_of(request)
    if body is None:
        return declared_length(request)
    return str(len(body)) if len(body) > _LARGE else None


def _data(request: httpx.Request, current: Current) -> bytes | AsyncIterator[bytes] | None:
    body = body_of(request)
    if body is not None and len(body) <= _LARGE:
        return body or None
    current.upload = _upload(request.stream if body is None else _cut(body), current)
    return current.upload


async def _upload(pieces: Any, current: Current) -> AsyncGenerator[bytes, None]:
    """The pieces of a body. Until the last one is taken, the connection cannot serve another request."""
    if current.watch:
        current.watch.uploading = True
    async with aclosing(aiter(pieces)) as each:
        async for piece in each:
            if piece:  # an empty chunk would end the body
                yield piece
    if current.watch:
        current.watch.uploading = False


async def _cut(body: bytes) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(body), _LARGE):
        yield body[start : start + _LARGE]


async def _end(upload: AsyncGenerator[bytes, None]) -> None:
    with suppress(RuntimeError):  # it is running still, and is being cancelled by aiohttp
        await upload.aclose()

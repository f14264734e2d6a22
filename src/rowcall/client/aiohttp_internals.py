"""The fast sender: writes requests to aiohttp's connections directly, without aiohttp's session.

This is the only module that uses what aiohttp does not document: the connector's ``connect`` with a request that is
never sent, the connection's protocol, its parser and its stream writer. ``aiohttp_version`` says for which versions
that was tested; with any other version ``aiohttp_session`` is used instead and this module is not imported.

aiohttp's session does the same with three times the CPU: it makes a request, a response, a writer and a timer for each
call. The parsing of the reply and the framing of its body are aiohttp's here too.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import aiohttp
import httpx
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError, RawResponseMessage, StreamWriter
from aiohttp.tracing import Trace
from yarl import URL

from rowcall.client.attempt import Attempt, NotHTTP
from rowcall.client.name_lookup import NameResolver
from rowcall.client.proxies import Proxy
from rowcall.client.request_head import body_of, declared_length, head_of
from rowcall.client.sender import DNS_CACHE, KEEP_ALIVE, LONGEST_LINE
from rowcall.client.tls import TLSContext

_CACHED_ORIGINS = 1024
"""How many servers' addresses are cached in the form that aiohttp wants."""
_NO_TIMEOUTS = aiohttp.ClientTimeout()  # an attempt keeps its own deadlines
_NO_SIGNALS = aiohttp.TraceConfig()
_NO_SIGNALS.freeze()


class DirectSender:
    """Sends requests over aiohttp's pool of connections; a request that finds none free waits.

    Args:
        concurrency: how many connections there may be at once.
        verify: as httpx takes it: True for the usual authorities (certifi, or SSL_CERT_FILE), or a context.
    """

    def __init__(self, *, concurrency: int, verify: ssl.SSLContext | bool) -> None:
        self._concurrency = concurrency
        self._tls = TLSContext(verify)
        self._origin = lru_cache(_CACHED_ORIGINS)(self._make_origin)
        self._connectors: dict[bool, aiohttp.TCPConnector] = {}

    async def send(self, request: httpx.Request, proxy: Proxy | None, attempt: Attempt, *, fresh: bool) -> DirectReply:
        """Send a request and read the head of its reply.

        Raises:
            Exception: aiohttp's, for ``Attempt.within`` to classify.
        """
        head = head_of(request, proxy, keep=not fresh)
        connection = await self._connect(request.url, proxy, attempt, fresh=fresh)
        try:
            return await _talk(connection, request, head, attempt)
        except BaseException:
            connection.close()
            raise

    async def close(self) -> None:
        """Close all connections."""
        for connector in self._connectors.values():
            await connector.close()

    async def _connect(self, url: httpx.URL, proxy: Proxy | None, attempt: Attempt, *, fresh: bool) -> Connection:
        origin = self._origin(url.raw_scheme, url.netloc, proxy)
        traces: list[Trace] = [_ConnectTrace(attempt)]
        connection = await self._connector(fresh).connect(origin, traces, _NO_TIMEOUTS)
        while not attempt.connecting and _spoke_unasked(connection):
            connection.close()
            connection = await self._connector(fresh).connect(origin, traces, _NO_TIMEOUTS)
        attempt.connected = True
        return connection

    def _connector(self, fresh: bool) -> aiohttp.TCPConnector:
        if fresh not in self._connectors:
            options: dict[str, Any] = (
                {"ttl_dns_cache": 0, "force_close": True}
                if fresh
                else {"ttl_dns_cache": DNS_CACHE, "keepalive_timeout": KEEP_ALIVE}
            )
            self._connectors[fresh] = aiohttp.TCPConnector(limit=self._concurrency, resolver=NameResolver(), **options)
        return self._connectors[fresh]

    def _make_origin(self, scheme: bytes, netloc: bytes, proxy: Proxy | None) -> aiohttp.ClientRequest:
        """A server as the connector wants it described: by a request to it, which is never sent."""
        tunnel = scheme == b"https"
        authorized = {"Proxy-Authorization": proxy.authorization} if proxy and proxy.authorization and tunnel else None
        return aiohttp.ClientRequest(
            "GET",
            URL((b"%b://%b" % (scheme, netloc)).decode("ascii"), encoded=True),
            loop=asyncio.get_running_loop(),
            ssl=self._tls.context if tunnel or (proxy and proxy.url.startswith("https")) else True,
            proxy=URL(proxy.url) if proxy else None,
            proxy_headers=authorized,
        )


@dataclass(slots=True, eq=False)
class DirectReply:
    """A reply whose head has been read; see ``IncomingReply``.

    Attributes:
        upload: the task that still writes the body of the request; None if all of it was written at once.
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    raw_headers: tuple[tuple[bytes, bytes], ...]
    content: aiohttp.StreamReader
    connection: Connection
    upload: asyncio.Task[None] | None
    protocol: ResponseHandler | None = None

    def connection_lost(self) -> asyncio.Future[None] | None:
        """Done once the connection is closed; None if the whole body has already arrived."""
        if self.content.is_eof():
            return None
        self.protocol = self.connection.protocol  # the connection forgets it when it is given back
        return None if self.protocol is None else self.protocol.closed  # a protocol without replies is false

    def connection_error(self) -> Exception | None:
        """What ended the connection of a body that had not arrived at once."""
        error = self.protocol.exception() if self.protocol is not None else None
        return NotHTTP(error.message) if isinstance(error, HttpProcessingError) else _as_exception(error)

    def close(self) -> None:
        """Give the connection back if request and reply passed whole, otherwise close it. Safe to repeat."""
        if self._is_request_sent():
            _drop_parser(self.connection)
            self.connection.release()  # closes it if the reply is not complete
        else:
            self.connection.close()

    def _is_request_sent(self) -> bool:
        if self.upload and not self.upload.done():
            self.upload.cancel()
            return False
        transport = self.connection.transport
        return transport is not None and not transport.get_write_buffer_size()


class _ConnectTrace(Trace):
    """Tells an attempt when its connection is made. Overrides the methods that cost least, without any signal."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(None, _NO_SIGNALS, None)  # type: ignore[arg-type]  # there is no session
        self._attempt = attempt

    async def send_connection_create_start(self) -> None:
        self._attempt.start_connecting()

    async def send_connection_create_end(self) -> None:
        self._attempt.end_connecting()

    async def send_connection_reuseconn(self) -> None:
        """Nothing is to be said about a kept connection; the base class would look for signals."""


async def _talk(connection: Connection, request: httpx.Request, head: bytes, attempt: Attempt) -> DirectReply:
    """Send a request and read the head of the reply. If that fails, the caller closes the connection."""
    protocol = connection.protocol
    assert protocol is not None
    protocol.set_response_params(
        skip_payload=request.method == "HEAD",
        read_until_eof=True,
        auto_decompress=False,
        max_line_size=LONGEST_LINE,
        max_field_size=LONGEST_LINE,
    )
    upload = _write(protocol, request, head)
    try:
        message, content = await _final_head(protocol, attempt)
    except BaseException:
        if upload:
            upload.cancel()
        raise
    return DirectReply(
        message.code, message.reason or "", message.headers, message.raw_headers, content, connection, upload
    )


async def _final_head(protocol: ResponseHandler, attempt: Attempt) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    """The head of the final reply; interim replies such as 103 are skipped (RFC 9110, 15.2)."""
    try:
        while True:
            message, content = await protocol.read()
            if not 100 <= message.code < 200 or message.code == 101:
                return message, content
    except aiohttp.ServerDisconnectedError as error:
        attempt.reply_began = not isinstance(error.message, str)  # aiohttp puts the part of a head here that came
        raise
    except HttpProcessingError as error:
        raise NotHTTP(error.message) from None


def _write(protocol: ResponseHandler, request: httpx.Request, head: bytes) -> asyncio.Task[None] | None:
    """Write a request.

    A body that is produced while it is sent is written by a task, beside the reading of the reply: a server may answer,
    and refuse, before it has all of it.
    """
    body = body_of(request)
    assert protocol.transport is not None
    protocol.transport.write(head + (body or b""))
    return asyncio.create_task(_upload(protocol, request)) if body is None else None


async def _upload(protocol: ResponseHandler, request: httpx.Request) -> None:
    writer = StreamWriter(protocol, asyncio.get_running_loop())
    if declared_length(request) is None:
        writer.enable_chunking()
    try:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        async for piece in request.stream:
            if piece:  # an empty chunk would end the body
                await writer.write(piece)
        await writer.write_eof()
    except Exception as error:  # noqa: BLE001  raised where the reply is read
        protocol.set_exception(aiohttp.ClientConnectionError("the body could not be produced"), error)


def _drop_parser(connection: Connection) -> None:
    """Take the parser off a connection that goes back to the pool.

    With a parser, aiohttp would parse whatever the server sends on the idle connection, and the next request would
    take it for its own reply. Without one, aiohttp stores the bytes and marks the connection as not reusable.
    """
    if connection.protocol is not None:
        connection.protocol._parser = None  # noqa: SLF001  there is no public way


def _spoke_unasked(connection: Connection) -> bool:
    """Whether the server sent something on a kept connection after its last reply."""
    return connection.protocol is not None and connection.protocol.should_close


def _as_exception(error: BaseException | None) -> Exception | None:
    return error if isinstance(error, Exception) else None

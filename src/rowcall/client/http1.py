"""One HTTP/1.1 request written to a connection, and the head of its reply read (RFC 9112).

aiohttp's session does the same with three times the CPU: it makes a request, a response, a writer and a timer for each.
The parsing of the reply and the framing of its body are aiohttp's here too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import aiohttp
import httpx
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage, StreamWriter

from rowcall.client.proxies import Proxy

DEFAULT_HEADERS = {"User-Agent": "rowcall", "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
"""Sent where a request does not say otherwise."""
LONGEST_LINE = 2**16
"""Bytes of a line in the head of a reply, at most."""
_HEADS = 128
"""Different heads that are kept ready."""

Header = tuple[bytes, bytes]

_USUAL = [(name.lower().encode(), f"{name}: {value}".encode()) for name, value in DEFAULT_HEADERS.items()]
_FRAMING = (b"content-length", b"transfer-encoding")
_METHOD = re.compile(r"[-!#$%&'*+.^_`|~\w]+", re.ASCII)
_CONTROLS = bytes({*range(32), 127} - {ord("\t")})


@dataclass(slots=True, eq=False)
class Incoming:
    """A reply whose head was read; its body comes by the connection.

    Attributes:
        upload: still writes the body of the request; None where all of that was written at once.
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    raw_headers: tuple[Header, ...]
    content: aiohttp.StreamReader
    connection: Connection
    upload: asyncio.Task[None] | None

    def close(self) -> None:
        """Let the connection go: kept where request and reply passed whole, closed otherwise. Safe to repeat."""
        if self._sent():
            _expect_nothing(self.connection)
            self.connection.release()  # which closes it where something of the reply is missing
        else:
            self.connection.close()

    def _sent(self) -> bool:
        if self.upload and not self.upload.done():
            self.upload.cancel()
            return False
        transport = self.connection.transport
        return transport is not None and not transport.get_write_buffer_size()


def head_of(request: httpx.Request, proxy: Proxy | None, *, keep: bool) -> bytes:
    """The head of a request.

    Args:
        request: its headers go out as they are, but for those that say how long its body is.
        proxy: it goes through that.
        keep: the connection may serve another request.

    Raises:
        ValueError: it breaks HTTP.
    """
    headers = tuple(header for header in request.headers.raw if header[0].lower() not in _FRAMING)
    return _begun(request.method, request.url.raw_scheme, _target(request.url, proxy), headers, keep) + b"\r\n".join(
        [*_authorizing(request, proxy), *_framing(request), b"", b""]
    )


@lru_cache(_HEADS)
def _begun(method: str, scheme: bytes, target: bytes, headers: tuple[Header, ...], keep: bool) -> bytes:
    """The part of a head that is the same for all records of a kind, as a rule."""
    if scheme not in (b"http", b"https") or not _METHOD.fullmatch(method):
        raise ValueError("no scheme or method of HTTP")
    names = {name.lower() for name, _ in headers}
    lines = [
        b"%b %b HTTP/1.1" % (method.encode(), target),
        *(b"%b: %b" % header for header in headers),
        *(line for name, line in _USUAL if name not in names),
        *(() if keep else (b"Connection: close",)),
    ]
    _refuse_broken(b"".join(lines))
    return b"\r\n".join([*lines, b""])


def _refuse_broken(text: bytes) -> None:
    text.decode()
    if len(text.translate(None, _CONTROLS)) < len(text):
        raise ValueError("a control character in a header")


def _target(url: httpx.URL, proxy: Proxy | None) -> bytes:
    """The path; a proxy that passes a request on wants the whole URL (RFC 9112, 3.2.2)."""
    return b"http://%b%b" % (url.netloc, url.raw_path) if proxy and url.scheme == "http" else url.raw_path


def _authorizing(request: httpx.Request, proxy: Proxy | None) -> Iterator[bytes]:
    """What a proxy that passes a request on asks for; a tunnel has asked when it was made."""
    if proxy and proxy.authorization and request.url.scheme == "http":
        yield b"Proxy-Authorization: " + proxy.authorization.encode()


def _framing(request: httpx.Request) -> Iterator[bytes]:
    """How long the body is (RFC 9112, 6): what is known is said, also where it is nothing but was said."""
    content = _content(request)
    if content is None:
        yield _length_of(request) or b"Transfer-Encoding: chunked"
    elif content or "content-length" in request.headers:
        yield b"Content-Length: %d" % len(content)


def _length_of(request: httpx.Request) -> bytes:
    length = request.headers.get("content-length", "")
    return b"Content-Length: " + length.encode() if length.isdecimal() else b""


def _content(request: httpx.Request) -> bytes | None:
    """The whole body; None where it is made while it is sent. ``request.content`` is not there after a redirect."""
    return b"".join(request.stream) if isinstance(request.stream, httpx.ByteStream) else None


async def talk(connection: Connection, request: httpx.Request, head: bytes) -> Incoming:
    """Send a request and read the head of the reply; where that fails the connection is the caller's to close.

    Raises:
        Exception: aiohttp's, for ``Attempt.within`` to class.
    """
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
        message, content = await _final(protocol)
    except BaseException:
        if upload:
            upload.cancel()
        raise
    return Incoming(
        message.code, message.reason or "", message.headers, message.raw_headers, content, connection, upload
    )


def _expect_nothing(connection: Connection) -> None:
    """Let what comes before the next request be seen as what it is: without a parser aiohttp keeps it apart."""
    if connection.protocol is not None:
        connection.protocol._parser = None  # noqa: SLF001  there is no public way; the version is pinned


async def _final(protocol: ResponseHandler) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    """The head of the reply that others only announce (RFC 9110, 15.2)."""
    while True:
        message, content = await protocol.read()
        if not 100 <= message.code < 200 or message.code == 101:
            return message, content


def _write(protocol: ResponseHandler, request: httpx.Request, head: bytes) -> asyncio.Task[None] | None:
    """Write a request; a body that is made while it is sent is written beside the reading of the reply."""
    content = _content(request)
    assert protocol.transport is not None
    protocol.transport.write(head + (content or b""))
    return asyncio.create_task(_upload(protocol, request)) if content is None else None


async def _upload(protocol: ResponseHandler, request: httpx.Request) -> None:
    writer = StreamWriter(protocol, asyncio.get_running_loop())
    if not _length_of(request):
        writer.enable_chunking()
    try:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        async for piece in request.stream:
            if piece:
                await writer.write(piece)
        await writer.write_eof()
    except Exception as error:  # noqa: BLE001  whoever reads the reply is told
        protocol.set_exception(aiohttp.ClientConnectionError("the body could not be made"), error)

"""The head of an HTTP/1.1 request (RFC 9112): request line, headers, and how long the body is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import httpx

from rowcall.client.proxies import Proxy

DEFAULT_HEADERS = {"User-Agent": "rowcall", "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
"""Headers that are sent unless the request sets them itself."""
FRAMING = (b"content-length", b"transfer-encoding")
"""Headers that say where the body ends. They are always derived from the body, so that they cannot contradict it."""
CACHED_HEADS = 128
"""How many different heads are cached."""

Header = tuple[bytes, bytes]

_DEFAULT_LINES = [(name.lower().encode(), f"{name}: {value}".encode()) for name, value in DEFAULT_HEADERS.items()]
_METHOD = re.compile(r"[-!#$%&'*+.^_`|~\w]+", re.ASCII)
_CONTROLS = bytes({*range(32), 127} - {ord("\t")})


def head_of(request: httpx.Request, proxy: Proxy | None, *, keep: bool) -> bytes:
    """The head of a request as bytes, up to and including the empty line.

    Args:
        request: its headers go out unchanged, except for those that say how long the body is.
        proxy: the proxy it goes through, if any.
        keep: whether the connection may serve another request afterwards.

    Raises:
        ValueError: the request is not valid HTTP.
    """
    headers = tuple(header for header in request.headers.raw if header[0].lower() not in FRAMING)
    start = _head_start(request.method, request.url.raw_scheme, _target(request.url, proxy), headers, keep)
    rest = [*_proxy_authorization(request, proxy), *_framing(request)]
    return start + b"\r\n".join([*rest, b"", b""])


def body_of(request: httpx.Request) -> bytes | None:
    """The whole body, or None if it is produced while it is sent.

    ``request.content`` would be shorter, but httpx does not set it on the request that follows a redirect.
    """
    return b"".join(request.stream) if isinstance(request.stream, httpx.ByteStream) else None


def declared_length(request: httpx.Request) -> str | None:
    """The Content-Length that a request declares for a streamed body, if it is a number."""
    length: str = request.headers.get("content-length", "")
    return length if length.isdecimal() else None


@lru_cache(CACHED_HEADS)  # the records of a kind differ in their bodies only, as a rule
def _head_start(method: str, scheme: bytes, target: bytes, headers: tuple[Header, ...], keep: bool) -> bytes:
    if scheme not in (b"http", b"https") or not _METHOD.fullmatch(method):
        raise ValueError("the scheme or the method is not HTTP")
    names = {name.lower() for name, _ in headers}
    lines = [
        b"%b %b HTTP/1.1" % (method.encode(), target),
        *(b"%b: %b" % header for header in headers),
        *(line for name, line in _DEFAULT_LINES if name not in names),
        *(() if keep else (b"Connection: close",)),
    ]
    _refuse_control_characters(b"".join(lines))
    return b"\r\n".join([*lines, b""])


def _refuse_control_characters(text: bytes) -> None:
    """Refuse line breaks above all: with one, a value from a record could add a header or a whole second request."""
    text.decode()  # UnicodeDecodeError is a ValueError
    if len(text.translate(None, _CONTROLS)) < len(text):
        raise ValueError("a control character in a header")


def _target(url: httpx.URL, proxy: Proxy | None) -> bytes:
    """The path; a proxy that forwards plain requests needs the whole URL (RFC 9112, 3.2.2)."""
    return b"http://%b%b" % (url.netloc, url.raw_path) if proxy and url.scheme == "http" else url.raw_path


def _proxy_authorization(request: httpx.Request, proxy: Proxy | None) -> Iterator[bytes]:
    """Credentials for a proxy that forwards plain requests; a tunnel has sent them with its CONNECT."""
    if proxy and proxy.authorization and request.url.scheme == "http":
        yield b"Proxy-Authorization: " + proxy.authorization.encode()


def _framing(request: httpx.Request) -> Iterator[bytes]:
    """How long the body is (RFC 9112, 6). A length of 0 is said only where httpx says it, as for a POST."""
    body = body_of(request)
    if body is None:
        length = declared_length(request)
        yield b"Content-Length: " + length.encode() if length else b"Transfer-Encoding: chunked"
    elif body or "content-length" in request.headers:
        yield b"Content-Length: %d" % len(body)

"""One attempt: its deadlines, what is known about its connection, and which error a failure becomes."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import ssl
import zlib
from collections.abc import Awaitable
from typing import TypeVar

import aiohttp
import httpx

from rowcall.client import wire_errors
from rowcall.client.wire_errors import WireError

T = TypeVar("T")


class NotHTTP(Exception):
    """The other side sent something that is not HTTP.

    aiohttp's own class for this (``HttpProcessingError``) is not documented, and aiohttp wraps it in some places only.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Attempt:
    """Sending one request, once.

    Args:
        request: the request that is sent.
        total: seconds until the whole reply must have arrived; None for no limit.
        connect: seconds for a new connection, including name look-up and TLS. They count towards ``total``.
            None for no limit of its own.

    Attributes:
        connecting: a new connection was begun, rather than a kept one taken.
        connected: there is a connection, so that the request may have left.
        reply_began: some bytes of a reply arrived.
        answered: the head of the reply arrived.
    """

    __slots__ = (
        "_connect",
        "_deadline",
        "_request",
        "_timer",
        "_total",
        "answered",
        "connected",
        "connecting",
        "reply_began",
    )

    def __init__(self, request: httpx.Request, total: float | None, connect: float | None) -> None:
        self._request = request
        self._total = total
        self._connect = connect
        self._deadline = _after(total)
        self._timer = asyncio.timeout(None)
        self.connecting = False
        self.connected = False
        self.reply_began = False
        self.answered = False

    async def within(self, work: Awaitable[T]) -> T:
        """Await one step of the attempt.

        Raises:
            WireError: the step failed, or the deadline passed.
        """
        try:
            async with asyncio.timeout_at(self._deadline) as self._timer:
                return await work
        except _FAILURES as error:
            raise self._exact(error) from None  # aiohttp's own text may contain the query

    def start_connecting(self) -> None:
        """A new connection is being made: from now on the connect timeout counts too."""
        self.connecting = True
        limits = [moment for moment in (self._deadline, _after(self._connect)) if moment is not None]
        self._timer.reschedule(min(limits, default=None))

    def end_connecting(self) -> None:
        """The connection is made: from now on only the deadline counts."""
        self._timer.reschedule(self._deadline)

    def fail(self, kind: type[WireError], detail: str = "") -> WireError:
        """An error of this attempt, to be raised."""
        return kind(self._request, detail)

    def _exact(self, error: Exception) -> WireError:
        if isinstance(error, TimeoutError) and error.errno is None:  # ETIMEDOUT is a TimeoutError too
            return self._timed_out()
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return self.fail(_refused_by_proxy(error.status), f"HTTP {error.status}")
        if isinstance(error, aiohttp.ClientConnectorError):
            return self.fail(*_not_connected(error))
        if isinstance(error, _UNSENDABLE):
            return self.fail(wire_errors.Unsendable, str(error) if type(error) is ValueError else type(error).__name__)
        if isinstance(error, _GARBLED) and not _is_cut(error):
            return self.fail(wire_errors.Garbled, _detail(error))
        return self.fail(self._lost(error), _detail(error))

    def _timed_out(self) -> WireError:
        if self.connecting and not self.connected:
            return self.fail(wire_errors.ConnectTimedOut, _shorter(self._connect, self._total))
        return self.fail(wire_errors.TimedOut if self.connected else wire_errors.PoolTimedOut, _shorter(self._total))

    def _lost(self, error: Exception) -> type[WireError]:
        """The class of a connection that was lost.

        A server may close a kept connection just as a request is written to it. It has not read the request then, so
        a loss before the first byte of the reply costs the record nothing if the connection was not new.
        """
        if self.answered:
            return wire_errors.BodyCut
        if self.connected and not self.connecting and not self.reply_began:
            return wire_errors.StaleConnection
        return wire_errors.ClosedEarly if isinstance(error, aiohttp.ServerDisconnectedError) else wire_errors.Reset


def _after(seconds: float | None) -> float | None:
    return None if seconds is None else asyncio.get_running_loop().time() + seconds


def _shorter(*limits: float | None) -> str:
    return f"{min(limit for limit in limits if limit is not None):g} s"


def _refused_by_proxy(status: int) -> type[WireError]:
    """The class of a proxy's own answer to CONNECT, by its status. The request itself was not sent."""
    if status == 407:
        return wire_errors.ProxyAuth
    return wire_errors.ProxyFailed if status >= 500 or status == 429 else wire_errors.ProxyRefused


def _not_connected(error: aiohttp.ClientConnectorError) -> tuple[type[WireError], str]:
    """The class of a failed connect, and its cause in words. If it was the proxy that failed, they name it."""
    kind, words = _by_cause(error)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        words = f"by the proxy {error.host}:{error.port}: {words}"
    return kind, words


def _by_cause(error: aiohttp.ClientConnectorError) -> tuple[type[WireError], str]:
    """The class of a failed connect: a certificate's by OpenSSL's verify codes, others by errno."""
    cause = getattr(error, "certificate_error", None) or error.os_error  # older versions lack os_error here
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _CERTIFICATE.get(cause.verify_code, wire_errors.TLSUntrusted), cause.verify_message
    if isinstance(cause, _BROKEN):
        return wire_errors.ConnectBroken, cause.strerror or type(cause).__name__
    if isinstance(cause, ssl.SSLError):
        return wire_errors.TLSFailed, cause.reason or ""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return wire_errors.NameNotFound, cause.strerror or ""
    return _CONNECT.get(cause.errno or 0, wire_errors.CannotConnect), cause.strerror or type(cause).__name__


def _is_cut(error: Exception) -> bool:
    """Whether a body's error is the end of the connection rather than bad data."""
    return isinstance(error, aiohttp.ClientPayloadError) and type(error.__cause__).__name__ in _CUT


def _detail(error: Exception) -> str:
    """The cause in a few words: aiohttp's own, without what it quotes from the URL or the reply."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    message = getattr(error.__cause__ or error, "message", None)
    return (isinstance(message, str) and re.split("[:\n]", message)[0]) or type(error).__name__


_UNSENDABLE = (ValueError, aiohttp.NonHttpUrlClientError)

_BROKEN = (
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
    BrokenPipeError,
    ConnectionAbortedError,
    ConnectionResetError,
)

_GARBLED = (aiohttp.ClientResponseError, aiohttp.ClientPayloadError, NotHTTP, zlib.error)

_CUT = ("ContentLengthError", "TransferEncodingError")  # by name: aiohttp does not document these classes

_FAILURES = (aiohttp.ClientError, NotHTTP, zlib.error, OSError, ValueError)

_CERTIFICATE: dict[int, type[WireError]] = {
    9: wire_errors.TLSExpired,  # X509_V_ERR_CERT_NOT_YET_VALID
    10: wire_errors.TLSExpired,  # X509_V_ERR_CERT_HAS_EXPIRED
    62: wire_errors.TLSWrongHost,  # X509_V_ERR_HOSTNAME_MISMATCH
    64: wire_errors.TLSWrongHost,  # X509_V_ERR_IP_ADDRESS_MISMATCH
}

_CONNECT: dict[int, type[WireError]] = {
    errno.ECONNREFUSED: wire_errors.Refused,
    errno.ENETUNREACH: wire_errors.NoRoute,
    errno.EHOSTUNREACH: wire_errors.NoRoute,
    errno.ENETDOWN: wire_errors.NoRoute,
    errno.EHOSTDOWN: wire_errors.NoRoute,
    errno.ETIMEDOUT: wire_errors.ConnectTimedOut,
    errno.EMFILE: wire_errors.TooManyFiles,
    errno.ENFILE: wire_errors.TooManyFiles,
}

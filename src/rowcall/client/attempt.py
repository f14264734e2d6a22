"""One attempt: its deadlines, what is known of its connection, and which error a failure then is."""

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
from aiohttp import http_exceptions
from aiohttp.tracing import Trace

from rowcall.client import wire_errors
from rowcall.client.wire_errors import WireError

T = TypeVar("T")


class Attempt:
    """The sending of one request, once.

    Args:
        request: what is sent.
        total: seconds until all of the reply must be there; None for no end.
        connect: seconds for a new connection, look-up and TLS included, out of ``total``; None for no end.
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
    )

    def __init__(self, request: httpx.Request, total: float | None, connect: float | None) -> None:
        self._request = request
        self._total = total
        self._connect = connect
        self._deadline = _after(total)
        self._timer = asyncio.timeout(None)
        self.connecting = False
        self.connected = False
        self.answered = False

    async def within(self, work: Awaitable[T]) -> T:
        """Await a step of the attempt.

        Raises:
            WireError: it failed, or the deadline passed.
        """
        try:
            async with asyncio.timeout_at(self._deadline) as self._timer:
                return await work
        except _FAILURES as error:
            raise self._exact(error) from None  # aiohttp's own text may hold the query

    def start_connecting(self) -> None:
        """A new connection is being made: the connect timeout runs."""
        self.connecting = True
        limits = [moment for moment in (self._deadline, _after(self._connect)) if moment is not None]
        self._timer.reschedule(min(limits, default=None))

    def end_connecting(self) -> None:
        """It stands: only the deadline counts."""
        self._timer.reschedule(self._deadline)

    @property
    def reused(self) -> bool:
        """A kept connection is used."""
        return self.connected and not self.connecting

    def fail(self, kind: type[WireError], detail: str = "") -> WireError:
        """The error of this attempt, to be raised."""
        return kind(self._request, detail)

    def _exact(self, error: Exception) -> WireError:
        if isinstance(error, TimeoutError) and error.errno is None:
            return self._timed_out()
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return self.fail(_by_proxy(error.status), f"HTTP {error.status}")
        if isinstance(error, aiohttp.ClientConnectorError):
            return self.fail(*_unconnected(error))
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
        if self.answered:
            return wire_errors.BodyCut
        if isinstance(error, aiohttp.ServerDisconnectedError):
            began = not isinstance(error.message, str)
            return wire_errors.StaleConnection if self.reused and not began else wire_errors.ClosedEarly
        return wire_errors.StaleConnection if self.reused else wire_errors.Reset


class Told(Trace):
    """Tells an attempt about its connection, and nobody about anything else."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(None, _UNTOLD, None)  # type: ignore[arg-type]  # there is no session
        self._attempt = attempt

    async def send_connection_create_start(self) -> None:
        """A new connection is being made."""
        self._attempt.start_connecting()

    async def send_connection_create_end(self) -> None:
        """It stands."""
        self._attempt.end_connecting()

    async def send_connection_reuseconn(self) -> None:
        """A kept one is used, as most are."""


_UNTOLD = aiohttp.TraceConfig()
_UNTOLD.freeze()


def _after(seconds: float | None) -> float | None:
    return None if seconds is None else asyncio.get_running_loop().time() + seconds


def _shorter(*limits: float | None) -> str:
    return f"{min(limit for limit in limits if limit is not None):g} s"


def _by_proxy(status: int) -> type[WireError]:
    """The class of a proxy's own answer to CONNECT, by its status: nothing was sent through it."""
    if status == 407:
        return wire_errors.ProxyAuth
    return wire_errors.ProxyFailed if status >= 500 or status == 429 else wire_errors.ProxyRefused


def _unconnected(error: aiohttp.ClientConnectorError) -> tuple[type[WireError], str]:
    """The class of a failed connect, and its words; a proxy that failed is named."""
    kind, words = _by_cause(error)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        words = f"by the proxy {error.host}:{error.port}: {words}"
    return kind, words


def _by_cause(error: aiohttp.ClientConnectorError) -> tuple[type[WireError], str]:
    """A certificate's by OpenSSL's verify codes, others by errno."""
    cause = error.os_error
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
    """Whether a body's error is the end of the connection rather than nonsense."""
    return isinstance(error, aiohttp.ClientPayloadError) and isinstance(error.__cause__, _CUT)


def _detail(error: Exception) -> str:
    """The cause in a few words: aiohttp's own, without what it quotes of the URL or the reply."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    told = getattr(error.__cause__ or error, "message", None)
    return (isinstance(told, str) and re.split("[:\n]", told)[0]) or type(error).__name__


_UNSENDABLE = (ValueError, aiohttp.NonHttpUrlClientError)

_BROKEN = (
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
    BrokenPipeError,
    ConnectionAbortedError,
    ConnectionResetError,
)

_GARBLED = (aiohttp.ClientResponseError, aiohttp.ClientPayloadError, http_exceptions.HttpProcessingError, zlib.error)

_CUT = (http_exceptions.ContentLengthError, http_exceptions.TransferEncodingError)

_FAILURES = (aiohttp.ClientError, http_exceptions.HttpProcessingError, zlib.error, OSError, ValueError)

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

"""What can go wrong on the wire: one class for each kind of failure.

    CallFailed
    '-- WireError (httpx.TransportError)
        |-- NOT_SENT    Refused, NameNotFound, NoRoute, TooManyFiles, ConnectBroken, CannotConnect,
        |               ConnectTimedOut, PoolTimedOut, ProxyFailed
        |-- SETUP       TLSUntrusted, TLSExpired, TLSWrongHost, TLSFailed, ProxyAuth, ProxyRefused
        |-- REUSED      StaleConnection
        |-- MAYBE_SENT  Reset, ClosedEarly, BodyCut, Garbled, TimedOut
        '-- RECORD      ReplyTooLarge, Unsendable

Each is also the matching httpx exception, so that ``except httpx.ConnectError`` works. A message is one line with
scheme, host, port and path; it never contains the query, credentials or headers.
"""

from __future__ import annotations

from typing import ClassVar

import httpx

from rowcall.model.outcome import Classed, Failure, FailureClass


class CallFailed(Classed):
    """A request that brought no answer. ``failure`` says why, and whether the record is charged."""


class WireError(CallFailed, httpx.TransportError):
    """A request without a whole reply.

    Attributes:
        cls: whether the record is charged for it.
        reason: a stable code.
        what: the failure in plain words.
        remedy: what to do about it, if anything.
    """

    cls: ClassVar[FailureClass] = FailureClass.MAYBE_SENT
    reason: ClassVar[str] = "connection_lost"
    what: ClassVar[str] = "the connection was lost"
    remedy: ClassVar[str] = ""

    def __init__(self, request: httpx.Request, detail: str = "") -> None:
        message = f"{self.what}: {place_of(request.url)}"
        message += f" ({detail})" if detail else ""
        super().__init__(f"{message}; {self.remedy}" if self.remedy else message, request=request)

    @property
    def failure(self) -> Failure:
        """The failure as an outcome."""
        return Failure(self.cls, self.reason, str(self))


class CannotConnect(WireError, httpx.ConnectError):
    """There is no connection, for a cause that has no class of its own."""

    cls = FailureClass.NOT_SENT
    reason = "cannot_connect"
    what = "cannot connect"


class Refused(CannotConnect):
    """Nothing listens on that port."""

    reason = "refused"
    what = "connection refused"


class NameNotFound(CannotConnect):
    """The host name has no address, or no name server answered."""

    reason = "name_not_found"
    what = "host name not found"


class NoRoute(CannotConnect):
    """The network or the host cannot be reached."""

    reason = "no_route"
    what = "no route to the host"


class TooManyFiles(CannotConnect):
    """The process or the system has no file descriptor left."""

    reason = "too_many_files"
    what = "too many open files"


class ConnectBroken(CannotConnect):
    """The connection was closed or reset while it was made, usually during the TLS handshake."""

    reason = "connect_broken"
    what = "connection lost while connecting"


class ConnectTimedOut(WireError, httpx.ConnectTimeout):
    """No connection within the connect timeout; name look-up and TLS handshake count."""

    cls = FailureClass.NOT_SENT
    reason = "connect_timeout"
    what = "no connection in time"


class PoolTimedOut(WireError, httpx.PoolTimeout):
    """All connections were in use until the deadline."""

    cls = FailureClass.NOT_SENT
    reason = "pool_timeout"
    what = "no free connection in time"


class TLSFailed(WireError, httpx.ConnectError):
    """The other side refused the TLS handshake, or does not speak TLS."""

    cls = FailureClass.SETUP
    reason = "tls_failed"
    what = "TLS handshake failed"


class TLSUntrusted(TLSFailed):
    """The certificate is not signed by an authority that is trusted here."""

    reason = "tls_untrusted"
    what = "certificate not trusted"
    remedy = "if it should be: [api] ca_file names the authority that signed it"


class TLSExpired(TLSFailed):
    """The certificate is out of date, or not valid yet by this machine's clock."""

    reason = "tls_expired"
    what = "certificate expired or not yet valid"


class TLSWrongHost(TLSFailed):
    """The certificate is for another host."""

    reason = "tls_wrong_host"
    what = "certificate is for another host"


class ProxyAuth(WireError, httpx.ProxyError):
    """The proxy asks for a user and password, or refuses the ones it got."""

    cls = FailureClass.SETUP
    reason = "proxy_auth"
    what = "the proxy asks for a password"
    remedy = "put them into its URL: http://user:password@host:port, in HTTPS_PROXY or in [api] proxy = { env = ... }"


class ProxyRefused(WireError, httpx.ProxyError):
    """The proxy does not let requests through to that host."""

    cls = FailureClass.SETUP
    reason = "proxy_refused"
    what = "the proxy refuses to connect"


class ProxyFailed(WireError, httpx.ProxyError):
    """The proxy could not reach the host."""

    cls = FailureClass.NOT_SENT
    reason = "proxy_failed"
    what = "the proxy cannot connect"


class StaleConnection(WireError, httpx.RemoteProtocolError):
    """A kept connection was closed or reset before the first byte of the reply."""

    cls = FailureClass.REUSED
    reason = "stale_connection"
    what = "kept connection closed before the reply"


class Reset(WireError, httpx.ReadError):
    """The connection was reset before the reply."""

    reason = "reset"
    what = "connection reset before the reply"


class ClosedEarly(WireError, httpx.RemoteProtocolError):
    """The connection was closed before the reply, or inside its head."""

    reason = "closed_early"
    what = "connection closed before the reply"


class BodyCut(WireError, httpx.ReadError):
    """The connection was closed or reset inside the reply's body."""

    reason = "body_cut"
    what = "reply cut off"


class Garbled(WireError, httpx.RemoteProtocolError):
    """The reply is not HTTP, or its body cannot be decoded."""

    reason = "garbled"
    what = "garbled reply"


class TimedOut(WireError, httpx.ReadTimeout):
    """No whole reply by the deadline of the attempt."""

    reason = "timeout"
    what = "no whole reply in time"


class ReplyTooLarge(WireError, httpx.ReadError):
    """The decoded body exceeds the size limit. Sending the request again would bring the same."""

    cls = FailureClass.RECORD
    reason = "reply_too_large"
    what = "reply too large"


class Unsendable(WireError, httpx.LocalProtocolError):
    """The request is not valid HTTP: for example, a header contains a line break, or the URL has no host."""

    cls = FailureClass.RECORD
    reason = "unsendable"
    what = "not a valid HTTP request"


def failure_of(error: BaseException) -> Failure:
    """The failure that an exception means. An unknown exception is charged to the record as ``unexpected_error``."""
    if isinstance(error, WireError):
        return error.failure
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
        return Failure(FailureClass.NOT_SENT, CannotConnect.reason, _described(error))
    if isinstance(error, httpx.TransportError):
        return Failure(FailureClass.MAYBE_SENT, WireError.reason, _described(error))
    return Failure(FailureClass.RECORD, "unexpected_error", type(error).__name__)


def place_of(url: httpx.URL) -> str:
    """Scheme, host, port and path of a URL, without credentials and query."""
    path = url.raw_path.partition(b"?")[0].decode("ascii")
    port = url.port or (443 if url.scheme == "https" else 80)
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}:{port}{path}"


def _described(error: httpx.TransportError) -> str:
    """Describes another transport's exception by class and target, because its text may contain secrets."""
    try:
        return f"{type(error).__name__}: {place_of(error.request.url)}"
    except RuntimeError:  # it has no request
        return type(error).__name__

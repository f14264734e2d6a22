"""A reply's body: decoded, counted, and known to be whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import httpx

from rowcall.client.attempt import Attempt
from rowcall.client.content_coding import Plain, decoder_for
from rowcall.client.http1 import Incoming
from rowcall.client.wire_errors import BodyCut, Garbled, ReplyTooLarge

RawHeaders = list[tuple[bytes, bytes]]


class Body(httpx.AsyncByteStream):
    """The body of a reply whose head was read.

    Two things that aiohttp 3.14 does not tell are found here: a reset that ends a body without a length (taken for
    its end), and nonsense in a later chunk (the reader would wait until its deadline).

    Args:
        reply: the reply.
        attempt: whose deadline holds for the body too.
        max_reply: decoded bytes, at most.

    Attributes:
        headers: the reply's, without those that no longer fit a decoded body.
    """

    def __init__(self, reply: Incoming, attempt: Attempt, max_reply: int) -> None:
        coding = reply.headers.get("Content-Encoding", "")
        decoder = decoder_for(coding)
        self._decoder = decoder or Plain()
        self.headers = list(reply.raw_headers)
        if coding and decoder:
            self.headers = _without(self.headers, b"content-encoding", b"content-length")
        self._reply = reply
        self._attempt = attempt
        self._max_reply = max_reply
        self._size = 0
        self._protocol = None if reply.content.is_eof() else reply.connection.protocol  # None: all of it is here
        self._closed = self._protocol.closed if self._protocol is not None else None
        if self._closed:
            self._closed.add_done_callback(self._on_lost)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while piece := await self._attempt.within(self.read()):
                yield piece
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Let the connection go."""
        if self._closed:
            self._closed.remove_done_callback(self._on_lost)
        self._reply.close()

    async def read(self) -> bytes:
        """The next piece; empty at the end.

        Raises:
            WireError: too large, cut off, or its compression is broken off.
            Exception: aiohttp's and zlib's, for ``Attempt.within`` to class.
        """
        while not (piece := self._decoder.take()):
            raw = await self._reply.content.readany()
            if not raw:
                self._check_end()
                return b""
            self._decoder.feed(raw)
        self._count(piece)
        return piece

    def _count(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_reply:
            raise self._attempt.fail(ReplyTooLarge, f"over {self._max_reply:,} bytes")

    def _check_end(self) -> None:
        if _ends_with_connection(self._reply) and isinstance(self._protocol_error(), OSError):
            raise self._attempt.fail(BodyCut, "reset")
        if not self._decoder.whole():
            raise self._attempt.fail(Garbled, "the compressed body has no end")

    def _on_lost(self, closed: asyncio.Future[None]) -> None:
        """Wake the reader of a body that ended with the connection, where aiohttp does not."""
        closed.exception()
        content = self._reply.content
        if not content.is_eof() and content.exception() is None:
            content.set_exception(self._protocol_error() or aiohttp.ClientPayloadError())

    def _protocol_error(self) -> BaseException | None:
        return self._protocol.exception() if self._protocol is not None else None


def _ends_with_connection(reply: Incoming) -> bool:
    """Whether only the end of the connection marks the end of the body (RFC 9112, 6.3)."""
    return "Content-Length" not in reply.headers and "Transfer-Encoding" not in reply.headers


def _without(headers: RawHeaders, *names: bytes) -> RawHeaders:
    return [(name, value) for name, value in headers if name.lower() not in names]

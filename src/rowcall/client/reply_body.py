"""The body of a reply: decoded, limited in size, and known to be complete."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import httpx

from rowcall.client.attempt import Attempt, NotHTTP
from rowcall.client.content_coding import Plain, decoder_for
from rowcall.client.sender import IncomingReply
from rowcall.client.wire_errors import BodyCut, Garbled, ReplyTooLarge

RawHeaders = list[tuple[bytes, bytes]]


class Body(httpx.AsyncByteStream):
    """The body of a reply whose head has been read.

    Two things are found here that aiohttp does not report. A reset that ends a body without a length: aiohttp takes it
    for the regular end. And bad data in a later chunk: aiohttp closes the connection, and the reader would wait until
    its deadline.

    Args:
        reply: the reply.
        attempt: its deadline holds for the body too.
        max_reply: size limit of the decoded body, in bytes.

    Attributes:
        headers: the reply's, without those that no longer fit a decoded body.
    """

    def __init__(self, reply: IncomingReply, attempt: Attempt, max_reply: int) -> None:
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
        self._lost = reply.connection_lost()
        if self._lost:
            self._lost.add_done_callback(self._on_lost)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while piece := await self._attempt.within(self.read()):
                yield piece
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Let the connection go."""
        if self._lost:
            self._lost.remove_done_callback(self._on_lost)
        self._reply.close()

    async def read(self) -> bytes:
        """The next decoded piece; empty at the end.

        Raises:
            WireError: the body is too large or cut off, or its compressed data has no end.
            Exception: aiohttp's and zlib's, for ``Attempt.within`` to classify.
        """
        while not (piece := self._decoder.take()):
            try:
                raw = await self._reply.content.readany()
            except Exception as error:  # noqa: BLE001  _broken says which error it is in the words of the client
                raise self._broken(error) from error.__cause__
            if not raw:
                self._check_end()
                return b""
            self._decoder.feed(raw)
        self._size += len(piece)
        if self._size > self._max_reply:
            raise self._attempt.fail(ReplyTooLarge, f"over {self._max_reply:,} bytes")
        return piece

    def _broken(self, error: Exception) -> Exception:
        """What is to be raised for an error of aiohttp's reader."""
        if isinstance(garbled := self._reply.connection_error(), NotHTTP):
            return garbled  # older versions of aiohttp say here that the body was cut off
        if isinstance(error, aiohttp.ClientError | OSError):
            return error
        return NotHTTP(str(getattr(error, "message", "")))

    def _check_end(self) -> None:
        if _ends_with_connection(self._reply) and isinstance(self._reply.connection_error(), OSError):
            raise self._attempt.fail(BodyCut, "reset")
        if not self._decoder.whole():
            raise self._attempt.fail(Garbled, "the compressed body has no end")

    def _on_lost(self, lost: asyncio.Future[None]) -> None:
        """Wake the reader of a body that ended with the connection, if aiohttp has not."""
        lost.exception()  # or asyncio would log that nobody looked at it
        content = self._reply.content
        if not content.is_eof() and content.exception() is None:
            content.set_exception(self._reply.connection_error() or aiohttp.ClientPayloadError())


def _ends_with_connection(reply: IncomingReply) -> bool:
    """Whether only the end of the connection marks the end of the body (RFC 9112, 6.3)."""
    return "Content-Length" not in reply.headers and "Transfer-Encoding" not in reply.headers


def _without(headers: RawHeaders, *names: bytes) -> RawHeaders:
    return [(name, value) for name, value in headers if name.lower() not in names]

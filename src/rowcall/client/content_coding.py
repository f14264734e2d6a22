"""Content codings of a reply, decoded in pieces, so that a body that expands enormously takes little memory."""

from __future__ import annotations

import zlib
from typing import Protocol

PIECE = 2**18
"""Largest piece that a decoder returns, in bytes (a body without a coding is returned as received)."""


class Decoder(Protocol):
    """Takes an encoded body in pieces and returns it decoded."""

    def feed(self, raw: bytes) -> None:
        """Take received bytes. Call it only after ``take`` has returned nothing."""

    def take(self) -> bytes:
        """The next piece; empty if more must be fed."""

    def whole(self) -> bool:
        """Whether the body may end here."""


def decoder_for(coding: str) -> Decoder | None:
    """The decoder for a Content-Encoding (RFC 9110, 8.4.1); None for one that is not decoded here."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return Plain()
    return Inflated(gzip=coding != "deflate") if coding in ("gzip", "x-gzip", "deflate") else None


class Plain:
    """Nothing to decode."""

    def __init__(self) -> None:
        self._raw = b""

    def feed(self, raw: bytes) -> None:
        """Take what was received."""
        self._raw = raw

    def take(self) -> bytes:
        """All of it, once."""
        raw, self._raw = self._raw, b""
        return raw

    def whole(self) -> bool:
        """HTTP itself marks the end."""
        return True


class Inflated:
    """gzip (one or several members) or deflate (with or without its zlib header).

    Raises:
        zlib.error: from ``take``, if the data is neither.
    """

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._pending = b""
        self._stream: zlib._Decompress | None = None

    def feed(self, raw: bytes) -> None:
        """Take what was received."""
        if self._stream is None or self._stream.eof:
            self._begin(raw)
        else:
            self._pending = raw

    def take(self) -> bytes:
        """At most ``PIECE`` bytes. zlib may still hold decoded bytes after its input is used up."""
        while self._stream is not None:
            piece = self._stream.decompress(self._pending, PIECE)
            self._pending = self._stream.unconsumed_tail
            if self._stream.unused_data:
                self._begin(self._stream.unused_data)
            if piece or not self._pending:
                return piece
        return b""

    def whole(self) -> bool:
        """True if there was no byte at all, or the end of the compressed data was seen."""
        return self._stream is None or self._stream.eof

    def _begin(self, raw: bytes) -> None:
        """Start on the first member or the next one. Bytes after it that are not gzip are ignored padding."""
        if self._stream is None or (self._gzip and raw[0] == _GZIP_MAGIC):
            self._stream, self._pending = zlib.decompressobj(self._window(raw)), raw

    def _window(self, raw: bytes) -> int:
        if self._gzip:
            return 16 + zlib.MAX_WBITS
        has_header = raw[0] & 0x0F == zlib.DEFLATED
        return zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS


_GZIP_MAGIC = 0x1F

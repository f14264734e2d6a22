"""What a transport needs from the code that sends its requests over aiohttp; there are two such senders."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

import aiohttp
import httpx

from rowcall.client.attempt import Attempt
from rowcall.client.proxies import Proxy

LONGEST_LINE = 2**16
"""Longest line in the head of a reply, in bytes."""
KEEP_ALIVE = 30.0
"""Seconds that an idle connection is kept."""
DNS_CACHE = 60
"""Seconds that an address is used before its name is looked up again."""


class IncomingReply(Protocol):
    """A reply whose head has been read. Its body arrives in ``content``."""

    @property
    def status(self) -> int:
        """The status code."""

    @property
    def reason(self) -> str:
        """The reason phrase."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are not case-sensitive."""

    @property
    def raw_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """The headers as they arrived."""

    @property
    def content(self) -> aiohttp.StreamReader:
        """The body, still encoded."""

    def connection_lost(self) -> asyncio.Future[None] | None:
        """Done once the connection is closed; None if the whole body has already arrived."""

    def connection_error(self) -> Exception | None:
        """What ended the connection: an OSError, or NotHTTP for what aiohttp could not parse."""

    def close(self) -> None:
        """Give the connection back if request and reply passed whole, otherwise close it. Safe to repeat."""


class Sender(Protocol):
    """Sends one request once, and reads the head of its reply."""

    async def send(
        self, request: httpx.Request, proxy: Proxy | None, attempt: Attempt, *, fresh: bool
    ) -> IncomingReply:
        """Send a request.

        Args:
            request: its body is bytes, or an async stream.
            proxy: the proxy it goes through, if any.
            attempt: is told when a connection is being made, when it stands, and whether a reply has begun.
            fresh: on a new connection that serves nothing else; the name is looked up anew.

        Raises:
            Exception: aiohttp's, for ``Attempt.within`` to classify.
        """

    async def close(self) -> None:
        """Close all connections."""

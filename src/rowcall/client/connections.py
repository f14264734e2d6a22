"""Where connections come from: aiohttp's pools, through proxies and TLS."""

from __future__ import annotations

import asyncio
import ssl
from functools import cached_property, lru_cache
from typing import Any

import aiohttp
import httpx
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from rowcall.client.attempt import Attempt, Told
from rowcall.client.name_lookup import NameResolver
from rowcall.client.proxies import Proxy

_ORIGINS = 1024
"""Servers whose addresses are kept ready."""


class Connections:
    """Connections to any server, at most so many at once; a request that finds none free waits.

    Args:
        concurrency: at most so many.
        verify: as httpx takes it: True for the usual authorities (certifi, or SSL_CERT_FILE), or an own context.
    """

    def __init__(self, *, concurrency: int, verify: ssl.SSLContext | bool) -> None:
        self._concurrency = concurrency
        self._verify = verify
        self._origin = lru_cache(_ORIGINS)(self._make_origin)
        self._connectors: dict[bool, aiohttp.TCPConnector] = {}

    async def connect(self, url: httpx.URL, proxy: Proxy | None, attempt: Attempt, *, fresh: bool) -> Connection:
        """One to the server of a URL, to be released or closed; the attempt is told how it came about.

        Args:
            url: whose server.
            proxy: through which it goes; None: none.
            attempt: what it is for.
            fresh: a new one, which serves nothing else; the name is looked up anew.

        Raises:
            Exception: aiohttp's, for ``Attempt.within`` to class.
        """
        origin = self._origin(url.raw_scheme, url.netloc, proxy)
        traces: list[Trace] = [Told(attempt)]
        connection = await self._connector(fresh).connect(origin, traces, _NO_LIMITS)
        while not attempt.connecting and _spoke_unasked(connection):
            connection.close()
            connection = await self._connector(fresh).connect(origin, traces, _NO_LIMITS)
        attempt.connected = True
        return connection

    async def close(self) -> None:
        """Close all of them."""
        for connector in self._connectors.values():
            await connector.close()

    def _connector(self, fresh: bool) -> aiohttp.TCPConnector:
        if fresh not in self._connectors:
            options: dict[str, Any] = (
                {"ttl_dns_cache": 0, "force_close": True} if fresh else {"ttl_dns_cache": 60, "keepalive_timeout": 30.0}
            )
            self._connectors[fresh] = aiohttp.TCPConnector(limit=self._concurrency, resolver=NameResolver(), **options)
        return self._connectors[fresh]

    def _make_origin(self, scheme: bytes, netloc: bytes, proxy: Proxy | None) -> aiohttp.ClientRequest:
        """What aiohttp wants to know of a server: a request to it, which is never sent."""
        tunnel = scheme == b"https"
        authorized = {"Proxy-Authorization": proxy.authorization} if proxy and proxy.authorization and tunnel else None
        return aiohttp.ClientRequest(
            "GET",
            URL((b"%b://%b" % (scheme, netloc)).decode("ascii"), encoded=True),
            loop=asyncio.get_running_loop(),
            ssl=self._tls if tunnel or (proxy and proxy.url.startswith("https")) else True,
            proxy=URL(proxy.url) if proxy else None,
            proxy_headers=authorized,
        )

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        if isinstance(self._verify, ssl.SSLContext):
            return self._verify
        context = httpx.create_ssl_context(self._verify)
        context.set_alpn_protocols(["http/1.1"])
        return context


def _spoke_unasked(connection: Connection) -> bool:
    """Whether something came by a kept connection since its last reply: it would be taken for the next one."""
    return connection.protocol is not None and connection.protocol.should_close


_NO_LIMITS = aiohttp.ClientTimeout()  # an attempt keeps its own deadlines

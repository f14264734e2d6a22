"""Name look-up in daemon threads, so that one that hangs blocks neither the event loop nor the exit of the process."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from threading import Thread
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult


class NameResolver(AbstractResolver):
    """The system's look-up, in one short-lived thread each. aiohttp asks once for all requests that wait for a name."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host.

        Raises:
            OSError: it has none (``socket.gaierror``).
        """
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[ResolveResult]] = loop.create_future()
        Thread(target=_look_up, args=(loop, found, host, port, family), daemon=True, name=f"dns {host}").start()
        return await found

    async def close(self) -> None:
        """There is nothing to release."""


def _look_up(
    loop: asyncio.AbstractEventLoop, found: asyncio.Future[Any], host: str, port: int, family: socket.AddressFamily
) -> None:
    answer = _addresses(host, port, family)
    with suppress(RuntimeError):  # the loop is closed: nobody waits for the result
        loop.call_soon_threadsafe(_settle, found, answer)


def _addresses(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult] | OSError:
    try:
        infos = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except OSError as error:
        return error
    except UnicodeError:
        return socket.gaierror(socket.EAI_NONAME, "not a host name")
    return [_result(host, info) for info in infos]


def _settle(found: asyncio.Future[Any], answer: list[ResolveResult] | OSError) -> None:
    if found.done():
        return
    if isinstance(answer, OSError):
        found.set_exception(answer)
    else:
        found.set_result(answer)


def _result(host: str, info: tuple[Any, ...]) -> ResolveResult:
    family, _, proto, _, address = info
    return ResolveResult(
        hostname=host, host=address[0], port=address[1], family=family, proto=proto, flags=socket.AI_NUMERICHOST
    )

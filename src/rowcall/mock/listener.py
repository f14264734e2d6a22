"""A port that can be closed for real, in the middle of everything, and opened again.

asyncio's own server loses a connection that was accepted just before ``close()`` (CPython 3.11: it is neither served
nor closed), so connections are accepted here.
"""

from __future__ import annotations

import asyncio
import socket
import struct

from aiohttp import web

from rowcall.model.errors import RowcallError

_BACKLOG = 4096
_OUT_OF_FILES = 0.1  # seconds until the next try to accept
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: close() sends RST, socket(7)


class Listener:
    """Takes the connections of a bound socket and hands them to an aiohttp server."""

    def __init__(self, bound: socket.socket, server: web.Server) -> None:
        self._socket = bound
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._taking: set[asyncio.Task[object]] = set()
        self._resting: asyncio.TimerHandle | None = None
        bound.listen(_BACKLOG)
        self._watch()

    def close(self) -> None:
        """Take no more: connections are refused from here on."""
        if self._resting is not None:
            self._resting.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()

    async def drop(self) -> None:
        """Reset the open connections; returns when their handlers have ended."""
        await asyncio.gather(*self._taking, return_exceptions=True)
        for protocol in self._server.connections:
            if protocol.transport is not None:
                reset(protocol.transport)
        await self._server.shutdown(timeout=1.0)

    def _watch(self) -> None:
        self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:
            self._rest()
            return
        connection.setblocking(False)
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._server, connection))
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)

    def _rest(self) -> None:
        """Out of file descriptors: what waits in the backlog waits on."""
        self._loop.remove_reader(self._socket)
        self._resting = self._loop.call_later(_OUT_OF_FILES, self._watch)


def bind(host: str, port: int) -> socket.socket:
    """A socket that holds a port and does not listen: connections are refused, and nobody else is given it.

    Raises:
        RowcallError: somebody has the port, or the address is not this machine's.
    """
    bound = socket.socket()
    bound.setblocking(False)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as exc:
        bound.close()
        raise RowcallError(f"cannot listen on {host}:{port}: {exc.strerror or exc}", remedy="Choose another.") from exc
    return bound


def reset(transport: asyncio.Transport) -> None:
    """End a connection by RST."""
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    transport.abort()

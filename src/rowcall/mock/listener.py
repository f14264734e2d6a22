"""A listening port that can be closed and reopened while calls are in flight.

The server of asyncio loses a connection that was accepted just before ``close()`` (CPython 3.11: it is neither served
nor closed). So connections are accepted here instead.
"""

from __future__ import annotations

import asyncio
import socket
import struct

from aiohttp import web

from rowcall.model.errors import RowcallError

_BACKLOG = 4096
_OUT_OF_FILES = 0.1  # seconds until the next attempt to accept
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: close() sends RST, socket(7)


class Listener:
    """Accepts the connections of a bound socket and passes them to an aiohttp server."""

    def __init__(self, bound: socket.socket, server: web.Server) -> None:
        self._socket = bound
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._connecting: set[asyncio.Task[object]] = set()
        self._retry: asyncio.TimerHandle | None = None
        bound.listen(_BACKLOG)
        self._watch()

    def close(self) -> None:
        """Stop listening: new connections are refused."""
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()

    async def drop(self) -> None:
        """Reset the open connections and wait until their handlers have ended."""
        await asyncio.gather(*self._connecting, return_exceptions=True)
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
            # Out of file descriptors: leave connections in the backlog for a moment instead of spinning.
            self._loop.remove_reader(self._socket)
            self._retry = self._loop.call_later(_OUT_OF_FILES, self._watch)
            return
        connection.setblocking(False)
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._server, connection))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that keeps a port without listening: connections are refused, and nobody else can get the port.

    Raises:
        RowcallError: the port is in use, or the address is not one of this machine.
    """
    bound = socket.socket()
    bound.setblocking(False)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as exc:
        bound.close()
        raise RowcallError(
            f"cannot listen on {host}:{port}: {exc.strerror or exc}", remedy="Choose another port or address."
        ) from exc
    return bound


def reset(transport: asyncio.Transport) -> None:
    """Close a connection with RST."""
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    transport.abort()

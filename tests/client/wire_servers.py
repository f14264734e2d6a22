"""Servers over real sockets that do what they are told, and count what they got."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Talk:
    """The server's side of one connection."""

    def __init__(self, server, reader, writer):
        self.server, self.reader, self.writer = server, reader, writer

    async def request(self) -> bytes:
        """Read one request, head and body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next((int(line[15:]) for line in head.lower().splitlines() if line.startswith(b"content-length:")), 0)
        whole = head + await self.reader.readexactly(length)
        self.server.requests.append(whole)
        return whole

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """Leave with an RST."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def forever(self) -> None:
        """Say nothing until the other side leaves."""
        await self.reader.read()


Act = Callable[[Talk], Awaitable[None]]


class ScriptedServer:
    """Plays the n-th act on the n-th connection, the last one again and again."""

    def __init__(self, *acts: Act, tls: ssl.SSLContext | None = None):
        self._acts, self._tls = acts, tls
        self.requests: list[bytes] = []
        self.connections = 0
        self.talks: list[Talk] = []
        self._plays: set[asyncio.Task] = set()
        self.accepted = asyncio.Event()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._play, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *error):
        for _ in range(9):  # a connection that is accepted while Python 3.11 closes the server is never closed itself
            await asyncio.sleep(0)
        self._server.close()
        await asyncio.sleep(0)
        for talk in self.talks:
            talk.writer.transport.abort()
        for play in self._plays:
            play.cancel()
        await asyncio.gather(*self._plays, return_exceptions=True)
        await self._server.wait_closed()

    async def _play(self, reader, writer):
        act = self._acts[min(self.connections, len(self._acts) - 1)]
        self.connections += 1
        talk = Talk(self, reader, writer)
        self.talks.append(talk)
        self._plays.add(asyncio.current_task())
        self.accepted.set()
        try:
            await act(talk)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def replying(*replies: bytes) -> Act:
    """One reply to each request, the last one again and again, on a connection that is kept."""

    async def act(talk: Talk) -> None:
        number = 0
        while True:
            await talk.request()
            await talk.send(replies[min(number, len(replies) - 1)])
            number += 1

    return act


def saying(data: bytes, leave: str = "close") -> Act:
    """Answer one request with these bytes, then ``close``, ``reset``, wait ``forever`` or ``stay`` for the next act."""

    async def act(talk: Talk) -> None:
        await talk.request()
        await talk.send(data)
        await _leave(talk, leave)

    return act


async def _leave(talk: Talk, how: str) -> None:
    if how == "forever":
        await talk.forever()
    elif how != "stay":
        getattr(talk, how)()


def then(*acts: Act) -> Act:
    """One act after the other on the same connection."""

    async def act(talk: Talk) -> None:
        for one in acts:
            await one(talk)

    return act


async def answer_once(talk: Talk) -> None:
    """One good reply; the connection may be kept."""
    await talk.request()
    await talk.send(OK)

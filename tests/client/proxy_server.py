"""A proxy over real sockets: tunnels for CONNECT, plain requests passed on; every host is the one it is told."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class ProxyServer:
    """Leads every host to ``port`` of this machine.

    Attributes:
        asked: the first line of each request, with its Proxy-Authorization.
        wants: the Proxy-Authorization without which it answers 407; None: any.
        says: a status it answers with instead of doing anything.
    """

    def __init__(self, port, *, tls=None):
        self._to, self._tls = port, tls
        self.asked = []
        self.wants = None
        self.says = None
        self._talks = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *exc):
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _serve(self, reader, writer):
        self._talks.add(asyncio.current_task())
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._answer(reader, writer)
        await _close(writer)

    async def _answer(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines if line)
        given = next((line.split(": ", 1)[1] for line in lines if line.lower().startswith("proxy-authorization")), None)
        self.asked.append((first, given))
        status = self.says or (407 if self.wants not in (None, given) else None)
        if status:
            await reader.readexactly(int(headers.get("content-length", 0)))
            writer.write(f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n".encode())
            await writer.drain()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        if first.startswith("CONNECT"):
            writer.write(b"HTTP/1.1 200 Fine\r\n\r\n")
        else:
            method, url, version = first.split(" ")
            back.write(f"{method} /{url.split('/', 3)[3]} {version}\r\n".encode() + head.split(b"\r\n", 1)[1])
        try:
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        finally:
            await _close(back)


async def _pump(reader, writer):
    with suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()


async def _close(writer):
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()

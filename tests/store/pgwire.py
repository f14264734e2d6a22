"""A wire between a store and its server that a test may cut."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress

BACKEND_KEY = b"K\0\0\0\x0c"
KEY = re.compile(BACKEND_KEY + b"....", re.DOTALL)
"""How a server tells which of its processes a connection has."""


class Wire:
    """Passes bytes on, until told to lose something. An async context manager; ``port`` is where it listens.

    ``as_pooler`` lets it look like a pooler, which makes up process ids of its own.
    """

    def __init__(self, port, *, as_pooler=False):
        self._to = port
        self._as_pooler = as_pooler
        self._listener = None
        self._links = set()
        self._writers = set()
        self._losing = 0
        self._flows = asyncio.Event()
        self._flows.set()
        self.lost = 0

    async def __aenter__(self):
        self._listener = await asyncio.start_server(self._link, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *exc):
        self.close()
        self._flows.set()
        await asyncio.gather(*self._links, return_exceptions=True)

    @property
    def port(self):
        return self._listener.sockets[0].getsockname()[1]

    def lose_replies_to_commits(self, many=1):
        """Let the next commits reach the server, and break the connection before its reply arrives."""
        self._losing = many

    def freeze(self):
        """Pass nothing on any more, and break nothing: as a machine that stands still."""
        self._flows.clear()

    def close(self):
        """Break all connections, and take no new ones."""
        self._listener.close()
        self.cut()

    def cut(self):
        """Break all connections."""
        for writer in self._writers:
            writer.transport.abort()

    async def _link(self, reader, writer):
        there_reader, there = await asyncio.open_connection("127.0.0.1", self._to)
        muted = asyncio.Event()
        link = asyncio.gather(self._ask(reader, there, muted), self._reply(there_reader, writer, muted))
        self._links.add(link)
        self._writers |= {writer, there}
        link.add_done_callback(self._links.discard)
        with suppress(OSError):
            await link

    async def _ask(self, source, sink, muted):
        while data := await source.read(65536):
            await self._flows.wait()
            losing = self._losing and b"COMMIT\0" in data
            if losing:
                self._losing -= 1
                muted.set()
            sink.write(data)
            await sink.drain()
            if losing:
                await asyncio.sleep(0.05)  # for the server to carry it out
                self.lost += 1
                self.cut()
        sink.close()

    async def _reply(self, source, sink, muted):
        while data := await source.read(65536):
            await self._flows.wait()
            if not muted.is_set():
                sink.write(re.sub(KEY, BACKEND_KEY + b"\0\0\0\1", data) if self._as_pooler else data)
                await sink.drain()
        sink.close()

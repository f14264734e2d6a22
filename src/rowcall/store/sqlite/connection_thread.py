"""One SQLite connection on a thread of its own."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

import aiosqlite

from rowcall.model.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")


class ConnectionThread:
    """A connection whose thread runs one function after the other, each undisturbed and to its end.

    A function goes there in one hop. A caller that is cancelled, or a loop that is blocked, changes nothing for it:
    so a transaction that begins and ends within one function is never left open.
    """

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._closed = False

    @classmethod
    async def open(cls, connect: Callable[[], sqlite3.Connection]) -> ConnectionThread:
        """Open a connection by calling ``connect`` on the new thread; no thread is left if that raises."""
        opening = asyncio.ensure_future(_opened(connect))
        try:
            return cls(await asyncio.shield(opening))
        except asyncio.CancelledError:
            await (await opening).close()
            raise

    async def run(
        self, function: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What ``function`` gives for the connection and ``args``."""
        if self._closed:
            raise Unavailable("the store is closed")
        connection = self._connection  # its public methods are one hop per statement, so two private names are used
        hop = connection._execute(function, connection._conn, *args, **kwargs)  # type: ignore[no-untyped-call]  # noqa: SLF001
        result: T = await hop
        return result

    async def close(self) -> None:
        """Close the connection and end its thread; safe to repeat."""
        self._closed = True
        await self._connection.close()


async def _opened(connect: Callable[[], sqlite3.Connection]) -> aiosqlite.Connection:
    """Open it, and see the thread end where that fails: aiosqlite by itself would not wait for it."""
    errors: list[Exception] = []

    def attempt() -> sqlite3.Connection:
        try:
            return connect()
        except Exception as error:  # noqa: BLE001  raised again below
            errors.append(error)
            return sqlite3.connect(":memory:")

    connection = await aiosqlite.Connection(attempt, iter_chunk_size=1)
    if errors:
        await connection.close()
        raise errors[0]
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that writes: all of it, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a grave error ends it by itself
            connection.execute("ROLLBACK")
        raise

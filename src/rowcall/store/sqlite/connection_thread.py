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
    """A connection whose thread runs one function after the other, each to its end.

    A function is one call on the thread. It is not affected if its caller is cancelled or the event loop is blocked, so
    that a transaction which begins and ends within one function is never left open.
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
        """Call ``function`` with the connection and ``args`` on the thread; returns its result."""
        if self._closed:
            raise Unavailable("the store is closed")
        connection = self._connection  # its public methods take one call per statement, so two private names are used
        hop = connection._execute(function, connection._conn, *args, **kwargs)  # type: ignore[no-untyped-call]  # noqa: SLF001
        result: T = await hop
        return result

    async def close(self) -> None:
        """Close the connection and end its thread; safe to repeat."""
        self._closed = True
        await self._connection.close()


async def _opened(connect: Callable[[], sqlite3.Connection]) -> aiosqlite.Connection:
    """Open it, and wait for the thread to end if that fails: aiosqlite by itself would not."""
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
        if connection.in_transaction:  # SQLite ends it by itself after a grave error
            connection.execute("ROLLBACK")
        raise

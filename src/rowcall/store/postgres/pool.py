"""Connections to a database, and transactions that are repeated while something is in the way."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

import psycopg
from psycopg import AsyncConnection, conninfo
from psycopg.pq import TransactionStatus
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_delay, wait_random_exponential

from rowcall.model.errors import Busy, Unavailable
from rowcall.store.postgres.faults import explain_refused_connection, no_longer_writable, translated
from rowcall.store.postgres.loaders import IsoLoader, NumberLoader
from rowcall.store.queries.base import Access

P = ParamSpec("P")
T = TypeVar("T")

Connection = AsyncConnection[tuple[Any, ...]]

SIZE = 4
"""Connections of one store, at most; the lock of a session has one of its own beside them."""
_SILENT_FOR = 2.0
"""Seconds of waiting before the user is told."""
CLOSING_PATIENCE = 5.0
"""Seconds that open transactions may still take when a store is closed: a server may hang."""
_LONGEST_PAUSE = 1.0
"""Seconds between two tries, at most."""

# A broken network is noticed within 15 s on both sides. Parameters in the address take precedence.
_WIRE = {
    "application_name": "rowcall",
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
_SETTINGS = {
    "statement_timeout": "30s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "30s",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "3",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15000",
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "jit": "off",
    "search_path": "rowcall, pg_temp",  # where the statements that both databases share find their tables
}
_LOOK = "SELECT pg_backend_pid(), NOT current_setting('transaction_read_only')::boolean"
_UNKNOWN = re.compile(r'invalid URI query parameter: "(\w+)"')
# A verb that reads all jobs may take the time and the memory that this needs.
_WALK = "SET LOCAL statement_timeout = 0; SET LOCAL work_mem = '64MB'"
_LIGHTLY = "SET LOCAL synchronous_commit = off"
# Without statistics, as on a table that was just filled, the planner would read whole tables for the hot verbs.
_BY_INDEX = "; ".join(
    f"SET LOCAL enable_{way} = off" for way in ("seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin")
)


def ignore(message: str) -> None:
    """Takes messages about waits that nobody asked for."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is. ``name`` is for people and holds no secret."""

    parameters: dict[str, Any]
    name: str

    @classmethod
    def of(cls, url: str) -> Self:
        """Read a URL.

        Raises:
            Unavailable: it is not valid.
        """
        try:
            said = conninfo.conninfo_to_dict(url)
        except psycopg.Error as error:  # its message may hold the URL, and so the password
            unknown = _UNKNOWN.search(str(error))
            raise Unavailable(
                "[store] path is not an address of a PostgreSQL database"
                + (f": there is no parameter {unknown[1]!r}" if unknown and f"{unknown[1]}=" in url else ""),
                remedy="Write it as postgresql://user:password@host:5432/database",
            ) from None
        place = f"{said.get('host') or 'localhost'}:{said.get('port') or 5432}"
        return cls(_WIRE | said, f"{place}/{said.get('dbname') or said.get('user') or ''}")

    def __repr__(self) -> str:
        return f"Address({self.name!r})"

    async def connect(self) -> Connection:
        """A new connection, in no transaction."""
        connection = await AsyncConnection.connect(**self.parameters, autocommit=True)
        connection.adapters.register_loader("timestamptz", IsoLoader)
        connection.adapters.register_loader("numeric", NumberLoader)
        return connection


class Database:
    """A database, and a few connections to it. Made by ``open``."""

    def __init__(self, address: Address, durability: str, busy_wait: float, waits: Callable[[str], None]) -> None:
        self.address = address
        self.waits = waits
        self.pooled = False
        self._took_writes = False
        self._settings = _SETTINGS | ({"synchronous_commit": "off"} if durability == "normal" else {})
        self._retrying = AsyncRetrying(
            retry=retry_if_exception_type(Busy),
            stop=stop_after_delay(busy_wait),
            wait=wait_random_exponential(multiplier=0.02, max=_LONGEST_PAUSE),
            before_sleep=self._tell,
            reraise=True,
        )
        self._idle: list[Connection] = []
        self._at_work: set[Connection] = set()
        self._slots = asyncio.Semaphore(SIZE)
        self._tries: set[asyncio.Future[Any]] = set()
        self._closed = False
        self._told = ""

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        durability: Literal["full", "normal"] = "full",
        busy_wait: float = 30.0,
        waits: Callable[[str], None] = ignore,
    ) -> Self:
        """Connect to a database.

        Args:
            url: ``postgresql://user:password@host:port/database``; environment variables such as PGUSER give the rest.
            durability: ``full`` waits for the disk as the server is set; ``normal`` never does.
            busy_wait: seconds to wait for others, or for a server that is away, before ``Busy`` is raised.
            waits: called once in each wait of 2 s or more.

        Raises:
            Unavailable: it cannot be reached, or refuses this user.
            Busy: it was starting, or had no connection left, for all of ``busy_wait``.
        """
        database = cls(Address.of(url), durability, busy_wait, waits)
        await database._patiently(database._connect_first)
        return database

    @property
    def name(self) -> str:
        """Host, port and database, for people."""
        return self.address.name

    async def transact(self, access: Access, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do ``work`` in one transaction, and again from its start while something is in the way."""
        return await self._patiently(self._attempt, access, work)

    async def run(
        self, verb: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As ``transact``, for a verb that writes."""
        return await self.transact(Access(writes=True), lambda connection: verb(connection, *args, **kwargs))

    async def run_by_index(
        self, verb: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As ``run``, for a verb that reaches every row it needs by an index."""
        access = Access(writes=True, by_index=True)
        return await self.transact(access, lambda connection: verb(connection, *args, **kwargs))

    async def run_lightly(
        self, verb: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As ``run``, without waiting for the disk: a power cut may undo it."""
        access = Access(writes=True, lightly=True)
        return await self.transact(access, lambda connection: verb(connection, *args, **kwargs))

    async def read(
        self, query: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As ``transact``, for a query: all it reads is of one moment, and nothing can be written."""
        return await self.transact(Access(), lambda connection: query(connection, *args, **kwargs))

    async def settled(self) -> None:
        """Wait for the transactions whose callers were cancelled."""
        while self._tries:
            await asyncio.wait(self._tries)

    async def close(self) -> None:
        """Close the connections, after 5 s even those that still wait for the server; safe to repeat."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_PATIENCE):
                await self.settled()
        self._closed = True
        await self._break_off()
        await self._drop_idle()

    async def connect(self) -> Connection:
        """A connection outside of the pool; its settings are permanent unless a pooler is between."""
        connection = await self.address.connect()
        try:
            backend, takes_writes = await fetched(connection, _LOOK)
            self._took_writes |= takes_writes
            self.pooled = backend != connection.info.backend_pid
            if (
                self.pooled
            ):  # the next transaction may run on another backend, which does not know our prepared statements
                connection.prepare_threshold = None
            else:
                await connection.execute(self._set("SET"), prepare=False)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _connect_first(self) -> None:
        with translated(self.name), explain_refused_connection(self.name):
            self._idle.append(await self.connect())

    async def _patiently(self, step: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closed:
            raise Unavailable("the store is closed")
        retrying = self._retrying.copy()  # a Retrying object serves one call at a time
        result: T = await retrying(self._to_its_end, lambda: step(*args, **kwargs))
        self._told = ""
        return result

    async def _to_its_end(self, step: Callable[[], Awaitable[T]]) -> T:
        """Finish a step even if its caller is cancelled, so that no transaction stays open or half done."""
        task = asyncio.ensure_future(step())
        self._tries.add(task)
        task.add_done_callback(self._tries.discard)
        return await asyncio.shield(task)

    async def _attempt(self, access: Access, work: Callable[[Connection], Awaitable[T]]) -> T:
        with translated(self.name):
            async with self._lent() as connection:
                try:
                    return await _transact(connection, self._begin(access), work)
                except psycopg.errors.ReadOnlySqlTransaction as error:
                    if not self._took_writes:
                        raise
                    await connection.close()  # another server may have its address by now, as after a failover
                    raise no_longer_writable(self.name) from error

    def _begin(self, access: Access) -> str:
        """The command that begins a transaction, with what is set for its time alone."""
        command = "BEGIN" if access.writes else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        local = [self._set("SET LOCAL")] if self.pooled else []
        local += [_WALK] if access.walks else []
        local += [_LIGHTLY] if access.lightly else []
        local += [_BY_INDEX] if access.by_index else []
        return "; ".join([command, *local])

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[Connection]:
        async with self._slots:
            connection = self._idle.pop() if self._idle else await self.connect()
            self._at_work.add(connection)
            try:
                yield connection
            finally:
                self._at_work.discard(connection)
                if connection.info.transaction_status is TransactionStatus.IDLE and not self._closed:
                    self._idle.append(connection)
                else:
                    await connection.close()
                    await self._drop_idle()  # a restart breaks them all

    async def _break_off(self) -> None:
        tries = list(self._tries)
        for connection in list(self._at_work):
            await connection.close()
        for one in tries:
            one.cancel()
        await asyncio.gather(*tries, return_exceptions=True)

    async def _drop_idle(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    def _set(self, command: str) -> str:
        quoted = {name: value.replace(", ", "', '") for name, value in self._settings.items()}  # a list, item by item
        return "; ".join(f"{command} {name} = '{value}'" for name, value in quoted.items())

    def _tell(self, state: RetryCallState) -> None:
        """Tell the user of a long wait, once until something succeeds again."""
        busy = state.outcome.exception() if state.outcome else None
        words = str(busy.args[0]) if busy else ""
        if words != self._told and (state.seconds_since_start or 0.0) >= _SILENT_FOR:
            self._told = words
            self.waits(words)


async def fetched(connection: Connection, statement: str, parameters: Any = None) -> tuple[Any, ...]:
    """The one row that a statement gives."""
    row = await (await connection.execute(statement, parameters)).fetchone()
    assert row is not None
    return row


async def patiently(connection: Connection) -> None:
    """Let the statements of this transaction take the time and the memory that reading all jobs needs."""
    await connection.execute(_WALK, prepare=False)


async def fetch(connection: Connection, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """All rows that a statement gives."""
    return await (await connection.execute(statement, parameters)).fetchall()


async def _transact(connection: Connection, begin: str, work: Callable[[Connection], Awaitable[T]]) -> T:
    try:
        await connection.execute(begin, prepare=False)
        result = await work(connection)
        await connection.execute("COMMIT", prepare=False)
    except BaseException:
        with suppress(psycopg.Error):
            await connection.execute("ROLLBACK", prepare=False)
        raise
    return result

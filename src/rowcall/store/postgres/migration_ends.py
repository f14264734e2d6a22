"""A PostgreSQL database as a source or a target of a migration; see ``store.migration``."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Concatenate, ParamSpec, Protocol, Self, TypeVar

from rowcall.model.store_location import StoreLocation
from rowcall.store.migration import (
    PAGE,
    TABLES,
    Key,
    MigratedTable,
    MigrationMark,
    MigrationOrigin,
    MigrationPage,
    MigrationSource,
    MigrationTarget,
    Row,
    StoreContents,
    TargetState,
    not_alone,
)
from rowcall.store.postgres import schema
from rowcall.store.postgres.driver import carry_out
from rowcall.store.postgres.pool import Connection, Database, fetch, fetched, patiently
from rowcall.store.queries.stored_runs import living

P = ParamSpec("P")
T = TypeVar("T")

_STATE = """
    SELECT count(*), sum(epoch)::bigint, sum(attempts)::bigint, sum(crashes)::bigint, max(updated_at)::text,
        (SELECT count(*) FROM rowcall.payloads), (SELECT count(*) FROM rowcall.results),
        (SELECT count(*) FROM rowcall.results WHERE superseded), (SELECT count(*) FROM rowcall.tries),
        (SELECT count(*) FROM rowcall.runs), (SELECT count(ended_at) FROM rowcall.runs),
        (SELECT sum(used)::bigint FROM rowcall.requests), (SELECT count(adopted_as) FROM rowcall.requests),
        (SELECT count(*) FROM rowcall.handed_out), (SELECT count(*) FROM rowcall.handed_out WHERE answered),
        (SELECT max(at)::text FROM rowcall.handed_out),
        (SELECT string_agg(name || value || keep, '' ORDER BY kind, name) FROM rowcall.settings),
        (SELECT string_agg(kind || at, '' ORDER BY kind) FROM rowcall.recipes)
    FROM rowcall.jobs
"""
_BY_STATUS = """
    SELECT kind, CASE status WHEN 'running' THEN 'pending' ELSE status END, count(*) FROM rowcall.jobs GROUP BY 1, 2
"""
# Each session has its own row of the totals; the sum is migrated.
_TOTALS = """
    (SELECT kind, sum(attempts)::bigint AS attempts, sum(input_tokens)::bigint AS input_tokens,
        sum(output_tokens)::bigint AS output_tokens, sum(cached_tokens)::bigint AS cached_tokens,
        sum(reasoning_tokens)::bigint AS reasoning_tokens, sum(cost)::bigint AS cost
    FROM rowcall.totals GROUP BY kind) AS totals
"""
_EMPTY = """
    SELECT NOT EXISTS (SELECT 1 FROM rowcall.requests) AND NOT EXISTS (SELECT 1 FROM rowcall.jobs)
        AND NOT EXISTS (SELECT 1 FROM rowcall.runs)
"""

_ALONE = "LOCK TABLE rowcall.moving IN EXCLUSIVE MODE"
_MARKED = "SELECT source, state, mark FROM rowcall.moving"
_BEGIN = "INSERT INTO rowcall.moving VALUES (%s, %s, %s)"
_ADVANCE = "UPDATE rowcall.moving SET mark = %(after)s WHERE mark = %(before)s"
_IS_IN = "SELECT 1 FROM rowcall.moving WHERE mark = %s"
_END = "DELETE FROM rowcall.moving"

# Running jobs are released, as if they had never been claimed.
_RELEASE_ALL = """
    UPDATE rowcall.jobs SET status = 'pending', session = NULL,
        run_after = CASE WHEN run_after IS NULL THEN NULL ELSE updated_at END, wait_ms = 0
    WHERE status = 'running'
"""
_END_RUNS = "UPDATE rowcall.runs SET ended_at = started_at, stop_reason = %s WHERE ended_at IS NULL"
_NUMBERS = """
    SELECT setval(pg_get_serial_sequence('rowcall.jobs', 'rowid'), max(rowid)) FROM rowcall.jobs
    UNION ALL SELECT setval(pg_get_serial_sequence('rowcall.requests', 'id'), max(id)) FROM rowcall.requests
    UNION ALL SELECT setval(pg_get_serial_sequence('rowcall.results', 'id'), max(id)) FROM rowcall.results
    UNION ALL SELECT setval(pg_get_serial_sequence('rowcall.runs', 'id'), max(id)) FROM rowcall.runs
    UNION ALL SELECT setval(pg_get_serial_sequence('rowcall.sessions', 'id'), max(session)) FROM rowcall.runs
"""
_ANALYZE = "ANALYZE rowcall.jobs, rowcall.payloads, rowcall.results, rowcall.tries"


class ReadQuery(Protocol):
    """Runs a query: in a transaction of its own, or in one that shows the same moment to all queries."""

    def __call__(
        self, query: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]:
        """What the query gives."""


class PostgresMigrationSource(MigrationSource):
    """A store in a PostgreSQL database that is moved from. Nothing is written to it."""

    def __init__(self, name: str, read: ReadQuery, close: Callable[[], Awaitable[None]]) -> None:
        self._name = name
        self._read = read
        self._close = close

    @classmethod
    async def open(cls, url: str) -> Self:
        """Open an existing store; raises as ``PostgresReader.open``."""
        database = await Database.open(url)
        try:
            await database.read(schema.require, database.name)
        except BaseException:
            await database.close()
            raise
        return cls(str(StoreLocation.of(url)), database.read, database.close)

    @property
    def name(self) -> str:
        """Its URL without what is secret."""
        return self._name

    async def close(self) -> None:
        """Give up the connections; safe to repeat."""
        await self._close()

    async def living(self) -> list[str]:
        """The processes that work on it, in words."""
        return await self._read(_living)

    async def state(self) -> str:
        """A text that every verb that writes changes; reads all jobs once."""
        return await self._read(_state)

    async def page(self, table: MigratedTable, after: Key | None) -> list[Row]:
        """The next rows of a table."""
        return await self._read(_page, table, after)

    async def contents(self) -> StoreContents:
        """What it holds."""
        return await self._read(_contents)


class PostgresMigrationTarget(MigrationTarget):
    """A PostgreSQL database that becomes a store. Made by ``open``."""

    def __init__(self, name: str, database: Database) -> None:
        self._name = name
        self._database = database

    @classmethod
    async def open(cls, url: str) -> Self:
        """Reach a database without a store, with an empty or an unfinished one; raises as ``PostgresStore.open``."""
        return cls(str(StoreLocation.of(url)), await Database.open(url))

    @property
    def name(self) -> str:
        """Its URL without what is secret."""
        return self._name

    async def close(self) -> None:
        """Give up the connections; safe to repeat."""
        await self._database.close()

    async def begin(self, origin: MigrationOrigin) -> MigrationMark:
        """Begin a migration, or resume one."""
        return await self._database.run(_begin, origin, self.name)

    async def put(self, page: MigrationPage) -> None:
        """Write a page together with its mark."""
        await self._database.run(_put, page, self.name)

    async def contents(self) -> StoreContents:
        """What it holds by now."""
        return await self._database.read(_contents)

    async def finish(self, stop_reason: str) -> None:
        """Make it a store."""
        tries = count(1)

        async def finish(connection: Connection) -> None:
            first_try = next(tries) == 1
            if await _end(connection):
                await _make_whole(connection, stop_reason)
            elif first_try:  # otherwise an earlier try was committed, and only its reply was lost
                raise not_alone(self.name)

        await self._database.run(finish)


async def _living(connection: Connection) -> list[str]:
    return await carry_out(connection, living())


async def _state(connection: Connection) -> str:
    await patiently(connection)
    return json.dumps(await fetched(connection, _STATE))


async def _page(connection: Connection, table: MigratedTable, after: Key | None) -> list[Row]:
    key = ", ".join(table.key)
    behind = f"WHERE ({key}) > ({', '.join(['%s'] * len(table.key))})" if after else ""
    columns = ", ".join(f"{column}::integer" if column in table.flags else column for column in table.columns)
    query = f"SELECT {columns} FROM {_rows_of(table)} {behind} ORDER BY {key} LIMIT {PAGE}"  # noqa: S608  constants
    return await fetch(connection, query, after)


def _rows_of(table: MigratedTable) -> str:
    return _TOTALS if table.name == "totals" else f"rowcall.{table.name}"


async def _contents(connection: Connection) -> StoreContents:
    await patiently(connection)
    by_status = {(kind, status): count for kind, status, count in await fetch(connection, _BY_STATUS)}
    others = [table for table in TABLES if table.name != "jobs"]
    return StoreContents(by_status, {table.name: await _count(connection, table) for table in others})


async def _count(connection: Connection, table: MigratedTable) -> int:
    (count,) = await fetched(connection, f"SELECT count(*) FROM {_rows_of(table)}")  # noqa: S608  constants
    return int(count)


async def _begin(connection: Connection, origin: MigrationOrigin, name: str) -> MigrationMark:
    await schema.make(connection, name)
    await connection.execute(_ALONE)
    standing = await _standing(connection)
    if mark := standing.resume_at(origin, name):
        return mark
    await connection.execute(f"TRUNCATE rowcall.moving, {', '.join(f'rowcall.{table.name}' for table in TABLES)}")
    await connection.execute(_BEGIN, (origin.name, origin.state, MigrationMark().text))
    return MigrationMark()


async def _standing(connection: Connection) -> TargetState:
    (empty,) = await fetched(connection, _EMPTY)
    for name, state, mark in await fetch(connection, _MARKED):
        return TargetState(empty, (MigrationOrigin(name, state), MigrationMark.of(mark)))
    return TargetState(empty)


async def _put(connection: Connection, page: MigrationPage, name: str) -> None:
    marks = {"before": page.before.text, "after": page.after.text}
    if not (await connection.execute(_ADVANCE, marks)).rowcount:
        if await fetch(connection, _IS_IN, (page.after.text,)):
            return
        raise not_alone(name)
    await _copy(connection, page.table, page.rows)


async def _copy(connection: Connection, table: MigratedTable, rows: list[Row]) -> None:
    columns = ", ".join(table.columns)
    async with connection.cursor() as cursor, cursor.copy(f"COPY rowcall.{table.name} ({columns}) FROM STDIN") as copy:
        for row in rows:
            await copy.write_row(row)


async def _end(connection: Connection) -> bool:
    return (await connection.execute(_END)).rowcount > 0


async def _make_whole(connection: Connection, stop_reason: str) -> None:
    await patiently(connection)
    await connection.execute(_RELEASE_ALL)
    await connection.execute(_END_RUNS, (stop_reason,))
    await connection.execute(_NUMBERS)
    await connection.execute(_ANALYZE)

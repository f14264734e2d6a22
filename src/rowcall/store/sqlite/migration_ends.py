"""A SQLite file as a source or a target of a migration; see ``store.migration``."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar

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
from rowcall.store.queries.stored_runs import living
from rowcall.store.sqlite.backup import stop_all_work
from rowcall.store.sqlite.connection_thread import ConnectionThread, transaction
from rowcall.store.sqlite.driver import carry_out
from rowcall.store.sqlite.faults import translated
from rowcall.store.sqlite.file import (
    APPLICATION_ID,
    MOVING_ID,
    WRITER_PATIENCE_MS,
    connect,
    connect_reading,
    connect_writing,
    prepare,
)
from rowcall.store.sqlite.locks import WriteLock

P = ParamSpec("P")
T = TypeVar("T")

_OTHERS = tuple(table.name for table in TABLES if table.name != "jobs")
_STATE = """
    SELECT count(*), sum(epoch), sum(attempts), sum(crashes), max(updated_at),
        (SELECT count(*) FROM payloads), (SELECT count(*) FROM results), (SELECT sum(superseded) FROM results),
        (SELECT count(*) FROM tries), (SELECT count(*) FROM runs), (SELECT count(ended_at) FROM runs),
        (SELECT sum(used) FROM requests), (SELECT count(adopted_as) FROM requests),
        (SELECT count(*) FROM handed_out), (SELECT sum(answered) FROM handed_out), (SELECT max(at) FROM handed_out),
        (SELECT group_concat(name || value || keep) FROM settings), (SELECT group_concat(kind || at) FROM recipes)
    FROM jobs NOT INDEXED
"""
_BY_STATUS = """
    SELECT kind, CASE status WHEN 'running' THEN 'pending' ELSE status END, count(*) FROM jobs NOT INDEXED GROUP BY 1, 2
"""
_EMPTY = """
    SELECT NOT EXISTS (SELECT 1 FROM requests) AND NOT EXISTS (SELECT 1 FROM jobs) AND NOT EXISTS (SELECT 1 FROM runs)
"""

_MARK_TABLE = "CREATE TABLE moving (source TEXT NOT NULL, state TEXT NOT NULL, mark TEXT NOT NULL) STRICT"
_MARKED = "SELECT source, state, mark FROM moving"
_BEGIN = "INSERT INTO moving VALUES (?, ?, ?)"
_ADVANCE = "UPDATE moving SET mark = :after WHERE mark = :before"
_IS_IN = "SELECT 1 FROM moving WHERE mark = ?"

_NO_OLD_SESSIONS = "DELETE FROM sqlite_sequence WHERE name = 'sessions'"
_NEW_SESSIONS = "INSERT INTO sqlite_sequence SELECT 'sessions', coalesce(max(session), 0) FROM runs"


class SQLiteMigrationSource(MigrationSource):
    """A store in a SQLite file, that is moved from. Made by ``open``; nothing is written to it."""

    def __init__(self, path: Path, line: ConnectionThread) -> None:
        self._path = path
        self._thread = line

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Open an existing store; raises as ``SQLiteReader.open``."""
        return cls(path, await ConnectionThread.open(partial(connect_reading, path)))

    @property
    def name(self) -> str:
        """Its path, from the root."""
        return str(self._path.resolve())

    async def close(self) -> None:
        """Give up the connection; safe to repeat."""
        await self._thread.close()

    async def living(self) -> list[str]:
        """The processes that work on it, in words."""
        return await self._thread.run(self._told, lambda connection: carry_out(connection, living()))

    async def state(self) -> str:
        """A text that every verb that writes changes; reads all jobs once."""
        return await self._thread.run(self._told, _state)

    async def page(self, table: MigratedTable, after: Key | None) -> list[Row]:
        """The next rows of a table."""
        return await self._thread.run(self._told, _page, table, after)

    async def contents(self) -> StoreContents:
        """What it holds."""
        return await self._thread.run(self._told, _contents)

    def _told(
        self,
        connection: sqlite3.Connection,
        query: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        with translated(self._path):
            return query(connection, *args, **kwargs)


class SQLiteMigrationTarget(MigrationTarget):
    """A SQLite file that becomes a store. Made by ``open``."""

    def __init__(self, path: Path, line: ConnectionThread) -> None:
        self._path = path
        self._thread = line

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Open an empty store or an unfinished one, or make a file; raises as ``SQLiteStore.open``."""
        return cls(path, await ConnectionThread.open(partial(_connect, path)))

    @property
    def name(self) -> str:
        """Its path, from the root."""
        return str(self._path.resolve())

    async def close(self) -> None:
        """Give up the connection; safe to repeat."""
        await self._thread.close()

    async def begin(self, origin: MigrationOrigin) -> MigrationMark:
        """Begin a migration, or resume one."""
        return await self._thread.run(self._write, lambda connection: _begin(connection, origin, self.name))

    async def put(self, page: MigrationPage) -> None:
        """Write a page together with its mark."""
        await self._thread.run(self._write, lambda connection: _put(connection, page, self.name))

    async def contents(self) -> StoreContents:
        """What it holds by now."""
        return await self._thread.run(self._write, _contents)

    async def finish(self, stop_reason: str) -> None:
        """Make it a store."""
        await self._thread.run(self._write, lambda connection: _finish(connection, stop_reason, self.name))

    def _write(self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
        with translated(self._path), transaction(connection):
            return work(connection)


def _connect(path: Path) -> sqlite3.Connection:
    if _is_unfinished(path):
        return connect(path, "rw", WRITER_PATIENCE_MS)
    connection = connect_writing(path)
    lock = WriteLock(path)
    try:
        with translated(path), lock.held(WRITER_PATIENCE_MS / 1000):
            prepare(connection, path, "full")
    except BaseException:
        connection.close()
        raise
    finally:
        lock.close()
    return connection


def _is_unfinished(path: Path) -> bool:
    with translated(path):
        if not path.is_file() or not path.stat().st_size:
            return False
        with closing(connect(path, "ro", WRITER_PATIENCE_MS)) as connection:
            return _owner(connection) == MOVING_ID


def _owner(connection: sqlite3.Connection) -> int:
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    return int(owner)


def _state(connection: sqlite3.Connection) -> str:
    return json.dumps(connection.execute(_STATE).fetchone())


def _page(connection: sqlite3.Connection, table: MigratedTable, after: Key | None) -> list[Row]:
    key = ", ".join(table.key)
    behind = f"WHERE ({key}) > ({_places(table.key)})" if after else ""
    query = f"SELECT {', '.join(table.columns)} FROM {table.name} {behind} ORDER BY {key} LIMIT {PAGE}"  # noqa: S608  constants
    return connection.execute(query, after or ()).fetchall()


def _contents(connection: sqlite3.Connection) -> StoreContents:
    by_status = {(kind, status): count for kind, status, count in connection.execute(_BY_STATUS)}
    return StoreContents(by_status, {name: _count(connection, name) for name in _OTHERS})


def _count(connection: sqlite3.Connection, name: str) -> int:
    (count,) = connection.execute(f"SELECT count(*) FROM {name}").fetchone()  # noqa: S608  a constant
    return int(count)


def _begin(connection: sqlite3.Connection, origin: MigrationOrigin, name: str) -> MigrationMark:
    standing = _standing(connection)
    if mark := standing.resume_at(origin, name):
        return mark
    for table in TABLES:
        connection.execute(f"DELETE FROM {table.name}")  # noqa: S608  a constant
    connection.execute("DROP TABLE IF EXISTS moving")
    connection.execute(_MARK_TABLE)
    connection.execute(_BEGIN, (origin.name, origin.state, MigrationMark().text))
    connection.execute(f"PRAGMA application_id = {MOVING_ID}")
    return MigrationMark()


def _standing(connection: sqlite3.Connection) -> TargetState:
    (empty,) = connection.execute(_EMPTY).fetchone()
    if _owner(connection) != MOVING_ID:
        return TargetState(bool(empty))
    name, state, mark = connection.execute(_MARKED).fetchone()
    return TargetState(bool(empty), (MigrationOrigin(name, state), MigrationMark.of(mark)))


def _put(connection: sqlite3.Connection, page: MigrationPage, name: str) -> None:
    marks = {"before": page.before.text, "after": page.after.text}
    if _owner(connection) != MOVING_ID:
        raise not_alone(name)
    if not connection.execute(_ADVANCE, marks).rowcount:
        if connection.execute(_IS_IN, (page.after.text,)).fetchone():
            return
        raise not_alone(name)
    columns = page.table.columns
    insert = f"INSERT INTO {page.table.name} ({', '.join(columns)}) VALUES ({_places(columns)})"  # noqa: S608  constants
    connection.executemany(insert, page.rows)


def _finish(connection: sqlite3.Connection, stop_reason: str, name: str) -> None:
    if _owner(connection) != MOVING_ID:
        raise not_alone(name)
    stop_all_work(connection, stop_reason)
    connection.execute(_NO_OLD_SESSIONS)
    connection.execute(_NEW_SESSIONS)
    connection.execute("DROP TABLE moving")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _places(columns: tuple[str, ...]) -> str:
    return ", ".join("?" * len(columns))

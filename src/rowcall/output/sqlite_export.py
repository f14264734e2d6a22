"""Writes rows to a table of a SQLite file: inserts or updates them by their key, all of them or none."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rowcall.model.errors import OutputError
from rowcall.output.cells import cell

_INTEGERS = range(-(2**63), 2**63)


class TableExport:
    """Writes rows to a table; creates the table and the columns that are missing.

    Whole numbers, numbers, text and null go in as such, true and false as 1 and 0, other values as compact JSON. Rows
    of the table that no row of the export has the key of stay as they are.
    """

    def __init__(self, connection: sqlite3.Connection, name: str, table: str, key: str) -> None:
        self._connection = connection
        self._name = name
        self._table = _quoted(table)
        self._key = key
        self._columns = {row[1] for row in connection.execute(f"PRAGMA table_info({self._table})")}
        self._count = 0
        self._statements: dict[tuple[str, ...], str] = {}
        self._prepare(table)

    def write(self, row: Mapping[str, Any]) -> None:
        """Insert or update one row."""
        self._count += 1
        columns = tuple(row)
        if columns not in self._statements:
            self._statements[columns] = self._statement(columns)
        try:
            self._connection.execute(self._statements[columns], [_value(value) for value in row.values()])
        except (TypeError, ValueError) as error:
            what = f"{self._name}, row {self._count}: {error}"
            raise OutputError(what, remedy="a row holds text, numbers, true, false, null") from None

    def finish(self) -> None:
        """Commit the rows."""
        self._connection.execute("COMMIT")

    def _prepare(self, table: str) -> None:
        if not self._columns:
            self._connection.execute(f"CREATE TABLE {self._table} ({_quoted(self._key)} PRIMARY KEY)")
            self._columns = {self._key}
        elif self._key not in self._columns:
            what = f"{self._name}: the table {table!r} has no column {self._key!r}, which identifies a row"
            raise OutputError(what, remedy="name another table in [output] table")
        else:
            index = _quoted(f"{table} by {self._key}")
            self._connection.execute(
                f"CREATE UNIQUE INDEX IF NOT EXISTS {index} ON {self._table} ({_quoted(self._key)})"
            )

    def _statement(self, columns: tuple[str, ...]) -> str:
        for column in columns:
            if column not in self._columns:
                self._connection.execute(f"ALTER TABLE {self._table} ADD COLUMN {_quoted(column)}")
                self._columns.add(column)
        names = ", ".join(map(_quoted, columns))
        marks = ", ".join("?" * len(columns))
        changes = ", ".join(f"{_quoted(each)} = excluded.{_quoted(each)}" for each in columns if each != self._key)
        action = f"UPDATE SET {changes}" if changes else "NOTHING"
        return f"INSERT INTO {self._table} ({names}) VALUES ({marks}) ON CONFLICT DO {action}"  # noqa: S608  all quoted


@contextmanager
def open_table(path: Path, table: str, key: str) -> Iterator[TableExport]:
    """Open a table, which holds the new rows if the block ends without an error, and is unchanged otherwise.

    Args:
        path: the SQLite file, made where it is not there.
        table: the table's name.
        key: the column by whose value rows are found.

    Raises:
        OutputError: the file cannot be written, or is no database; the table has no such column.
    """
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield TableExport(connection, str(path), table, key)
    except sqlite3.Error as error:
        remedy = "choose a file that you may write and that no other program is using"
        raise OutputError(f"{path}: the table {table!r} cannot be written: {error}", remedy=remedy) from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _value(value: Any) -> Any:
    if value is None or isinstance(value, str) or type(value) is float:
        return value
    if isinstance(value, int) and value in _INTEGERS:
        return int(value)
    return cell(value)

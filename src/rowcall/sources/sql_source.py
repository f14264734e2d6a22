"""Reads the rows of a SQLite query: integers exact, text as text, NULL as null."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from rowcall.model.errors import InputError
from rowcall.model.job import Record
from rowcall.sources.bad_lines import BadLine, LineFault, bad_lines_file, stop
from rowcall.sources.byte_streams import check_is_there
from rowcall.sources.encodings import find_fault


class SqliteSource:
    """The rows of one SELECT, over a read-only connection."""

    rereadable = True
    uniform = True

    def __init__(self, path: Path, name: str, sql: str | None, *, quarantine: Path | None = None) -> None:
        self.name = name
        self.skipped = 0
        self.quarantine = quarantine
        self._path = path
        self._sql = sql

    def columns(self) -> list[str]:
        """Return the names of the query's columns."""
        with self._queried() as cursor:
            return self._names(cursor)

    def __iter__(self) -> Iterator[Record]:
        self.skipped = 0
        policy = bad_lines_file(self.quarantine) if self.quarantine else nullcontext(stop)
        with policy as report, self._queried() as cursor:
            names = self._names(cursor)
            for number, row in enumerate(cursor, 1):
                data, where = dict(zip(names, row, strict=True)), f"{self.name}, row {number}"
                if fault := next((found for item in data.items() if (found := _fault_of(*item))), None):
                    report(BadLine(where, number, fault, str(row)))
                    self.skipped += 1
                else:
                    yield Record(data, where)

    @contextmanager
    def _queried(self) -> Iterator[sqlite3.Cursor]:
        check_is_there(self._path, self.name)
        try:
            with closing(_connect(self._path)) as connection:
                yield connection.execute(self._sql or self._ask_for_sql(connection))
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise InputError(self.name, f"the query failed: {error}", remedy="correct sql in [input]") from error

    def _ask_for_sql(self, connection: sqlite3.Connection) -> str:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name")
        names = [name for (name,) in tables]
        remedy = 'set sql in [input], for example sql = "select id, text from reviews"'
        raise InputError(
            self.name, f"a database needs sql; its tables are: {', '.join(names) or 'none'}", remedy=remedy
        )

    def _names(self, cursor: sqlite3.Cursor) -> list[str]:
        names = [column[0] for column in cursor.description or ()]
        if not names:
            raise InputError(self.name, "the query returns no rows", remedy="sql in [input] must be a SELECT")
        if repeated := [repr(name) for name, count in Counter(names).items() if count > 1]:
            remedy = "name each column of the query: select a.id as a_id, b.id as b_id ..."
            raise InputError(self.name, f"repeated column name {', '.join(repeated)}", remedy=remedy)
        return names


def _connect(path: Path) -> sqlite3.Connection:
    """Open a read-only connection. Several threads may take records of one reading in turn."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    return connection


def _fault_of(name: str, value: Any) -> LineFault | None:
    if isinstance(value, str):
        fault = find_fault(value, "utf-8")
        return LineFault(f"column {name!r}: {fault.what}", "correct it in the database") if fault else None
    if isinstance(value, bytes):
        return LineFault(f"column {name!r} contains a blob", f"select hex({name}) or cast({name} as text) instead")
    if isinstance(value, float) and not math.isfinite(value):
        return LineFault(
            f"column {name!r} contains {value}, which JSON does not have", f"select nullif({name}, ...) instead"
        )
    return None

"""Rows of a SQLite query, as SQLite has them: integers exact, text as text, NULL as null."""

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
from rowcall.sources.bad_lines import BadLine, LineFault, setting_aside, stop
from rowcall.sources.byte_streams import check_is_there
from rowcall.sources.encodings import find_fault


class SqliteSource:
    """The rows of one SELECT over a connection that cannot write (see base.py)."""

    rereadable = True
    uniform = True

    def __init__(self, path: Path, name: str, sql: str | None, *, quarantine: Path | None = None) -> None:
        self.name = name
        self.skipped = 0
        self.quarantine = quarantine
        self._path = path
        self._sql = sql

    def columns(self) -> list[str]:
        """The names of the query's columns."""
        with self._queried() as cursor:
            return self._names(cursor)

    def __iter__(self) -> Iterator[Record]:
        self.skipped = 0
        policy = setting_aside(self.quarantine) if self.quarantine else nullcontext(stop)
        with policy as report, self._queried() as cursor:
            names = self._names(cursor)
            for number, row in enumerate(cursor, 1):
                data, where = dict(zip(names, row, strict=True)), f"{self.name}, row {number}"
                if fault := _find_fault(data):
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
            raise InputError(self.name, f"the query failed: {error}", remedy="see sql under [input]") from error

    def _ask_for_sql(self, connection: sqlite3.Connection) -> str:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name")
        names = [name for (name,) in tables]
        remedy = 'set sql under [input], such as sql = "select id, text from reviews"'
        raise InputError(self.name, f"a database needs sql; it holds {', '.join(names) or 'no tables'}", remedy=remedy)

    def _names(self, cursor: sqlite3.Cursor) -> list[str]:
        names = [column[0] for column in cursor.description or ()]
        if not names:
            raise InputError(self.name, "the query gives no rows", remedy="sql under [input] must be a SELECT")
        if repeated := [repr(name) for name, count in Counter(names).items() if count > 1]:
            remedy = "name each column of the query: select a.id as a_id, b.id as b_id ..."
            raise InputError(self.name, f"repeated column name {', '.join(repeated)}", remedy=remedy)
        return names


def _connect(path: Path) -> sqlite3.Connection:
    """A connection that cannot write. The records of one reading may be taken by several threads in turn."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    return connection


def _find_fault(data: dict[str, Any]) -> LineFault | None:
    return next((fault for name, value in data.items() if (fault := _fault_of(name, value))), None)


def _fault_of(name: str, value: Any) -> LineFault | None:
    if isinstance(value, str):
        fault = find_fault(value, "utf-8")
        return LineFault(f"column {name!r}: {fault.what}", "mend it in the database") if fault else None
    if isinstance(value, bytes):
        return LineFault(f"column {name!r} holds a blob", f"select hex({name}) or cast({name} as text) instead")
    if isinstance(value, float) and not math.isfinite(value):
        return LineFault(f"column {name!r} holds {value}, which is not JSON", f"select nullif({name}, ...) instead")
    return None

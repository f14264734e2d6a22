"""Reads Parquet (with pyarrow, the extra ``parquet``) and Excel's .xlsx (with python-calamine, the extra ``xlsx``).

Dates and times become ISO-8601 text. Decimals keep their digits. NaN becomes null, because pandas writes missing values
as NaN.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from rowcall.model import json_values
from rowcall.model.errors import InputError
from rowcall.model.job import Record
from rowcall.sources.bad_lines import BadLine, LineFault, bad_lines_file, stop
from rowcall.sources.byte_streams import check_is_there
from rowcall.sources.encodings import empty, find_fault

BATCH = 1000
"""Rows of a Parquet file in memory at a time."""

Rows = Iterator[Sequence[Any]]
OpenTable = AbstractContextManager[tuple[list[str], Rows]]
"""Opens to the names of the columns, and the rows."""


class TableFile:
    """The rows of a table. Messages name a row by its number, from 1.

    Args:
        path: the file.
        name: its name in messages.
        opened: opens the table, as often as it is called.
        quarantine: the file for bad rows. None: a bad row ends the reading.
    """

    rereadable = True
    uniform = True

    def __init__(
        self, path: Path, name: str, opened: Callable[[], OpenTable], *, quarantine: Path | None = None
    ) -> None:
        self.name = name
        self.skipped = 0
        self.quarantine = quarantine
        self._path = path
        self._opened = opened

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        with self._checked() as (names, _):
            return names

    def __iter__(self) -> Iterator[Record]:
        self.skipped = 0
        policy = bad_lines_file(self.quarantine) if self.quarantine else nullcontext(stop)
        with policy as report, self._checked() as (names, rows):
            for number, row in enumerate(rows, 1):
                data, where = dict(zip(names, map(_value, row), strict=True)), f"{self.name}, row {number}"
                if fault := _fault(data):
                    report(BadLine(where, number, fault, str(row)))
                    self.skipped += 1
                else:
                    yield Record(data, where)

    @contextmanager
    def _checked(self) -> Iterator[tuple[list[str], Rows]]:
        check_is_there(self._path, self.name)
        with self._opened() as (names, rows):
            if not names:
                raise empty(self.name)
            twice = [repr(name) for name, count in Counter(names).items() if count > 1]
            if twice or not all(name.strip() for name in names):
                what = f"repeated column name {', '.join(twice)}" if twice else "a column without a name"
                raise InputError(self.name, what, remedy="give each column a name of its own")
            yield names, rows


def parquet_table(path: Path, name: str) -> Callable[[], OpenTable]:
    """Return a function that opens a Parquet file. Its rows are read in batches, so that memory stays flat."""

    @contextmanager
    def opened() -> Iterator[tuple[list[str], Rows]]:
        try:
            from pyarrow import ArrowException, parquet
        except ImportError:
            raise InputError(name, "Parquet needs pyarrow", remedy="pip install 'rowcall[parquet]'") from None
        try:
            with parquet.ParquetFile(path) as file:
                names = list(file.schema_arrow.names)
                batches = ([column.to_pylist() for column in batch.columns] for batch in file.iter_batches(BATCH))
                yield names, (row for columns in batches for row in zip(*columns, strict=True))
        except (ArrowException, OSError) as error:
            raise InputError(name, f"cannot be read as Parquet: {error}", remedy="write the file again") from error

    return opened


def xlsx_table(path: Path, name: str, sheet: str | None) -> Callable[[], OpenTable]:
    """Return a function that opens a sheet of an Excel file. The first row that is not empty names the columns.

    The whole sheet is in memory.
    """

    @contextmanager
    def opened() -> Iterator[tuple[list[str], Rows]]:
        try:
            from python_calamine import CalamineError, CalamineWorkbook
        except ImportError:
            raise InputError(name, ".xlsx needs python-calamine", remedy="pip install 'rowcall[xlsx]'") from None
        try:
            book = CalamineWorkbook.from_path(path)
        except (CalamineError, OSError) as error:
            raise InputError(name, f"cannot be read as .xlsx: {error}", remedy="save it again as .xlsx") from error
        if sheet is not None and sheet not in book.sheet_names:
            raise InputError(name, f"has no sheet {sheet!r}", remedy=f"the sheets are: {', '.join(book.sheet_names)}")
        found = book.get_sheet_by_name(sheet) if sheet is not None else book.get_sheet_by_index(0)
        rows = ([_whole(cell) for cell in row] for row in found.to_python() if any(cell != "" for cell in row))
        yield [str(_value(cell)) for cell in next(rows, [])], rows

    return opened


def _value(value: Any) -> Any:
    """Return a cell as a JSON value. A value that JSON does not have stays, and ``_fault`` reports it."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else json_values.Number(str(value))
    if isinstance(value, Decimal) and value.is_finite():
        return json_values.Number(format(value, "f"))
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    return {str(key): _value(item) for key, item in value.items()} if isinstance(value, dict) else value


def _whole(value: Any) -> Any:
    """Turn 12345.0 into 12345: Excel stores every number as a float, and ids must not get a decimal point."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _fault(data: dict[str, Any]) -> LineFault | None:
    for column, value in data.items():
        if isinstance(value, str):
            if fault := find_fault(value, "utf-8"):
                return LineFault(f"column {column!r}: {fault.what}", "correct it in the file")
        elif isinstance(value, bytes):
            return LineFault(f"column {column!r} contains bytes", "write them as text")
        elif isinstance(value, float) and math.isinf(value):
            return LineFault(
                f"column {column!r} contains {value}, which JSON does not have", "leave the cell empty instead"
            )
    return None

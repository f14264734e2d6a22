"""Parquet, by pyarrow (the extra ``parquet``)."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, BinaryIO

from rowcall.model.errors import OutputError
from rowcall.output.cells import cell
from rowcall.output.row_spool import Columns

GROUP = 10_000
"""Number of rows in a row group; memory holds one group at a time."""


class ParquetExport:
    """Writes booleans, integers and floats as typed columns, everything else as text or compact JSON.

    Args:
        file: where to.
        name: of the file, for messages.
        columns: with what they hold.

    Raises:
        OutputError: pyarrow is not installed.
    """

    def __init__(self, file: BinaryIO, name: str, columns: Columns) -> None:
        pa, parquet = require_pyarrow(name)
        kinds = {
            "bool": (pa.bool_(), _plain),
            "int": (pa.int64(), _plain),
            "float": (pa.float64(), _number),
            "text": (pa.string(), _text),
        }
        chosen = {column: kinds[_kind(types)] for column, types in columns.items()}
        self._read = {column: read for column, (_, read) in chosen.items()}
        self._schema = pa.schema([(column, type_) for column, (type_, _) in chosen.items()])
        self._name = name
        self._table = pa.Table
        self._errors = (pa.ArrowInvalid, OverflowError, TypeError, ValueError)
        self._writer = parquet.ParquetWriter(file, self._schema)
        self._rows: list[Mapping[str, Any]] = []

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        self._rows.append(row)
        if len(self._rows) == GROUP:
            self._flush()

    def finish(self) -> None:
        """Write the remaining rows and the end of the file."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        try:
            self._write_group()
        except BaseException:
            self._writer.is_open = False  # otherwise it would write the end of the file when it is garbage-collected
            raise

    def _write_group(self) -> None:
        try:
            data = {column: [read(row.get(column)) for row in self._rows] for column, read in self._read.items()}
            self._writer.write_table(self._table.from_pydict(data, schema=self._schema))
        except self._errors as error:
            raise OutputError(f"{self._name}: {error}", remedy="write a .jsonl file instead") from None
        self._rows = []


def require_pyarrow(name: str) -> tuple[Any, Any]:
    """``pyarrow`` and its module for Parquet.

    Raises:
        OutputError: it is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise OutputError(f"{name}: Parquet needs pyarrow", remedy="pip install 'rowcall[parquet]'") from None
    return pa, parquet


def _kind(types: set[type]) -> str:
    """Return the type of a column: integers mixed with floats are floats, any other mixture is text."""
    seen = types - {NoneType}
    if seen == {bool}:
        return "bool"
    if seen == {int}:
        return "int"
    return "float" if seen and seen <= {int, float} else "text"


def _plain(value: Any) -> Any:
    return value


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _text(value: Any) -> str | None:
    return None if value is None else cell(value)

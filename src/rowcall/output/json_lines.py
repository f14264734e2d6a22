"""One JSON object a line, in UTF-8; numbers as they were written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

from rowcall.model import json_values
from rowcall.model.errors import OutputError


class JsonLinesExport:
    """Rows as objects, each with the keys it has."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._count = 0

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        self._count += 1
        self._file.write(line_of(row, self._name, self._count) + b"\n")

    def finish(self) -> None:
        """Do nothing: every row has been written."""


def line_of(row: Mapping[str, Any], name: str, number: int) -> bytes:
    """Return a row as one line of JSON, without the line end.

    Raises:
        OutputError: JSON does not have a value of the row.
    """
    try:
        return json_values.dumps(dict(row))
    except TypeError as error:
        where = f"{name}, row {number}"
        raise OutputError(f"{where}: {error}", remedy="a row holds text, numbers, true, false, null") from None

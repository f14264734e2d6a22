"""One JSON object a line, in UTF-8; numbers as they were written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

from rowcall import values
from rowcall.errors import OutputError


class JsonLinesExport:
    """Rows as objects, each with the keys it has."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._count = 0

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        self._count += 1
        try:
            line = values.dumps(dict(row))
        except TypeError as error:
            where = f"{self._name}, row {self._count}"
            raise OutputError(f"{where}: {error}", remedy="a row holds text, numbers, true, false, null") from None
        self._file.write(line + b"\n")

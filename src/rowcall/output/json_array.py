"""One JSON array of objects, one object a line, in UTF-8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

from rowcall.output.json_lines import line_of


class JsonArrayExport:
    """Rows as objects, each with the keys it has."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._count = 0

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        self._count += 1
        line = line_of(row, self._name, self._count)
        self._file.write((b"[\n" if self._count == 1 else b",\n") + line)

    def finish(self) -> None:
        """Close the array."""
        self._file.write(b"\n]\n" if self._count else b"[]\n")

"""CSV quoted as RFC 4180 has it, and TSV without quotes; UTF-8.

Lines end in LF rather than in that paper's CRLF: it is what the other text tools of POSIX write, and readers of CSV
take both.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO

from rowcall.errors import OutputError
from rowcall.exports.cells import cell


class DelimitedExport:
    """Rows as lines under a header line; a column that a row lacks stays empty.

    Args:
        file: where to.
        name: of the file, for messages.
        columns: the header.
        line: makes a line of cells, with its end.
    """

    def __init__(self, file: BinaryIO, name: str, columns: Iterable[str], line: Callable[[Iterable[str]], str]) -> None:
        self._file = file
        self._name = name
        self._line = line
        self._columns = dict.fromkeys(columns)
        self._count = 0
        if self._columns:
            self._put(self._columns)

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        self._count += 1
        if not row.keys() <= self._columns.keys():
            raise self._error(
                f"column {next(name for name in row if name not in self._columns)!r} is not in the header"
            )
        try:
            self._put([cell(row.get(name)) for name in self._columns])
        except (TypeError, ValueError) as error:
            raise self._error(str(error)) from None

    def finish(self) -> None:
        """Nothing is left to write."""

    def _put(self, cells: Iterable[str]) -> None:
        self._file.write(self._line(cells).encode())

    def _error(self, what: str) -> OutputError:
        return OutputError(f"{self._name}, row {self._count}: {what}", remedy="write a .jsonl file instead")


class _Echo:
    """A file for csv's writer that hands each line back, with LF for its end.

    The writer itself must believe in CRLF: told to end lines in LF, it leaves a lone CR unquoted.
    """

    def write(self, line: str) -> str:
        return line.removesuffix("\r\n") + "\n"


csv_line: Callable[[Iterable[str]], str] = csv.writer(_Echo()).writerow
"""Cells as a line of CSV, in double quotes where it takes them."""

_TSV_CANNOT = re.compile("[\t\r\n]")


def tsv_line(cells: Iterable[str]) -> str:
    """Cells as a line of TSV.

    Raises:
        ValueError: a cell holds a tab or a line end.
    """
    cells = list(cells)
    if found := next((text for text in cells if _TSV_CANNOT.search(text)), None):
        raise ValueError(f"a tab or line end, which .tsv cannot hold, in {found[:40]!r}")
    return "\t".join(cells) + "\n"

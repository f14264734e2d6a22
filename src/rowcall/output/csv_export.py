"""CSV quoted as RFC 4180 has it, and TSV without quotes; UTF-8.

Lines end in LF rather than in that paper's CRLF: it is what the other text tools of POSIX write, and readers of CSV
take both.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO

from rowcall.model.errors import OutputError
from rowcall.output.cells import cell

GROUP = 1 << 16
"""Rows are formatted in blocks of this many characters."""

Cells = Sequence[str]


class DelimitedExport:
    """Rows as lines under a header line; a column that a row lacks stays empty.

    Args:
        file: where to.
        name: of the file, for messages.
        columns: the header.
        lines: makes lines of rows, each with its end.
        check: raises ValueError for a row that ``lines`` could not write; None: it can write all.
        at_once: each row is written before the next one comes.

    Raises:
        OutputError: a column's name that the file cannot hold.
    """

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        columns: Iterable[str],
        lines: Callable[[Sequence[Cells]], str],
        check: Callable[[Cells], None] | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        self._file = file
        self._name = name
        self._lines = lines
        self._check = check
        self._columns = dict.fromkeys(columns)
        self._count = 0
        self._rows: list[Cells] = []
        self._size = 0
        self._group = 0 if at_once else GROUP
        if self._columns:
            self._take(list(self._columns))
            self.finish()

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        self._count += 1
        if not row.keys() <= self._columns.keys():
            raise self._error(
                f"column {next(name for name in row if name not in self._columns)!r} is not in the header"
            )
        try:
            self._take([cell(row.get(name)) for name in self._columns])
        except (TypeError, ValueError) as error:
            raise self._error(str(error)) from None

    def finish(self) -> None:
        """Write the rows that are still in memory."""
        try:
            self._file.write(self._lines(self._rows).encode())
        except UnicodeEncodeError:
            raise self._unwritable() from None
        self._rows, self._size = [], 0

    def _take(self, cells: Cells) -> None:
        if self._check:
            self._check(cells)
        self._rows.append(cells)
        self._size += sum(map(len, cells)) + len(cells)
        if self._size > self._group:
            self.finish()

    def _unwritable(self) -> OutputError:
        """Return the error for the first row in memory that UTF-8 cannot encode."""
        first = self._count - len(self._rows) + 1
        for number, cells in enumerate(self._rows, first):
            try:
                "".join(cells).encode()
            except UnicodeEncodeError as error:
                return self._error(str(error), number)
        raise AssertionError("all rows can be written one by one")

    def _error(self, what: str, number: int | None = None) -> OutputError:
        row = self._count if number is None else number
        where = f"{self._name}, row {row}" if row else f"{self._name}, its header"
        return OutputError(f"{where}: {what}", remedy="write a .jsonl file instead")


def csv_lines(rows: Sequence[Cells]) -> str:
    """Format rows as CSV, with double quotes around the cells that need them."""
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    text = written.getvalue()
    return _with_quoted_returns(rows) if "\r" in text else text


def _with_quoted_returns(rows: Sequence[Cells]) -> str:
    """Format rows of which a cell holds a CR, which csv's writer leaves unquoted when lines end in LF."""
    lines: list[str] = []
    csv.writer(_LfLines(lines)).writerows(rows)
    return "".join(lines)


class _LfLines:
    """Takes lines that csv's writer ends with CRLF, and keeps them with LF."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def write(self, line: str) -> None:
        self._lines.append(line.removesuffix("\r\n") + "\n")


def tsv_lines(rows: Sequence[Cells]) -> str:
    """Format rows as TSV."""
    return "".join("\t".join(cells) + "\n" for cells in rows)


def check_tsv(cells: Cells) -> None:
    """Refuse text that TSV cannot hold.

    Raises:
        ValueError: a cell holds a tab or a line end.
    """
    if found := next((text for text in cells if _TSV_CANNOT.search(text)), None):
        raise ValueError(f"a tab or line end, which .tsv cannot hold, in {found[:40]!r}")


_TSV_CANNOT = re.compile("[\t\r\n]")

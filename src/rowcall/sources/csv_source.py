"""CSV and TSV.

Every value is the text of its cell. Messages name a record by the line of the file on which it starts. Blank lines are
skipped. A line with fewer or more cells than columns is bad, and so is a quote that is not closed, or that is closed in
the middle of a cell. Repeated and empty column names are errors.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TextIO

from rowcall.model.errors import InputError
from rowcall.model.job import Record
from rowcall.sources.bad_lines import BadLine, LineFault, Report, stop
from rowcall.sources.encodings import empty, find_fault

CELL_LIMIT = 1 << 26
"""The most characters in one cell: 64 Mi. A longer cell means that a quote was not closed."""


@dataclass(frozen=True, slots=True)
class Delimited:
    """Lines of cells with a delimiter between them. The first line names the columns unless ``header`` does."""

    name: str
    delimiter: str
    quoting: bool
    header: Sequence[str] | None = None
    uniform: ClassVar[bool] = True

    def columns(self, text: TextIO) -> list[str]:
        """Return the names in the header line, or ``header``."""
        return self._columns(_PhysicalLines(text))

    def records(self, text: TextIO, report: Report) -> Iterator[Record]:
        """Yield one record per line, or per several lines if a quoted cell spans them."""
        lines = _PhysicalLines(text)
        columns = self._columns(lines)
        width = len(columns)
        for row in self._rows(lines, report):
            if len(row) == width:
                yield Record(dict(zip(columns, row, strict=True)), f"{self.name}:{lines.first}")
            else:
                report(self._bad(lines, self._ragged(len(row), width)))

    def _columns(self, lines: _PhysicalLines) -> list[str]:
        if self.header is None:
            names = next(self._rows(lines, stop), [])
            where = f"{self.name}:{lines.first}"
        else:
            names = list(self.header) if lines.any_left() else []
            where = f"{self.name}: header"
        if not names:
            raise empty(self.name)
        _check_names(names, where)
        return names

    def _rows(self, lines: _PhysicalLines, report: Report) -> Iterator[list[str]]:
        """Yield rows that are not blank and contain no forbidden character; ``lines`` knows where each row started."""
        reader = self._reader(lines)
        while True:
            lines.advance()
            try:
                row = next(reader, None)
            except csv.Error as error:
                # an open quote swallows the lines after it: read those again, as records of their own
                lines.give_back()
                report(self._bad(lines, _misquoted(error)))
                continue
            if row is None:
                return
            if fault := find_fault(lines.raw, lines.encoding):
                report(self._bad(lines, fault))
            elif row:
                yield row

    def _reader(self, lines: _PhysicalLines) -> Iterator[list[str]]:
        # the limit is global to the process: never lower what other code has set
        csv.field_size_limit(max(csv.field_size_limit(), CELL_LIMIT))
        if self.quoting:
            return csv.reader(lines, delimiter=self.delimiter, strict=True)
        return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE, strict=True)

    def _ragged(self, cells: int, columns: int) -> LineFault:
        if cells < columns:
            return LineFault(f"{cells} cells, fewer than the {columns} columns", "add the missing cells")
        quotes = "double quotes" if self.quoting else "double quotes, and quoting = true in [input]"
        return LineFault(
            f"{cells} cells, more than the {columns} columns", f"a cell that contains the delimiter needs {quotes}"
        )

    def _bad(self, lines: _PhysicalLines, fault: LineFault) -> BadLine:
        return BadLine(f"{self.name}:{lines.first}", lines.first, fault, lines.raw)


class _PhysicalLines:
    """The lines of a text, and those of the record that is being read.

    Attributes:
        first: the number of the first line of that record.
        encoding: the encoding of the text.
    """

    def __init__(self, text: TextIO) -> None:
        self.first = 1
        self.encoding = text.encoding
        self._text = text
        self._taken: list[str] = []
        self._given_back: list[str] = []

    def __iter__(self) -> _PhysicalLines:
        return self

    def __next__(self) -> str:
        line = self._given_back.pop() if self._given_back else next(self._text)
        self._taken.append(line)
        return line

    @property
    def raw(self) -> str:
        """The record as it is in the file."""
        return "".join(self._taken)

    def any_left(self) -> bool:
        """Return whether there is another line."""
        if line := next(self._text, ""):
            self._given_back.append(line)
        return bool(line)

    def advance(self) -> None:
        """Go to the next record."""
        self.first += len(self._taken)
        self._taken = []

    def give_back(self) -> None:
        """Keep only the first line of the record; the others will be read again, as records of their own."""
        self._given_back += self._taken[:0:-1]
        del self._taken[1:]


def _misquoted(error: csv.Error) -> LineFault:
    what = next((words for part, words in _CSV_ERRORS.items() if part in str(error)), str(error))
    return LineFault(what, "write a quote inside a quoted cell twice; with quoting = false in [input] quotes are text")


_CSV_ERRORS = {
    "expected after": "text after a closing quote",
    "unexpected end of data": "a quote that is not closed",
    "larger than field limit": f"a cell over {CELL_LIMIT:,} characters, or a quote that is not closed",
}


def _check_names(names: Sequence[str], where: str) -> None:
    """Refuse repeated names, and empty names, which no template could use.

    Raises:
        InputError: lists these names.
    """
    remedy = "rename it there, or remove the header line and set header = [...] in [input]"
    if repeated := [repr(name) for name, count in Counter(names).items() if count > 1 and name]:
        raise InputError(where, f"repeated column name {', '.join(repeated)}", remedy=remedy)
    if unnamed := [str(number) for number, name in enumerate(names, 1) if not name.strip()]:
        raise InputError(where, f"column {', '.join(unnamed)} has no name", remedy=remedy)

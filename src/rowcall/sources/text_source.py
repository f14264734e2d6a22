"""A source that is a text file: opened, decoded, and read in one of the text formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import ClassVar, Protocol, TextIO

from rowcall.model.job import Record
from rowcall.sources.bad_lines import BadLine, Report, bad_lines_file, stop
from rowcall.sources.byte_streams import ByteSource, opened
from rowcall.sources.encodings import decoded


class TextFormat(Protocol):
    """Reads a text as records. ``uniform``: all records have the same columns."""

    uniform: ClassVar[bool]

    def columns(self, text: TextIO) -> list[str] | None:
        """Return the columns, from the start of the text; None if it does not name any.

        Raises:
            InputError: the text is empty, or a column has no usable name.
        """

    def records(self, text: TextIO, report: Report) -> Iterator[Record]:
        """Yield the records; bad lines go to ``report``.

        Raises:
            InputError: the text is empty, or the rest of it cannot be read.
        """


class TextSource:
    """A source made of bytes, an encoding, a text format and a policy for bad lines."""

    def __init__(
        self,
        source: ByteSource,
        format_for: Callable[[bytes], TextFormat],
        *,
        encoding: str | None = None,
        quarantine: Path | None = None,
    ) -> None:
        self.name = source.name
        self.rereadable = source.rereadable
        self.uniform = False
        self.skipped = 0
        self.quarantine = quarantine
        self._input = source
        self._format_for = format_for
        self._encoding = encoding
        self._columns: list[str] | None = None

    def columns(self) -> list[str] | None:
        """Return the columns. Bad lines are reported only when the records are read."""
        if self._columns is None:
            with self._opened(peek=True) as (text, layout):
                self._columns, self.uniform = layout.columns(text), layout.uniform
        return self._columns

    def __iter__(self) -> Iterator[Record]:
        self.skipped = 0
        policy = bad_lines_file(self.quarantine) if self.quarantine else nullcontext(stop)
        with policy as report, self._opened(peek=False) as (text, layout):
            yield from layout.records(text, self._counting(report))

    @contextmanager
    def _opened(self, *, peek: bool) -> Iterator[tuple[TextIO, TextFormat]]:
        with opened(self._input, peek=peek) as binary:
            head = binary.peek(64)[:64]
            with decoded(binary, head, self._encoding) as text:
                yield text, self._format_for(head)

    def _counting(self, report: Report) -> Report:
        def count(bad: BadLine) -> None:
            report(bad)
            self.skipped += 1

        return count


SAMPLE = 100
"""Number of records whose keys are the columns, if the input does not name its columns."""


def columns_of(records: Iterator[Record]) -> list[str] | None:
    """Return the keys of the first 100 records, in order of appearance; None if there are none."""
    names: dict[str, None] = {}
    for _, record in zip(range(SAMPLE), records, strict=False):
        names.update(dict.fromkeys(record.data))
    return list(names) or None

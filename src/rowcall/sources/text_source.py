"""A source that is a text in some format: opened, decoded, read line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import ClassVar, Protocol, TextIO

from rowcall.model.job import Record
from rowcall.sources.bad_lines import BadLine, Report, setting_aside, stop
from rowcall.sources.byte_streams import ByteSource, opened
from rowcall.sources.encodings import decoded


class TextFormat(Protocol):
    """How a text is read as records; ``uniform`` where all have the same columns."""

    uniform: ClassVar[bool]

    def columns(self, text: TextIO) -> list[str] | None:
        """The columns, from the start of the text; None where it does not say.

        Raises:
            InputError: the text is empty, or its columns have no usable names.
        """

    def records(self, text: TextIO, report: Report) -> Iterator[Record]:
        """The records; bad lines go to ``report``.

        Raises:
            InputError: the text is empty, or cannot be read on from here.
        """


class TextSource:
    """An input, an encoding, a format and a policy for bad lines make a source (see base.py)."""

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
        """The columns; bad lines are left to the reading."""
        if self._columns is None:
            with self._opened(peek=True) as (text, layout):
                self._columns, self.uniform = layout.columns(text), layout.uniform
        return self._columns

    def __iter__(self) -> Iterator[Record]:
        self.skipped = 0
        with self._policy() as report, self._opened(peek=False) as (text, layout):
            yield from layout.records(text, self._counting(report))

    @contextmanager
    def _opened(self, *, peek: bool) -> Iterator[tuple[TextIO, TextFormat]]:
        with opened(self._input, peek=peek) as binary:
            head = binary.peek(64)[:64]
            with decoded(binary, head, self._encoding) as text:
                yield text, self._format_for(head)

    def _policy(self) -> AbstractContextManager[Report]:
        return setting_aside(self.quarantine) if self.quarantine else nullcontext(stop)

    def _counting(self, report: Report) -> Report:
        def count(bad: BadLine) -> None:
            report(bad)
            self.skipped += 1

        return count


SAMPLE = 100
"""Records whose keys are taken for the columns where the input does not say."""


def columns_of(records: Iterator[Record]) -> list[str] | None:
    """The keys of the first records, in the order in which they appear; None where there are none."""
    names: dict[str, None] = {}
    for _, record in zip(range(SAMPLE), records, strict=False):
        names.update(dict.fromkeys(record.data))
    return list(names) or None

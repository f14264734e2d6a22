"""The contract of a source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from rowcall.model.job import Record


@runtime_checkable
class Source(Protocol):
    """An input that yields records one at a time. Each iteration starts again at the first record.

    Attributes:
        name: the file as the config writes it, for messages.
        rereadable: False if the input can be read only once (stdin, a pipe). ``columns`` may still be called first.
        uniform: every record has exactly the columns that ``columns`` returns. Valid only after that call.
        skipped: number of bad lines in the latest reading (``on_bad = "skip"``).
        quarantine: file of those lines, written when the reading is complete. None: a bad line ends the reading.
    """

    name: str
    rereadable: bool
    uniform: bool
    skipped: int
    quarantine: Path | None

    def columns(self) -> list[str] | None:
        """Return the columns in order; None if the input has none. For JSON: the keys of the first 100 records.

        Raises:
            InputError: the file is missing, empty or unreadable.
        """

    def __iter__(self) -> Iterator[Record]:
        """Yield the records in the order of the input.

        Raises:
            InputError: a line cannot be read; the message has its number and what to do.
        """

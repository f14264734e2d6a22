"""The contract of a source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from rowcall.model.job import Record


@runtime_checkable
class Source(Protocol):
    """An input that can be read from its start, as often as it is asked, one record at a time.

    Attributes:
        name: the file as it was written in the config, for messages.
        rereadable: False where one reading is all there is (stdin, a pipe); ``columns`` may still come first.
        uniform: every record has the columns that ``columns`` gives and no others; known once that was asked.
        skipped: bad lines set aside by the latest reading (``on_bad = "skip"``).
        quarantine: the file they are in once that reading is complete; None where a bad line stops the reading.
    """

    name: str
    rereadable: bool
    uniform: bool
    skipped: int
    quarantine: Path | None

    def columns(self) -> list[str] | None:
        """The columns, in order; None where the input does not say (JSON Lines: the keys of its first 100 records).

        Raises:
            InputError: missing, empty or unreadable file.
        """

    def __iter__(self) -> Iterator[Record]:
        """Records in the order of the input.

        Raises:
            InputError: a line that cannot be read, with its number and what to do.
        """

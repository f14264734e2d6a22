"""Stands for an input that another process reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rowcall.model.job import Record


class NoInput:
    """A source without records and without columns."""

    name = "another process's input"
    rereadable = True
    uniform = False
    skipped = 0
    quarantine: Path | None = None

    def columns(self) -> None:
        """Return None: this process does not read the input."""
        return

    def __iter__(self) -> Iterator[Record]:
        return iter(())

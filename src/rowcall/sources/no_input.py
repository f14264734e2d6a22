"""In the place of an input that another process reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rowcall.model.job import Record


class NoInput:
    """No record, and no word about columns (see base.py)."""

    name = "another process's input"
    rereadable = True
    uniform = False
    skipped = 0
    quarantine: Path | None = None

    def columns(self) -> None:
        """None: nobody has looked."""
        return

    def __iter__(self) -> Iterator[Record]:
        return iter(())

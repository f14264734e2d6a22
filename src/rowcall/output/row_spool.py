"""Keeps rows on disk until all their columns are known."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from rowcall.output.base import Export

Columns = dict[str, set[type]]
"""Columns in their order, with the types of the values in each; an integer beyond 64 bits counts as text."""

_INTEGERS = range(-(2**63), 2**63)


class Spooled:
    """Collects the keys of all rows as columns, in order of appearance, before it writes the first row.

    Args:
        spool: an empty file of this process's own.
        make: makes the export itself, once the columns are known.
    """

    def __init__(self, spool: BinaryIO, make: Callable[[Columns], Export]) -> None:
        self._spool = spool
        self._make = make
        self._columns: Columns = {}

    def write(self, row: Mapping[str, Any]) -> None:
        """Keep one row."""
        for column, value in row.items():
            wide = type(value) is int and value not in _INTEGERS
            self._columns.setdefault(column, set()).add(str if wide else type(value))
        pickle.dump(dict(row), self._spool, pickle.HIGHEST_PROTOCOL)

    def finish(self) -> None:
        """Write them all."""
        export = self._make(self._columns)
        for row in self._rows():
            export.write(row)
        export.finish()

    def _rows(self) -> Iterator[dict[str, Any]]:
        end = self._spool.tell()
        self._spool.seek(0)
        while self._spool.tell() < end:
            yield pickle.load(self._spool)  # noqa: S301  written above, into a file that nobody else can name

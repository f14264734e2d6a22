"""What a pass has enqueued so far, in a file on this machine: an input may be larger than memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

_TABLE = "CREATE TABLE seen (job INTEGER PRIMARY KEY, content INTEGER, place TEXT)"
_SEE = "INSERT OR IGNORE INTO seen VALUES (?, ?, ?)"
_SEEN = "SELECT job, content, place FROM seen WHERE job IN (SELECT value FROM json_each(?))"


class PassRecord(NamedTuple):
    """A record of the pass: the row of its job, a digest of its content, and where it was read."""

    job: int
    content: int
    place: str


class PassRecords:
    """The records of one pass of one kind, in a temporary file, by the rows of their jobs: the order of the input."""

    def __init__(self) -> None:
        self._of: tuple[str, int] | None = None
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._file.execute(_TABLE)
        self._file.execute("BEGIN")  # never committed: only this process uses it

    def start_pass(self, kind: str, pass_: int) -> None:
        """Forget everything if it belongs to another pass."""
        if self._of != (kind, pass_):
            self._file.execute("DELETE FROM seen")
            self._of = (kind, pass_)

    def among(self, jobs: Iterable[int]) -> dict[int, PassRecord]:
        """Those of these jobs that the pass brought."""
        return {job: PassRecord(job, *rest) for job, *rest in self._file.execute(_SEEN, (json.dumps(list(jobs)),))}

    def add(self, sights: Iterable[PassRecord]) -> None:
        """Remember records."""
        self._file.executemany(_SEE, sights)

    def close(self) -> None:
        """Delete the file; safe to repeat."""
        self._file.close()

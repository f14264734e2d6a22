"""Reads the done records of another batch job with their answers, as input of a second step."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rowcall.model import json_values
from rowcall.model.errors import InputError
from rowcall.model.job import Record
from rowcall.sources.byte_streams import check_is_there
from rowcall.sources.text_source import columns_of

GROUP = 500
"""Records read at a time. No transaction stays open between two groups, so a run of that job is not held up."""

_KINDS = "SELECT DISTINCT kind FROM requests ORDER BY kind"
# The plus keeps SQLite from using the index on kind: with it, every page would need a sort.
_PAGE = """
    SELECT rowid, id, record, answer FROM records
    WHERE rowid > ? AND +kind = ? AND status = 'done' ORDER BY rowid LIMIT ?
"""


class StoreSource:
    """The done records of a store, in the order in which they were added.

    A record has the columns of its input, and one more with its answer. It keeps the key of the other job.

    Args:
        path: the file of the store.
        name: its name in messages.
        kind: the batch job; None: the only one in the store.
        column: the column for the answer.
    """

    rereadable = True
    uniform = False
    skipped = 0
    quarantine: Path | None = None

    def __init__(self, path: Path, name: str, kind: str | None, column: str) -> None:
        self.name = name
        self._path = path
        self._kind = kind
        self._column = column

    def columns(self) -> list[str] | None:
        """Return the columns of the first 100 records and of the answer; None if no record is done yet."""
        return columns_of(iter(self))

    def __iter__(self) -> Iterator[Record]:
        with self._connected() as connection:
            kind, last = self._only_kind(connection), 0
            while rows := connection.execute(_PAGE, (last, kind, GROUP)).fetchall():
                for _, key, record, answer in rows:
                    yield Record(self._data(key, record, answer), f"{self.name}, key {key}", key)
                last = rows[-1][0]

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        check_is_there(self._path, self.name)
        try:
            url = f"{self._path.resolve().as_uri()}?mode=ro"
            with closing(sqlite3.connect(url, uri=True, check_same_thread=False, timeout=30)) as connection:
                yield connection
        except sqlite3.Error as error:
            remedy = "[input] store must name the store of another rowcall config"
            raise InputError(self.name, f"cannot be read as a store: {error}", remedy=remedy) from error

    def _only_kind(self, connection: sqlite3.Connection) -> str:
        kinds = [str(kind) for (kind,) in connection.execute(_KINDS)]
        if self._kind in kinds or (self._kind is None and len(kinds) == 1):
            return self._kind or kinds[0]
        what = f"has no batch job {self._kind!r}" if self._kind else f"has {len(kinds)} batch jobs"
        known = f"set [input] kind to one of: {', '.join(kinds)}" if kinds else "run the other job first"
        raise InputError(self.name, what, remedy=known)

    def _data(self, key: str, record: str | None, answer: str) -> dict[str, Any]:
        if record is None:
            remedy = "export that job to a file and read that file instead"
            raise InputError(f"{self.name}, key {key}", "rowcall prune has deleted its record", remedy=remedy)
        data: dict[str, Any] = json_values.read_back(record)
        if self._column in data:
            what = f"the records already have a column {self._column!r}, which is the name for the answer"
            raise InputError(self.name, what, remedy='give the answer another name: [input] result = "answer"')
        return data | {self._column: json_values.read_back(answer)}

"""The done records of another batch job, with their answers: the second step of work in two steps."""

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
"""Records read at a time; no transaction is open between two groups, so that a run of that job is not held up."""

_KINDS = "SELECT DISTINCT kind FROM requests ORDER BY kind"
# The plus keeps the index on kind out of it, which is in another order.
_PAGE = """
    SELECT rowid, id, record, answer FROM records
    WHERE rowid > ? AND +kind = ? AND status = 'done' ORDER BY rowid LIMIT ?
"""


class StoreSource:
    """The done records of a store, in the order in which they came into it (see base.py).

    A record has the columns of its own input, and its answer in one more. Its key is that of the other job.

    Args:
        path: the store.
        name: it in messages.
        kind: the batch job; None: the only one.
        column: where the answer goes.
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
        """The columns of the first 100 records, and that of the answer; None where none is done yet."""
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
            remedy = "[input] store is the store of another config of rowcall"
            raise InputError(self.name, f"cannot be read as a store: {error}", remedy=remedy) from error

    def _only_kind(self, connection: sqlite3.Connection) -> str:
        kinds = [str(kind) for (kind,) in connection.execute(_KINDS)]
        if self._kind in kinds or (self._kind is None and len(kinds) == 1):
            return self._kind or kinds[0]
        what = f"holds no batch job {self._kind!r}" if self._kind else f"holds {len(kinds)} batch jobs"
        known = f"[input] kind is one of: {', '.join(kinds)}" if kinds else "run the other job first"
        raise InputError(self.name, what, remedy=known)

    def _data(self, key: str, record: str | None, answer: str) -> dict[str, Any]:
        if record is None:
            remedy = "export that job to a file, and read the file"
            raise InputError(f"{self.name}, key {key}", "its record was dropped by prune", remedy=remedy)
        data: dict[str, Any] = json_values.read_back(record)
        if self._column in data:
            what = f"column {self._column!r} is there already, and the answer would be called so too"
            raise InputError(self.name, what, remedy='[input] result = "answer" gives it another name')
        return data | {self._column: json_values.read_back(answer)}

"""Joins the input with its answers: the input again, in its order, with the new columns beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from rowcall.job import Record, Status
from rowcall.producer import Keying
from rowcall.sources.base import Source
from rowcall.store.base import Answer, Entry, Reader

GROUP = 500
"""Records joined at a time."""

Row = dict[str, Any]
Columns = Mapping[str, Callable[[Any], Any]]
"""New columns: how each is read from an answer."""


class Writer(Protocol):
    """Takes rows in order."""

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row."""


@dataclass(frozen=True, slots=True)
class Join:
    """An input and the answers in a store."""

    reader: Reader
    kind: str
    source: Source
    keying: Keying
    columns: Columns

    async def write(self, writer: Writer, *, only: Status | None = None) -> int:
        """Write each record with its answer; returns how many rows.

        A record without an answer, or with an answer to what it was before an edit, keeps empty new columns.

        Args:
            writer: where rows go.
            only: leave out records whose job has another status.
        """
        written, records = 0, iter(self.source)
        while group := await asyncio.to_thread(self._read, records):
            answers = await self.reader.answers(self.kind, list({entry.key for _, entry in group}))
            for record, entry in group:
                answer = answers.get(entry.key)
                if only is None or _status(answer) is only:
                    writer.write(record.data | self._new(answer, entry))
                    written += 1
        return written

    def _read(self, records: Iterator[Record]) -> list[tuple[Record, Entry]]:
        return [(record, self.keying.entry(record)) for record in islice(records, GROUP)]

    def _new(self, answer: Answer | None, entry: Entry) -> Row:
        if answer is None or answer.status is not Status.DONE or answer.input_hash != entry.input_hash:
            return dict.fromkeys(self.columns)
        return {name: read(answer.value) for name, read in self.columns.items()}


def _status(answer: Answer | None) -> Status:
    return Status.PENDING if answer is None or answer.status is Status.RUNNING else answer.status

"""Joins the input with its answers: the input again, in its order, with the new columns beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
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
class Joined:
    """A record of the input and what became of it; ``answer`` is None where the store does not know it."""

    record: Record
    entry: Entry
    answer: Answer | None

    @property
    def status(self) -> Status:
        """The status of its job; what runs or is not there yet is pending."""
        return Status.PENDING if self.answer is None or self.answer.status is Status.RUNNING else self.answer.status

    @property
    def done(self) -> Answer | None:
        """Its current answer; one to what it was before an edit does not count."""
        answer = self.answer
        current = answer is not None and answer.status is Status.DONE and answer.input_hash == self.entry.input_hash
        return answer if current else None


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
        written = 0
        async for group in self.groups(only):
            for joined in group:
                writer.write(joined.record.data | self._new(joined))
            written += len(group)
        return written

    async def groups(self, only: Status | None = None) -> AsyncIterator[list[Joined]]:
        """The records of the input in its order, 500 at a time; ``only`` those with that status."""
        records = iter(self.source)
        while group := await asyncio.to_thread(self._read, records):
            answers = await self.reader.answers(self.kind, list({entry.key for _, entry in group}))
            found = [Joined(record, entry, answers.get(entry.key)) for record, entry in group]
            yield [joined for joined in found if only is None or joined.status is only]

    def _read(self, records: Iterator[Record]) -> list[tuple[Record, Entry]]:
        return [(record, self.keying.entry(record)) for record in islice(records, GROUP)]

    def _new(self, joined: Joined) -> Row:
        if (answer := joined.done) is None:
            return dict.fromkeys(self.columns)
        return {name: read(answer.value) for name, read in self.columns.items()}

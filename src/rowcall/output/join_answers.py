"""Joins the input with its answers: each record in its order, with the new columns beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Protocol

from rowcall.model.errors import OutputError
from rowcall.model.job import Record, Status
from rowcall.sources.base import Source
from rowcall.sources.keys import Keying
from rowcall.store.base import Reader
from rowcall.store.types import Answer

GROUP = 1000
"""Number of records that are joined at a time."""

Row = dict[str, Any]
Columns = Mapping[str, Callable[[Any], Any]]
"""New columns: how each is read from an answer."""


class Writer(Protocol):
    """Takes rows in order."""

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row."""


class JoinedRow(NamedTuple):
    """A record of the input with its answer, which is None if the store does not hold the record."""

    record: Record
    key: str
    input_hash: str
    answer: Answer | None

    @property
    def status(self) -> Status:
        """The status of its job; a running or unknown record counts as pending."""
        return Status.PENDING if self.answer is None or self.answer.status is Status.RUNNING else self.answer.status

    @property
    def done(self) -> Answer | None:
        """Its current answer; an answer to the record before an edit does not count."""
        answer = self.answer
        if answer is None or answer.status is not Status.DONE or answer.input_hash != self.input_hash:
            return None
        return answer


@dataclass(frozen=True, slots=True)
class OutputShape:
    """Which columns the rows of an export have.

    Attributes:
        keep: the input's columns that are written; None: all.
        overwrite: a new column may take the place of one of the input's.
        flatten: an object in a new column becomes columns of its own: ``result.label``.
        key_as: a column that the key is written to.
    """

    keep: tuple[str, ...] | None = None
    overwrite: bool = False
    flatten: bool = False
    key_as: str | None = None

    def kept(self, names: Iterable[str]) -> list[str]:
        """Return the input columns that are written, in the order asked for."""
        return list(names) if self.keep is None else [name for name in self.keep if name in set(names)]

    def header(self, source: Source, columns: Columns) -> list[str] | None:
        """Return the columns of all rows; None if only the rows themselves tell."""
        names = source.columns() if source.uniform and not self.flatten else None
        if names is None:
            return None
        return list(dict.fromkeys((*([self.key_as] if self.key_as else []), *self.kept(names), *columns)))


@dataclass(frozen=True, slots=True)
class Join:
    """An input and the answers in a store."""

    reader: Reader
    kind: str
    source: Source
    keying: Keying
    columns: Columns
    shape: OutputShape = OutputShape()

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
                writer.write(self._row(joined))
            written += len(group)
        return written

    async def groups(self, only: Status | None = None) -> AsyncIterator[list[JoinedRow]]:
        """Yield the records of the input in order, read 1,000 at a time; ``only`` those with this status."""
        records = iter(self.source)
        while group := await asyncio.to_thread(self._read, records):
            answers = await self.reader.answers(self.kind, list({key for _, key, _ in group}))
            found = [JoinedRow(record, key, hash_, answers.get(key)) for record, key, hash_ in group]
            yield [joined for joined in found if only is None or joined.status is only]

    def _read(self, records: Iterator[Record]) -> list[tuple[Record, str, str]]:
        return [(record, *self.keying.known_by(record)) for record in islice(records, GROUP)]

    def _row(self, joined: JoinedRow) -> Row:
        shape, kept, new = self.shape, joined.record.data, self._new(joined)
        if shape.keep is not None:
            kept = {name: kept[name] for name in shape.kept(kept)}
        if not shape.overwrite and not kept.keys().isdisjoint(new):
            clash = column_clash_message(kept.keys() & new.keys())
            raise OutputError(f"{joined.record.where}: {clash}", remedy=COLUMN_CLASH_REMEDY)
        return {shape.key_as: joined.key, **kept, **new} if shape.key_as else {**kept, **new}

    def _new(self, joined: JoinedRow) -> Row:
        answer, flatten = joined.done, self.shape.flatten
        if answer is None:
            return {} if flatten else dict.fromkeys(self.columns)
        new = {name: read(answer.value) for name, read in self.columns.items()}
        return dict(_flat(new)) if flatten else new


COLUMN_CLASH_REMEDY = (
    "rename the new column in [output] columns, leave the input column out with keep, or set overwrite = true"
)


def column_clash_message(names: Iterable[str]) -> str:
    """Return the message about new columns that the input also has."""
    return f"[output] columns names {', '.join(map(repr, sorted(names)))}, which the input also has"


def _flat(row: Row, before: str = "") -> Iterator[tuple[str, Any]]:
    """Return the values of a row, with those inside objects under dotted names."""
    for name, value in row.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value

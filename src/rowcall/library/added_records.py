"""Keeps the records that a program adds, so that a run, its results and its export can each read them."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

from rowcall.calls.handlers import NotPlain, plain
from rowcall.model import json_values
from rowcall.model.errors import InputError
from rowcall.model.job import Record
from rowcall.sources import open_source
from rowcall.sources.base import Source

Row = Mapping[str, Any]
Records = str | Path | Source | Iterable[Row] | AsyncIterable[Row]
"""What can be added: a path, a source from ``rowcall.read``, rows, or an asynchronous iterable of rows."""


class AddedRecords:
    """All added inputs as one source (see sources/base.py), in the order in which they were added."""

    name = "records"
    rereadable = True
    uniform = False
    skipped = 0
    quarantine: Path | None = None

    def __init__(self) -> None:
        self._sources: list[Source] = []

    def __bool__(self) -> bool:
        return bool(self._sources)

    @classmethod
    def of(cls, source: Source) -> Self:
        """Return a single input."""
        added = cls()
        added.append(source)
        return added

    def append(self, source: Source) -> None:
        """Add an input."""
        self._sources.append(source)

    def columns(self) -> list[str] | None:
        """Return the columns of all inputs; None if those of one input are not known in advance."""
        each = [source.columns() for source in self._sources]
        names = dict.fromkeys(name for columns in each if columns for name in columns)
        return list(names) if each and None not in each else None

    def __iter__(self) -> Iterator[Record]:
        for source in self._sources:
            yield from source


class TemporaryCopies:
    """Copies inputs that can be read only once into files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    async def source_of(self, records: Records) -> Source | None:
        """Return a source that can be read repeatedly; None if there are no records.

        Raises:
            InputError: a row is not a mapping, or contains a value that JSON cannot hold.
        """
        if isinstance(records, str | Path):
            records = open_source(records)
        if isinstance(records, Source) and records.rereadable:
            return records
        self._count += 1
        path = self._folder / f"{self._count}.jsonl"
        with path.open("wb") as file:
            await _write(records, file)
        return open_source(path, name="records") if path.stat().st_size else None


async def _write(records: Source | Iterable[Row] | AsyncIterable[Row], file: BinaryIO) -> None:
    number = 0
    if isinstance(records, AsyncIterable):
        async for row in records:
            number += 1
            file.write(_line(row, f"record {number}"))
        return
    for item in records:
        number += 1
        row, where = (item.data, item.where) if isinstance(item, Record) else (item, f"record {number}")
        file.write(_line(row, where))


def _line(row: Any, where: str) -> bytes:
    if not isinstance(row, Mapping):
        raise InputError(where, f"is a {type(row).__name__}, not a mapping", remedy='a row is {"column": value}')
    try:
        return json_values.dumps(plain(dict(row), "row")) + b"\n"
    except NotPlain as error:
        remedy = "a row can hold text, numbers, True, False, None, and lists and dicts of these"
        raise InputError(where, str(error), remedy=remedy) from None

"""Reads the records of a batch job with what became of them, and compares new records with the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rowcall.config import Config
from rowcall.model.errors import NoStore
from rowcall.model.job import Record, Status
from rowcall.run.job_store import open_reader
from rowcall.sources.keys import Keying
from rowcall.store.base import Reader
from rowcall.store.types import Answer, Enqueued, Entry

GROUP = 500
"""Records looked up in the store at a time."""


@dataclass(frozen=True, slots=True)
class Result:
    """One record and what became of it.

    Attributes:
        key: the record's key.
        status: ``done``, ``failed``, ``pending``, ``running`` or ``cancelled``.
        value: what the handler returned for it; None if it is not done.
        row: the record.
        error: why it failed, for a person; None if it did not.
        reason: why it failed, as a stable code; None if it did not.
    """

    key: str
    status: Status
    value: Any
    row: dict[str, Any]
    error: str | None = None
    reason: str | None = None


_UNCHANGED = {
    Status.PENDING: Enqueued(waiting=1),
    Status.RUNNING: Enqueued(waiting=1),
    Status.DONE: Enqueued(done=1),
    Status.FAILED: Enqueued(failed=1),
    Status.CANCELLED: Enqueued(cancelled=1),
}


async def compare(config: Config, records: Iterable[Record], keying: Keying) -> Enqueued:
    """Count how many records are new, changed, waiting or ended in the store, which is only read."""
    counts = Enqueued()
    try:
        opened = await open_reader(config)
    except NoStore:
        async for group in _groups(records, keying):
            counts += Enqueued(new=len(group))
        return counts
    async with opened as reader:
        async for group in _groups(records, keying):
            found = await _answers(reader, config.name, group)
            for _, entry in group:
                answer = found.get(entry.key)
                if answer is None:
                    counts += Enqueued(new=1)
                elif answer.input_hash == entry.input_hash:
                    counts += _UNCHANGED[answer.status]
                else:
                    counts += Enqueued(changed=1)
    return counts


async def results_of_input(
    reader: Reader, kind: str, records: Iterable[Record], keying: Keying
) -> AsyncIterator[Result]:
    """Yield the results of ``records``, in their order."""
    async for group in _groups(records, keying):
        found = await _answers(reader, kind, group)
        for record, entry in group:
            yield _result(entry.key, record.data, found.get(entry.key), entry.input_hash)


async def results_of_store(reader: Reader, kind: str) -> AsyncIterator[Result]:
    """Yield the results of all records of a kind, in the order of the store."""
    last = 0
    while page := await reader.page(kind, after=last, limit=GROUP):
        found = await reader.answers(kind, [job.key for job in page])
        for job in page:
            row = await reader.payload(job.row)
            yield _result(job.key, row or {}, found.get(job.key))
        last = page[-1].row


async def _groups(records: Iterable[Record], keying: Keying) -> AsyncIterator[list[tuple[Record, Entry]]]:
    rest = iter(records)
    while group := await asyncio.to_thread(_next_group, rest, keying):
        yield group


def _next_group(records: Iterator[Record], keying: Keying) -> list[tuple[Record, Entry]]:
    return [(record, keying.entry(record)) for record in islice(records, GROUP)]


async def _answers(reader: Reader, kind: str, group: list[tuple[Record, Entry]]) -> dict[str, Answer]:
    return await reader.answers(kind, list({entry.key for _, entry in group}))


def _result(key: str, row: dict[str, Any], answer: Answer | None, input_hash: str | None = None) -> Result:
    """Join a record with its answer. An answer to an earlier version of the record does not count."""
    if answer is None or (input_hash is not None and answer.input_hash != input_hash):
        return Result(key, Status.PENDING, None, row)
    return Result(key, answer.status, answer.value, row, answer.error, answer.reason)

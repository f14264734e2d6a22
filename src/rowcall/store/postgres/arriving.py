"""What was handed out in a batch file, and the answers that come back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rowcall.store.import_rules import Asked, Found, Taken, fate, taken
from rowcall.store.postgres import settling
from rowcall.store.postgres.pool import Connection
from rowcall.store.postgres.queries import fetch, known
from rowcall.store.settlement_values import ready
from rowcall.store.types import Arrived, Fate

_HAND_OUT = """
    INSERT INTO rowcall.handed_out (job, request, input_hash, at)
    SELECT rowid, request, input_hash, (SELECT rowcall.moment()) FROM rowcall.jobs WHERE kind = %s AND id = ANY(%s)
    ON CONFLICT (job, request, input_hash) DO UPDATE SET at = excluded.at, answered = false
"""
_FOUND = """
    SELECT id, rowid, status, epoch, request, input_hash FROM rowcall.jobs
    WHERE kind = %s AND id = ANY(%s) ORDER BY rowid FOR NO KEY UPDATE
"""
_NOTES = "SELECT job, request, input_hash, answered FROM rowcall.handed_out WHERE job = ANY(%s)"
_ADOPTED = "SELECT id, adopted_as FROM rowcall.requests WHERE kind = %s AND adopted_as IS NOT NULL"
_TAKE = "UPDATE rowcall.jobs SET epoch = epoch + 1, session = NULL, status = 'running' WHERE rowid = ANY(%s)"
_KEEP = "UPDATE rowcall.jobs SET epoch = epoch + 1 WHERE rowid = ANY(%s)"
_ANSWERED = "UPDATE rowcall.handed_out SET answered = true WHERE job = ANY(%s)"


async def hand_out(connection: Connection, kind: str, keys: Sequence[str]) -> None:
    """Note what the jobs ask at this moment."""
    await connection.execute(_HAND_OUT, (kind, known(keys)))


async def arrive(connection: Connection, kind: str, arrived: Sequence[Arrived]) -> list[Fate]:
    """Take answers in, in their order; returns what became of each."""
    adopted = {(old, new) for old, new in await fetch(connection, _ADOPTED, (kind,))}
    return [fate for group in _distinct(arrived) for fate in await _take_in(connection, kind, group, adopted)]


def _distinct(arrived: Sequence[Arrived]) -> Iterator[list[Arrived]]:
    """Groups in which no key comes twice: a second answer is judged by what the first one left."""
    group: dict[str, Arrived] = {}
    for each in arrived:
        if each.key in group:
            yield list(group.values())
            group = {}
        group[each.key] = each
    yield list(group.values())


async def _take_in(
    connection: Connection, kind: str, arrived: Sequence[Arrived], adopted: set[tuple[int, int]]
) -> list[Fate]:
    found = await _find(connection, kind, [each.key for each in arrived])
    jobs = [found.get(each.key) for each in arrived]
    met = [
        fate(job, each.action, lambda old, new: (old, new) in adopted) for job, each in zip(jobs, arrived, strict=True)
    ]
    await _settle(connection, [one for each in zip(jobs, arrived, met, strict=True) if (one := taken(*each))])
    return met


async def _find(connection: Connection, kind: str, keys: Sequence[str]) -> dict[str, Found]:
    jobs = await fetch(connection, _FOUND, (kind, known(keys)))
    notes: dict[int, list[tuple[Asked, bool]]] = {}
    for row, request, input_hash, answered in await fetch(connection, _NOTES, ([row for _, row, *_ in jobs],)):
        notes.setdefault(row, []).append(((request, input_hash), answered))
    return {
        key: Found.of(row, status, epoch, (request, input_hash), notes.get(row, ()))
        for key, row, status, epoch, request, input_hash in jobs
    }


async def _settle(connection: Connection, answers: Sequence[Taken]) -> None:
    if not answers:
        return
    await connection.execute(_TAKE, ([each.found.row for each in answers if each.current],))
    await connection.execute(_KEEP, ([each.found.row for each in answers if not each.current],))
    await settling.settle(connection, ready([each.settlement for each in answers]))
    await connection.execute(_ANSWERED, ([each.found.row for each in answers],))

"""Keeping the store in good order: dropping what is no longer needed, looking for what should not be there."""

from __future__ import annotations

from contextlib import suppress

from rowcall.model.errors import Busy, StoreError
from rowcall.store.postgres import sessions
from rowcall.store.postgres.faults import translated
from rowcall.store.postgres.pool import Connection, Database
from rowcall.store.postgres.queries import fetch, first, patiently
from rowcall.store.types import Flaw, LeftBehind, Pruned

_LEFT_BEHIND = """
    SELECT jobs.rowid, id, record FROM rowcall.jobs JOIN rowcall.payloads ON payloads.job = jobs.rowid
    WHERE jobs.rowid > %(after)s AND kind = %(kind)s AND status = 'pending' AND pass <> %(pass)s
    ORDER BY jobs.rowid LIMIT %(limit)s
"""

_OLD = """
    FROM rowcall.payloads WHERE job IN (
        SELECT rowid FROM rowcall.jobs WHERE kind = %s AND status = 'done' AND updated_at < %s::timestamptz)
"""
_PRUNABLE = "SELECT count(*)" + _OLD
_PRUNE = "DELETE" + _OLD
_SIZE = "SELECT pg_total_relation_size('rowcall.payloads')"
_GIVE_BACK = "VACUUM rowcall.payloads"

_ANSWERLESS = """
    SELECT rowid FROM rowcall.jobs WHERE kind = %s AND status = 'done' AND NOT EXISTS (
        SELECT 1 FROM rowcall.results
        WHERE job = jobs.rowid AND request = jobs.request AND input_hash = jobs.input_hash AND NOT superseded)
"""
_NO_ANSWER_JSON = """
    SELECT jobs.rowid FROM rowcall.results JOIN rowcall.jobs ON jobs.rowid = job
    WHERE kind = %s AND NOT rowcall.is_json(value)
"""
_NO_PAYLOAD_JSON = """
    SELECT jobs.rowid FROM rowcall.payloads JOIN rowcall.jobs ON jobs.rowid = job
    WHERE kind = %s AND NOT rowcall.is_json(record)
"""
_FLAWS = {
    "done without an answer": _ANSWERLESS,
    "an answer that is no JSON": _NO_ANSWER_JSON,
    "a payload that is no JSON": _NO_PAYLOAD_JSON,
}
_COUNT = """
    SELECT count(*), (SELECT id FROM rowcall.jobs WHERE rowid = min(flawed.row)) FROM (FLAWED) AS flawed (row)
"""


async def left_behind(connection: Connection, kind: str, pass_: int, after: int, limit: int) -> list[LeftBehind]:
    """Pending jobs with a payload that a pass did not bring."""
    await patiently(connection)
    wanted = {"kind": kind, "pass": pass_, "after": after, "limit": limit}
    return [LeftBehind(*row) for row in await fetch(connection, _LEFT_BEHIND, wanted)]


async def flaws(connection: Connection, kind: str) -> list[Flaw]:
    """What rowcall never writes."""
    await patiently(connection)
    found = [
        (what, await fetch(connection, _COUNT.replace("FLAWED", query), (kind,))) for what, query in _FLAWS.items()
    ]
    return [Flaw(what, count, key) for what, ((count, key),) in found if count]


async def prunable(connection: Connection, kind: str, before: str) -> int:
    """Payloads of jobs that were done before a time."""
    await patiently(connection)
    return int(await first(connection, _PRUNABLE, (kind, before)))


async def prune(database: Database, kind: str, before: str) -> Pruned:
    """Drop payloads, then give back to the disk what the end of their table no longer holds.

    Raises:
        StoreError: a run is alive.
    """
    dropped, size = await database.run(_drop, database.name, kind, before)
    with suppress(Busy):  # what is dropped is dropped; its place is used again
        await _give_back(database)
    return Pruned(dropped, max(0, size - await database.read(_size)))


async def _give_back(database: Database) -> None:
    """Outside of any transaction, as that command has to be."""
    with translated(database.name):
        connection = await database.connect()
        try:
            if not database.pooled:
                await connection.execute("SET statement_timeout = 0")
            await connection.execute(_GIVE_BACK)
        finally:
            await connection.close()


async def _drop(connection: Connection, name: str, kind: str, before: str) -> tuple[int, int]:
    if alive := await sessions.living(connection):
        what = f"{name}: a run is alive ({', '.join(alive)})"
        raise StoreError(what, remedy="Stop it (Ctrl+C loses nothing) or let it end, then prune again.")
    await patiently(connection)
    size = await _size(connection)
    return (await connection.execute(_PRUNE, (kind, before))).rowcount, size


async def _size(connection: Connection) -> int:
    return int(await first(connection, _SIZE))

"""Enqueueing records, a thousand at a time, by a few statements for each chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rowcall.model.errors import DuplicateKey
from rowcall.model.job import Status
from rowcall.store.entry_checks import UNCHANGED, EnqueueTarget, clash, digest
from rowcall.store.postgres.locks import lock_kind
from rowcall.store.postgres.pass_records import PassRecord, PassRecords
from rowcall.store.postgres.pool import Connection
from rowcall.store.types import Enqueued, Entry

_COLUMNS = """
    id, rowid, status, request, input_hash, pass,
    status <> 'done' AND NOT EXISTS (SELECT 1 FROM rowcall.payloads WHERE job = rowid)
"""
_FOUND = f"SELECT {_COLUMNS} FROM rowcall.jobs WHERE kind = %s AND id = ANY(%s::text[])"  # noqa: S608  constants
_LOCKED = f"""
    SELECT {_COLUMNS} FROM rowcall.jobs WHERE rowid = ANY(%s::bigint[]) ORDER BY rowid FOR NO KEY UPDATE
"""  # noqa: S608  constants
_COUNTING = "SELECT id FROM rowcall.requests WHERE id = %(request)s OR adopted_as = %(request)s"
_ANSWERED = """
    SELECT DISTINCT ON (job) job, request FROM unnest(%s::bigint[], %s::text[]) AS given(number, hash)
    JOIN rowcall.results ON job = number AND input_hash = hash AND NOT superseded AND request = ANY(%s::bigint[])
    ORDER BY job, epoch DESC
"""

_NEW = """
    WITH given AS (
        SELECT * FROM unnest(%(keys)s::text[], %(hashes)s::text[], %(payloads)s::text[]) WITH ORDINALITY
            AS given(key, hash, payload, place)
    ), new AS (
        INSERT INTO rowcall.jobs (id, kind, batch, request, input_hash, pass, created_at, updated_at)
        SELECT key, %(kind)s, %(batch)s, %(request)s, hash, %(pass)s, now, now
        FROM given, (SELECT rowcall.moment() AS now) AS clock ORDER BY place
        RETURNING rowid, id
    ), written AS (
        INSERT INTO rowcall.payloads (job, record) SELECT rowid, payload FROM new JOIN given ON key = id ORDER BY rowid
    )
    SELECT id, rowid FROM new
"""
_PAYLOADS = """
    INSERT INTO rowcall.payloads (job, record) SELECT * FROM unnest(%(rows)s::bigint[], %(payloads)s::text[])
    ON CONFLICT (job) DO UPDATE SET record = excluded.record
"""
_TOUCH = """
    UPDATE rowcall.jobs SET pass = %(pass)s,
        request = CASE status WHEN 'pending' THEN %(request)s ELSE request END
    WHERE rowid = ANY(%(rows)s::bigint[])
"""
_ASKED_ANEW = """
    pass = %(pass)s, input_hash = hash, batch = %(batch)s, attempts = 0, run_after = NULL, wait_ms = NULL, error = NULL,
    reason = NULL, updated_at = (SELECT rowcall.moment())
    FROM unnest(%(rows)s::bigint[], %(hashes)s::text[]) AS given(number, hash) WHERE rowid = number
"""
_EDIT = f"""
    UPDATE rowcall.jobs SET status = 'pending', epoch = epoch + 1, crashes = 0, request = %(request)s, {_ASKED_ANEW}
"""  # noqa: S608  constants
_EDIT_RUNNING = f"UPDATE rowcall.jobs SET request = %(request)s, {_ASKED_ANEW}"  # noqa: S608  constants
_RESTORE = """
    UPDATE rowcall.jobs SET status = 'done', epoch = epoch + 1, attempts = 0, crashes = 0, session = NULL,
        run_after = NULL, wait_ms = NULL, error = NULL, reason = NULL, pass = %(pass)s, request = answered,
        input_hash = hash, batch = %(batch)s, updated_at = (SELECT rowcall.moment())
    FROM unnest(%(rows)s::bigint[], %(hashes)s::text[], %(answered)s::bigint[]) AS given(number, hash, answered)
    WHERE rowid = number
"""


@dataclass(frozen=True, slots=True)
class _Known:
    """A stored job; ``bare``: it has no payload and is to be called."""

    row: int
    status: str
    request: int
    input_hash: str
    pass_: int | None
    bare: bool


@dataclass(slots=True)
class _Plan:
    """What is to be done with the entries of a chunk."""

    new: list[Entry] = field(default_factory=list)
    touched: list[tuple[int, Entry]] = field(default_factory=list)
    bare: list[tuple[int, Entry]] = field(default_factory=list)
    changed: list[tuple[int, Entry]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, many: int = 1) -> None:
        """Count entries under a name of ``Enqueued``."""
        if many:
            self.counts[name] = self.counts.get(name, 0) + many


@dataclass(frozen=True, slots=True)
class Brought:
    """What became of a chunk: the counts, the records that are new to the pass, and a clash that ended it early."""

    enqueued: Enqueued
    records: Sequence[PassRecord]
    duplicate: DuplicateKey | None


async def enqueue(
    connection: Connection, target: EnqueueTarget, entries: Sequence[Entry], records: PassRecords
) -> Brought:
    """Enqueue a chunk, up to its first duplicate with other content, which is returned to be raised.

    ``records`` is only read: the caller adds what was enqueued once that is committed.
    """
    await lock_kind(connection, target.kind)
    cursor = await connection.execute(_FOUND, (target.kind, [entry.key for entry in entries]))
    found = _known(await cursor.fetchall())
    firsts, duplicate = _firsts(entries, found, records)
    counting = await _counting(connection, target)
    plan = _planned(target, counting, firsts, found)
    rows = {key: known.row for key, known in found.items()} | await _write(connection, target, counting, plan)
    enqueued = Enqueued(**plan.counts, repeated=len(entries) - len(firsts))
    return Brought(enqueued, [PassRecord(rows[each.key], digest(each), each.where) for each in firsts], duplicate)


def _known(rows: Sequence[tuple[Any, ...]]) -> dict[str, _Known]:
    return {key: _Known(*rest) for key, *rest in rows}


def _firsts(
    entries: Sequence[Entry], found: Mapping[str, _Known], records: PassRecords
) -> tuple[list[Entry], DuplicateKey | None]:
    """The entries whose key is new to this pass, up to one that clashes."""
    earlier = records.among(known.row for known in found.values())
    before = {key: earlier[known.row][1:] for key, known in found.items() if known.row in earlier}
    firsts = []
    for entry in entries:
        this = (digest(entry), entry.where)
        other = before.setdefault(entry.key, this)
        if other is this:
            firsts.append(entry)
        elif other[0] != this[0]:
            return firsts, clash(entry, other[1])
    return firsts, None


async def _counting(connection: Connection, target: EnqueueTarget) -> set[int]:
    """The requests whose answers count for the request of the target."""
    cursor = await connection.execute(_COUNTING, {"request": target.request})
    return {number for (number,) in await cursor.fetchall()} | {target.request}


def _planned(target: EnqueueTarget, counting: set[int], entries: Sequence[Entry], found: Mapping[str, _Known]) -> _Plan:
    """Compare the entries with what is stored."""
    plan = _Plan()
    for entry in entries:
        known = found.get(entry.key)
        if known is None:
            plan.new.append(entry)
        elif known.request in counting and known.input_hash == entry.input_hash:
            _plan_unchanged(plan, target, entry, known)
        else:
            plan.changed.append((known.row, entry))
    plan.count("new", len(plan.new))
    return plan


def _plan_unchanged(plan: _Plan, target: EnqueueTarget, entry: Entry, known: _Known) -> None:
    plan.count(UNCHANGED[known.status])
    other_request = known.status == Status.PENDING and known.request != target.request
    if known.status != Status.DONE and (known.pass_ != target.pass_ or other_request):
        plan.touched.append((known.row, entry))
        if known.bare:
            plan.bare.append((known.row, entry))


async def _write(connection: Connection, target: EnqueueTarget, counting: set[int], plan: _Plan) -> dict[str, int]:
    """Write what is planned; returns the rows of new jobs by their keys."""
    shared = {"kind": target.kind, "pass": target.pass_, "request": target.request, "batch": target.batch}
    if plan.touched:
        await connection.execute(_TOUCH, shared | _columns(plan.touched))
    if plan.changed:
        await _change(connection, shared, counting, plan)
    if plan.bare or plan.changed:
        await connection.execute(_PAYLOADS, _columns(plan.bare + plan.changed))
    if not plan.new:
        return {}
    columns = {"keys": [each.key for each in plan.new], **_columns([(0, each) for each in plan.new])}
    return dict(await (await connection.execute(_NEW, shared | columns)).fetchall())


async def _change(connection: Connection, shared: dict[str, Any], counting: set[int], plan: _Plan) -> None:
    """Give changed records the answer that is known, or make them pending; their jobs are locked meanwhile."""
    cursor = await connection.execute(_LOCKED, ([row for row, _ in plan.changed],))
    running = {each.row for each in _known(await cursor.fetchall()).values() if each.status == Status.RUNNING}
    hashes = [entry.input_hash for _, entry in plan.changed]
    cursor = await connection.execute(_ANSWERED, ([row for row, _ in plan.changed], hashes, list(counting)))
    answered: dict[int, int] = dict(await cursor.fetchall())
    restored = [each for each in plan.changed if each[0] in answered]
    others = [each for each in plan.changed if each[0] not in answered]
    if restored:
        columns = _columns(restored) | {"answered": [answered[row] for row, _ in restored]}
        await connection.execute(_RESTORE, shared | columns)
    for statement, edited in ((_EDIT, False), (_EDIT_RUNNING, True)):
        if chosen := [each for each in others if (each[0] in running) is edited]:
            await connection.execute(statement, shared | _columns(chosen))
    plan.count("restored", len(restored))
    plan.count("changed", len(others))


def _columns(numbered: Sequence[tuple[int, Entry]]) -> dict[str, list[Any]]:
    """One array for each column."""
    return {
        "rows": [row for row, _ in numbered],
        "hashes": [entry.input_hash for _, entry in numbered],
        "payloads": [entry.payload for _, entry in numbered],
    }

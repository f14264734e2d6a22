"""Enqueueing records, a thousand at a time."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from rowcall.model.errors import DuplicateKey
from rowcall.model.job import Status
from rowcall.store.entry_checks import UNCHANGED, EnqueueTarget, clash, digest
from rowcall.store.sqlite.clock import stamp
from rowcall.store.types import Enqueued, Entry

# What this pass has enqueued so far, on disk: an input may be larger than memory. By the row of its job, so that it is
# written and looked up in the order of the input.
SEEN = """
    CREATE TEMP TABLE seen (job INTEGER PRIMARY KEY, content INTEGER, place TEXT);
    CREATE TEMP TABLE seen_of (kind TEXT, pass INTEGER);
"""
_SEEN_OF = "SELECT kind, pass FROM seen_of"
_SEE = "INSERT INTO seen VALUES (?, ?, ?)"
_SEEN = "SELECT job, content, place FROM seen WHERE job IN (SELECT value FROM json_each(?))"

_FOUND = """
    SELECT id, rowid, status, request, input_hash, pass, status <> 'done' AND rowid NOT IN (SELECT job FROM payloads)
    FROM jobs WHERE kind = ? AND id IN (SELECT value FROM json_each(?))
"""
_COUNTING = "SELECT id FROM requests WHERE id = :request OR adopted_as = :request"
_ANSWERED = """
    SELECT request FROM results
    WHERE job = :row AND input_hash = :hash AND superseded = 0
    AND request IN (SELECT id FROM requests WHERE id = :request OR adopted_as = :request)
    ORDER BY epoch DESC LIMIT 1
"""
_LAST_ROW = "SELECT coalesce(max(rowid), 0) FROM jobs"

_NEW = """
    INSERT INTO jobs (rowid, id, kind, batch, request, input_hash, pass, created_at, updated_at)
    VALUES (:row, :key, :kind, :batch, :request, :hash, :pass, :at, :at)
"""
_PAYLOAD = """
    INSERT INTO payloads (job, record) VALUES (:row, :payload) ON CONFLICT DO UPDATE SET record = excluded.record
"""
_TOUCH = """
    UPDATE jobs SET pass = :pass, request = CASE status WHEN 'pending' THEN :request ELSE request END WHERE rowid = :row
"""
_EDIT = """
    UPDATE jobs SET status = 'pending', epoch = epoch + 1, attempts = 0, crashes = 0, run_after = NULL, wait_ms = NULL,
        error = NULL, reason = NULL, pass = :pass, request = :request, input_hash = :hash, batch = :batch,
        updated_at = :at
    WHERE rowid = :row
"""
_EDIT_RUNNING = """
    UPDATE jobs SET attempts = 0, run_after = NULL, wait_ms = NULL, error = NULL, reason = NULL,
        pass = :pass, request = :request, input_hash = :hash, batch = :batch, updated_at = :at
    WHERE rowid = :row
"""
_RESTORE = """
    UPDATE jobs SET status = 'done', epoch = epoch + 1, attempts = 0, crashes = 0, session = NULL, run_after = NULL,
        wait_ms = NULL, error = NULL, reason = NULL, pass = :pass, request = :answered, input_hash = :hash,
        batch = :batch, updated_at = :at
    WHERE rowid = :row
"""

_Numbered = tuple[int, Entry]
"""An entry with the row of its job."""


@dataclass(slots=True)
class _Plan:
    """What is to be written for a chunk: parameters by statement, and the counts."""

    shared: dict[str, Any]
    counts: Counter[str] = field(default_factory=Counter)
    writes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def write(self, statement: str, row: int, entry: Entry, **more: Any) -> None:
        parameters = self.shared | more
        parameters |= {"row": row, "key": entry.key, "hash": entry.input_hash, "payload": entry.payload}
        self.writes.setdefault(statement, []).append(parameters)


def enqueue(
    connection: sqlite3.Connection, now: float, target: EnqueueTarget, entries: Sequence[Entry]
) -> tuple[Enqueued, DuplicateKey | None]:
    """Enqueue a chunk, up to its first duplicate with other content, which is returned to be raised."""
    keys = json.dumps([entry.key for entry in entries])
    found = {key: rest for key, *rest in connection.execute(_FOUND, (target.kind, keys))}
    firsts, duplicate = _firsts(connection, target, entries, {key: row for key, (row, *_) in found.items()})
    plan = _planned(connection, now, target, firsts, found)
    for statement, parameters in plan.writes.items():
        connection.executemany(statement, parameters)
    return Enqueued(**plan.counts, repeated=len(entries) - len(firsts)), duplicate


def _firsts(
    connection: sqlite3.Connection, target: EnqueueTarget, entries: Sequence[Entry], rows: dict[str, int]
) -> tuple[list[_Numbered], DuplicateKey | None]:
    """The entries whose key is new to this pass, up to one that clashes; ``rows`` are those of known keys."""
    _forget_other_passes(connection, target)
    seen = {row[0]: row for row in connection.execute(_SEEN, (json.dumps(list(rows.values())),))}
    (last,) = connection.execute(_LAST_ROW).fetchone()
    unused = count(last + 1)
    firsts, duplicate = [], None
    for entry in entries:
        row = rows[entry.key] if entry.key in rows else rows.setdefault(entry.key, next(unused))
        this = (row, digest(entry), entry.where)
        before = seen.setdefault(row, this)
        if before is this:
            firsts.append((row, entry))
        elif before[1] != this[1]:
            duplicate = clash(entry, before[2])
            break
    connection.executemany(_SEE, [seen[row] for row, _ in firsts])
    return firsts, duplicate


def _forget_other_passes(connection: sqlite3.Connection, target: EnqueueTarget) -> None:
    current = (target.kind, target.pass_)
    if connection.execute(_SEEN_OF).fetchone() != current:
        connection.execute("DELETE FROM seen")
        connection.execute("DELETE FROM seen_of")
        connection.execute("INSERT INTO seen_of VALUES (?, ?)", current)


def _planned(
    connection: sqlite3.Connection,
    now: float,
    target: EnqueueTarget,
    entries: Sequence[_Numbered],
    found: Mapping[str, Sequence[Any]],
) -> _Plan:
    """Compare the entries with what is stored."""
    shared = {"kind": target.kind, "pass": target.pass_, "request": target.request, "batch": target.batch}
    plan = _Plan(shared | {"at": stamp(now)})
    counting = {number for (number,) in connection.execute(_COUNTING, shared)} | {target.request}
    for row, entry in entries:
        old = found.get(entry.key)
        if old is None:
            _plan_new(plan, row, entry)
        elif old[2] in counting and old[3] == entry.input_hash:
            plan.counts[UNCHANGED[old[1]]] += 1
            if old[1] != Status.DONE:
                _plan_touched(plan, entry, *old)
        else:
            _plan_changed(connection, plan, entry, row, old[1])
    return plan


def _plan_new(plan: _Plan, row: int, entry: Entry) -> None:
    plan.counts["new"] += 1
    plan.write(_NEW, row, entry)
    plan.write(_PAYLOAD, row, entry)


def _plan_touched(
    plan: _Plan, entry: Entry, row: int, status: str, request: int, input_hash: str, pass_: int | None, bare: int
) -> None:
    if pass_ != plan.shared["pass"] or (status == Status.PENDING and request != plan.shared["request"]):
        plan.write(_TOUCH, row, entry)
        if bare:
            plan.write(_PAYLOAD, row, entry)


def _plan_changed(connection: sqlite3.Connection, plan: _Plan, entry: Entry, row: int, status: str) -> None:
    wanted = plan.shared | {"row": row, "hash": entry.input_hash}
    answered = connection.execute(_ANSWERED, wanted).fetchone()
    plan.write(_PAYLOAD, row, entry)
    if answered:
        plan.counts["restored"] += 1
        plan.write(_RESTORE, row, entry, answered=answered[0])
    else:
        plan.counts["changed"] += 1
        plan.write(_EDIT_RUNNING if status == Status.RUNNING else _EDIT, row, entry)

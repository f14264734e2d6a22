"""What was handed out in a batch file, and the answers that come back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from rowcall.store.import_rules import Found, Taken, fate, taken
from rowcall.store.settlement_values import ready
from rowcall.store.sqlite import settling
from rowcall.store.sqlite.clock import stamp
from rowcall.store.types import Arrived, Fate

_HAND_OUT = """
    INSERT INTO handed_out (job, request, input_hash, at)
    SELECT rowid, request, input_hash, :at FROM jobs
    WHERE kind = :kind AND id IN (SELECT value FROM json_each(:keys))
    ON CONFLICT DO UPDATE SET at = excluded.at, answered = 0
"""
_FOUND = """
    SELECT id, rowid, status, epoch, request, input_hash FROM jobs
    WHERE kind = ? AND id IN (SELECT value FROM json_each(?))
"""
_NOTES = "SELECT request, input_hash, answered FROM handed_out WHERE job = ?"
_ADOPTED = "SELECT 1 FROM requests WHERE id = ? AND adopted_as = ?"
_TAKE = "UPDATE jobs SET epoch = epoch + 1, session = NULL, status = 'running' WHERE rowid = ?"
_KEEP = "UPDATE jobs SET epoch = epoch + 1 WHERE rowid = ?"
_ANSWERED = "UPDATE handed_out SET answered = 1 WHERE job = ?"


def hand_out(connection: sqlite3.Connection, now: float, kind: str, keys: Sequence[str]) -> None:
    """Note what the jobs ask at this moment."""
    connection.execute(_HAND_OUT, {"at": stamp(now), "kind": kind, "keys": json.dumps(list(keys))})


def arrive(connection: sqlite3.Connection, now: float, kind: str, arrived: Sequence[Arrived]) -> list[Fate]:
    """Take answers in, in their order; returns what became of each."""
    return [_one(connection, now, kind, each) for each in arrived]


def _one(connection: sqlite3.Connection, now: float, kind: str, arrived: Arrived) -> Fate:
    found = _find(connection, kind, arrived.key)
    met = fate(found, arrived.action, lambda old, new: _adopted(connection, old, new))
    if answer := taken(found, arrived, met):
        _settle(connection, now, answer)
    return met


def _find(connection: sqlite3.Connection, kind: str, key: str) -> Found | None:
    row = connection.execute(_FOUND, (kind, json.dumps([key]))).fetchone()
    if row is None:
        return None
    _, number, status, epoch, request, input_hash = row
    notes = connection.execute(_NOTES, (number,))
    known = (((asked, hash_), bool(answered)) for asked, hash_, answered in notes)
    return Found.of(number, status, epoch, (request, input_hash), known)


def _adopted(connection: sqlite3.Connection, old: int, new: int) -> bool:
    return connection.execute(_ADOPTED, (old, new)).fetchone() is not None


def _settle(connection: sqlite3.Connection, now: float, answer: Taken) -> None:
    connection.execute(_TAKE if answer.current else _KEEP, (answer.found.row,))
    settling.settle(connection, now, ready([answer.settlement]))
    connection.execute(_ANSWERED, (answer.found.row,))

"""What was handed out in a batch file, and the answers that come back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from rowcall.job import Job
from rowcall.outcome import Action, Settlement
from rowcall.store.facts import Arrived, Fate
from rowcall.store.sqlite import settling
from rowcall.store.sqlite.clock import stamp

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

_Asked = tuple[int, str]
"""A request and an input_hash."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A job, and what was handed out of it and not answered; ``known`` where something was handed out at all."""

    row: int
    status: str
    epoch: int
    now: _Asked
    open: tuple[_Asked, ...]
    known: bool


def hand_out(connection: sqlite3.Connection, now: float, kind: str, keys: Sequence[str]) -> None:
    """Note what the jobs ask at this moment."""
    connection.execute(_HAND_OUT, {"at": stamp(now), "kind": kind, "keys": json.dumps(list(keys))})


def arrive(connection: sqlite3.Connection, now: float, kind: str, arrived: Sequence[Arrived]) -> list[Fate]:
    """Take answers in, in their order; returns what became of each."""
    return [_one(connection, now, kind, each) for each in arrived]


def _one(connection: sqlite3.Connection, now: float, kind: str, arrived: Arrived) -> Fate:
    found = _find(connection, kind, arrived.key)
    if found is None:
        return Fate.UNKNOWN
    fate = _fate(connection, found, arrived.action)
    if fate in (Fate.DONE, Fate.FAILED):
        _settle(connection, now, found, found.now, arrived, _TAKE)
    elif fate is Fate.CHANGED and arrived.action is Action.DONE and len(found.open) == 1:
        _settle(connection, now, found, found.open[0], arrived, _KEEP)
    return fate


def _find(connection: sqlite3.Connection, kind: str, key: str) -> _Found | None:
    row = connection.execute(_FOUND, (kind, json.dumps([key]))).fetchone()
    if row is None:
        return None
    _, number, status, epoch, request, input_hash = row
    notes = connection.execute(_NOTES, (number,)).fetchall()
    open_ = tuple((asked, hash_) for asked, hash_, answered in notes if not answered)
    return _Found(number, status, epoch, (request, input_hash), open_, bool(notes))


def _fate(connection: sqlite3.Connection, found: _Found, action: Action) -> Fate:
    if found.status == "running":
        return Fate.RUNNING
    if found.known and not found.open:
        return Fate.BEFORE
    if len(found.open) > 1 or (found.open and not _same(connection, found.open[0], found.now)):
        return Fate.CHANGED
    if found.status == "done" or (found.status == "failed" and action is Action.FAIL):
        return Fate.BEFORE
    return {Action.DONE: Fate.DONE, Action.FAIL: Fate.FAILED}.get(action, Fate.AGAIN)


def _same(connection: sqlite3.Connection, asked: _Asked, now: _Asked) -> bool:
    """Whether an answer to what was asked answers what is asked now."""
    if asked[1] != now[1]:
        return False
    return asked[0] == now[0] or connection.execute(_ADOPTED, (asked[0], now[0])).fetchone() is not None


def _settle(
    connection: sqlite3.Connection, now: float, found: _Found, asked: _Asked, arrived: Arrived, prepare: str
) -> None:
    """Settle as after a claim of this very moment; an answer to what is no longer asked is kept as a late one is."""
    connection.execute(prepare, (found.row,))
    claimed = Job(found.row, arrived.key, found.epoch + 1, 0, 0, (), True, *asked, {})
    settling.settle(connection, now, settling.ready([Settlement(claimed, arrived.action, outcome=arrived.outcome)]))
    connection.execute(_ANSWERED, (found.row,))

"""Carries out the verbs that both databases share, on a SQLite connection."""

from __future__ import annotations

import json
import re
import sqlite3
from functools import lru_cache
from typing import TypeVar

from rowcall.store.queries.base import Query, QueryResult, Settle, Statement
from rowcall.store.settlement_values import ready
from rowcall.store.sqlite import settling
from rowcall.store.sqlite.clock import stamp

T = TypeVar("T")

_HAS_CELLS = """
    NOT EXISTS (
        SELECT 1 FROM json_each(:columns) AS wanted JOIN json_each(:cells) AS text ON text.key = wanted.key
        WHERE NOT EXISTS (
            SELECT 1 FROM payloads, json_each(payloads.record) AS cell
            WHERE payloads.job = jobs.rowid AND cell.key = wanted.value AND text.value = CASE cell.type
                WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN '' ELSE CAST(cell.value AS TEXT)
            END))
"""
_DIALECT = (
    (r"\bIN :(\w+)", r"IN (SELECT value FROM json_each(:\1))"),
    (r"\bEACH\(", "json_each("),
    (r"\bHAS_CELLS\b", _HAS_CELLS),
    (r"\bSECONDS\((\w+), (\w+)\)", r"((julianday(\2) - julianday(\1)) * 86400)"),
    (r"\bSLICE\((\w+)\)", r"CAST((julianday(\1) - julianday(:since)) * 86400 / :width AS INTEGER)"),
    (r"\bmoment\(\)", ":now"),
    (r"\bis_json\(", "json_valid("),
    (r"\bLOCK_KIND\(:kind\)", "NULL"),  # whoever writes has the whole file
    (r"\bUNLOCKED\b", "session_unlocked(sessions.id, sessions.host)"),  # a function of file.connect
    (r"\bFOR NO KEY UPDATE\b", ""),
)


def carry_out(connection: sqlite3.Connection, query: Query[T], now: float | None = None) -> T:
    """Carry a verb out within the transaction that is open; ``now`` is its time, which only verbs that write need."""
    at = None if now is None else stamp(now)
    try:
        step = next(query)
        while True:
            step = query.send(_take_step(connection, step, now, at))
    except StopIteration as end:
        result: T = end.value
        return result


def _take_step(
    connection: sqlite3.Connection, step: Statement | Settle, now: float | None, at: str | None
) -> QueryResult:
    if isinstance(step, Settle):
        assert now is not None
        settling.settle(connection, now, ready(step.settlements))
        return QueryResult([], 0)
    values = {name: json.dumps(value) if isinstance(value, list) else value for name, value in step.parameters.items()}
    cursor = connection.execute(translate(step.text), values | {"now": at})
    return QueryResult(cursor.fetchall(), cursor.rowcount)


@lru_cache(maxsize=256)
def translate(text: str) -> str:
    """SQL of the shared verbs as SQLite's."""
    for ours, theirs in _DIALECT:
        text = re.sub(ours, theirs, text)
    return text

"""Carries out the verbs that both databases share, on a PostgreSQL connection."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeVar

from rowcall.store.postgres import settling
from rowcall.store.postgres.pool import Connection
from rowcall.store.postgres.sessions import UNLOCKED
from rowcall.store.queries.base import Query, QueryResult, Settle, Statement
from rowcall.store.settlement_values import ready

T = TypeVar("T")

_HAS_CELLS = """
    EXISTS (
        SELECT 1 FROM payloads WHERE job = jobs.rowid AND has_cells(record, :columns::text[], :cells::text[]))
"""
_DIALECT = (
    (r"\bIN :(\w+)", r"= ANY(:\1)"),
    (r"\bEACH\(:(\w+)\) AS (\w+)", r"unnest(:\1::text[]) AS \2 (value)"),
    (r"\bHAS_CELLS\b", _HAS_CELLS),
    (r"\bSECONDS\((\w+), (\w+)\)", r"extract(epoch FROM \2 - \1)::double precision"),
    (r"\bSLICE\((\w+)\)", r"trunc(extract(epoch FROM \1 - :since::timestamptz) / :width::numeric)::bigint"),
    (r"\bmoment\(\)", "(SELECT moment())"),
    (r"\bLOCK_KIND\(:kind\)", "pg_advisory_xact_lock(hashtextextended('rowcall kind ' || :kind, 0))"),
    (r"\bUNLOCKED\b", f"({UNLOCKED})"),
    (r"\b(NOT INDEXED|INDEXED BY \w+)\b", ""),
    (r"(?<![:\w]):(\w+)", r"%(\1)s"),
)


async def carry_out(connection: Connection, query: Query[T]) -> T:
    """Carry a verb out within the transaction that is open."""
    try:
        step = next(query)
        while True:
            step = query.send(await _take_step(connection, step))
    except StopIteration as end:
        result: T = end.value
        return result


async def _take_step(connection: Connection, step: Statement | Settle) -> QueryResult:
    if isinstance(step, Settle):
        await settling.settle(connection, ready(step.settlements))
        return QueryResult([], 0)
    cursor = await connection.execute(translate(step.text), step.parameters or None)
    return QueryResult(await cursor.fetchall() if cursor.description else [], cursor.rowcount)


@lru_cache(maxsize=256)
def translate(text: str) -> str:
    """SQL of the shared verbs as PostgreSQL's; the connection looks for tables in the schema ``rowcall``."""
    for ours, theirs in _DIALECT:
        text = re.sub(ours, theirs, text)
    return text

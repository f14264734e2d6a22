"""The runs of a store, and which of them are alive."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from rowcall.store.postgres.pool import Connection
from rowcall.store.postgres.queries import fetch
from rowcall.store.postgres.sessions import living_ids
from rowcall.store.types import Role, RunRow

_RUNS = """
    SELECT runs.id, kind, pass, runs.started_at, ended_at, stop_reason, settings, totals, session, role, host, pid
    FROM rowcall.runs LEFT JOIN rowcall.sessions ON sessions.id = session WHERE kind = %s
"""
_LAST_RUN = _RUNS + " ORDER BY coalesce(ended_at, runs.started_at) DESC, runs.id DESC LIMIT 1"
_OPEN_RUNS = _RUNS + " AND ended_at IS NULL ORDER BY runs.id DESC"
_ALL_RUNS = _RUNS + " ORDER BY runs.id"


async def last_run(connection: Connection, kind: str) -> RunRow | None:
    """The run of the kind that was last heard to begin or end."""
    found = await _runs(connection, _LAST_RUN, kind)
    return found[0] if found else None


async def live_runs(connection: Connection, kind: str) -> list[RunRow]:
    """The runs of the kind whose session lives."""
    return [run for run in await _runs(connection, _OPEN_RUNS, kind) if run.alive]


async def runs(connection: Connection, kind: str) -> list[RunRow]:
    """The runs of the kind, oldest first."""
    return await _runs(connection, _ALL_RUNS, kind)


async def _runs(connection: Connection, query: str, kind: str) -> list[RunRow]:
    alive = await living_ids(connection)
    return [_run_row(row, alive) for row in await fetch(connection, query, (kind,))]


def _run_row(row: tuple[Any, ...], alive: Collection[int]) -> RunRow:
    *facts, settings, totals, session, role, host, pid = row
    lives = facts[4] is None and session in alive
    return RunRow(*(*facts, json.loads(settings), json.loads(totals), lives, Role(role), host, pid))

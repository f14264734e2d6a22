"""Runs, who is working on the store, and what workers follow: published recipes and settings of live runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rowcall.store.queries.base import Query, Row, Statement
from rowcall.store.types import Role, Run, RunRow

_RUNS = """
    SELECT runs.id, kind, pass, runs.started_at, ended_at, stop_reason, settings, totals,
        ended_at IS NULL AND session IN (SELECT id FROM sessions WHERE NOT UNLOCKED), role, host, pid
    FROM runs LEFT JOIN sessions ON sessions.id = session WHERE kind = :kind
"""
_LAST_RUN = f"{_RUNS} ORDER BY coalesce(ended_at, runs.started_at) DESC, runs.id DESC LIMIT 1"
_OPEN_RUNS = f"{_RUNS} AND ended_at IS NULL ORDER BY runs.id DESC"
_ALL_RUNS = f"{_RUNS} ORDER BY runs.id"
_END = "UPDATE runs SET ended_at = moment(), stop_reason = :reason, totals = :totals WHERE id = :id"
_NOTE = "UPDATE runs SET totals = :totals WHERE id = :id AND ended_at IS NULL"
_LIVING = "SELECT host, pid FROM sessions WHERE NOT UNLOCKED ORDER BY id"

_PUBLISH = """
    INSERT INTO recipes (kind, at, recipe) VALUES (:kind, moment(), :recipe)
    ON CONFLICT (kind) DO UPDATE SET at = excluded.at, recipe = excluded.recipe
"""
_RECIPE = "SELECT recipe FROM recipes WHERE kind = :kind"

_SET = """
    INSERT INTO settings (kind, name, value, keep) VALUES (:kind, :name, :value, :keep)
    ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value, keep = excluded.keep
"""
_UNSET = "DELETE FROM settings WHERE kind = :kind AND name = :name"
_SETTINGS = "SELECT name, value FROM settings WHERE kind = :kind"


def last_run(kind: str) -> Query[RunRow | None]:
    """The run of a kind that was the last to begin or end."""
    rows = (yield Statement(_LAST_RUN, kind=kind)).rows
    return _run_row(rows[0]) if rows else None


def live_runs(kind: str) -> Query[list[RunRow]]:
    """The runs of a kind whose session is alive, newest first."""
    found = map(_run_row, (yield Statement(_OPEN_RUNS, kind=kind)).rows)
    return [run for run in found if run.alive]


def runs(kind: str) -> Query[list[RunRow]]:
    """The runs of a kind, oldest first."""
    return [_run_row(row) for row in (yield Statement(_ALL_RUNS, kind=kind)).rows]


def _run_row(row: Row) -> RunRow:
    *facts, settings, totals, alive, role, host, pid = row
    return RunRow(*(*facts, json.loads(settings), json.loads(totals), bool(alive), Role(role), host, pid))


def end_run(run: Run, stop_reason: str, totals: dict[str, Any]) -> Query[None]:
    """Write why a run stopped and what it did."""
    yield Statement(_END, id=run.id, reason=stop_reason, totals=json.dumps(totals, default=str))


def note(run: Run, totals: dict[str, Any]) -> Query[None]:
    """Write what a live run has done so far."""
    yield Statement(_NOTE, id=run.id, totals=json.dumps(totals, default=str))


def living() -> Query[list[str]]:
    """The processes that work on the store, in words: those that are not known to be gone."""
    return [f"process {pid} on {host}" for host, pid in (yield Statement(_LIVING)).rows]


def publish(kind: str, recipe: dict[str, Any]) -> Query[None]:
    """Store a recipe in place of the last one of its kind."""
    yield Statement(_PUBLISH, kind=kind, recipe=json.dumps(recipe))


def recipe(kind: str) -> Query[dict[str, Any] | None]:
    """The recipe of a kind; None if none was published."""
    text = (yield Statement(_RECIPE, kind=kind)).value
    found: dict[str, Any] | None = None if text is None else json.loads(text)
    return found


def change_settings(kind: str, values: Mapping[str, str | None], *, keep: bool) -> Query[None]:
    """Set each name to its text; None takes it away. In the order of the names, so that two of these never deadlock."""
    for name, value in sorted(values.items()):
        if value is None:
            yield Statement(_UNSET, kind=kind, name=name)
        else:
            yield Statement(_SET, kind=kind, name=name, value=value, keep=keep)


def settings(kind: str) -> Query[dict[str, str]]:
    """What is set for live runs of a kind, by name."""
    return dict((yield Statement(_SETTINGS, kind=kind)).rows)

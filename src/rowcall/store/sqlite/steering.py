"""What people set for live runs, and what live runs say about themselves."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

_SET = """
    INSERT INTO settings VALUES (:kind, :name, :value, :keep)
    ON CONFLICT DO UPDATE SET value = excluded.value, keep = excluded.keep
"""
_UNSET = "DELETE FROM settings WHERE kind = ? AND name = ?"
_SETTINGS = "SELECT name, value FROM settings WHERE kind = ?"
_FORGET = "DELETE FROM settings WHERE kind = ? AND NOT keep"
_NOTE = "UPDATE runs SET totals = ? WHERE id = ? AND ended_at IS NULL"


def change(connection: sqlite3.Connection, now: float, kind: str, values: Mapping[str, str | None], keep: bool) -> None:
    """Set each name to its text; None takes it away."""
    for name, value in values.items():
        if value is None:
            connection.execute(_UNSET, (kind, name))
        else:
            connection.execute(_SET, {"kind": kind, "name": name, "value": value, "keep": keep})


def settings(connection: sqlite3.Connection, kind: str) -> dict[str, str]:
    """What is set, by name."""
    return dict(connection.execute(_SETTINGS, (kind,)).fetchall())


def forget(connection: sqlite3.Connection, kind: str) -> None:
    """Take away what was not to outlive the runs that were alive then."""
    connection.execute(_FORGET, (kind,))


def note(connection: sqlite3.Connection, now: float, run: int, totals: dict[str, Any]) -> None:
    """Write what a live run has done so far."""
    connection.execute(_NOTE, (json.dumps(totals, default=str), run))

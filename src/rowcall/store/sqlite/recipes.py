"""How the calls of a kind are made, for workers that have no config."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from rowcall.store.sqlite.clock import stamp

_PUBLISH = """
    INSERT INTO recipes VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at, recipe = excluded.recipe
"""
_RECIPE = "SELECT recipe FROM recipes WHERE kind = ?"


def publish(connection: sqlite3.Connection, now: float, kind: str, recipe: dict[str, Any]) -> None:
    """Keep a recipe; the kind's last one goes."""
    connection.execute(_PUBLISH, (kind, stamp(now), json.dumps(recipe)))


def recipe(connection: sqlite3.Connection, kind: str) -> dict[str, Any] | None:
    """The kind's recipe; None where none was kept."""
    row = connection.execute(_RECIPE, (kind,)).fetchone()
    found: dict[str, Any] | None = json.loads(row[0]) if row else None
    return found

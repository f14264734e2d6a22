"""How the calls of a kind are made, for workers that have no config."""

from __future__ import annotations

import json
from typing import Any

from rowcall.store.postgres.pool import Connection
from rowcall.store.postgres.queries import first

_PUBLISH = """
    INSERT INTO rowcall.recipes VALUES (%s, rowcall.moment(), %s)
    ON CONFLICT (kind) DO UPDATE SET at = excluded.at, recipe = excluded.recipe
"""
_RECIPE = "SELECT recipe FROM rowcall.recipes WHERE kind = %s"


async def publish(connection: Connection, kind: str, recipe: dict[str, Any]) -> None:
    """Keep a recipe; the kind's last one goes."""
    await connection.execute(_PUBLISH, (kind, json.dumps(recipe)))


async def recipe(connection: Connection, kind: str) -> dict[str, Any] | None:
    """The kind's recipe; None where none was kept."""
    kept = await first(connection, _RECIPE, (kind,))
    found: dict[str, Any] | None = None if kept is None else json.loads(kept)
    return found

"""What people set for live runs, and what live runs say about themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rowcall.store.postgres.pool import Connection

_SET = """
    INSERT INTO rowcall.settings (kind, name, value, keep)
    SELECT %(kind)s, name, value, %(keep)s FROM unnest(%(names)s::text[], %(values)s::text[]) AS given(name, value)
    ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value, keep = excluded.keep
"""
_UNSET = "DELETE FROM rowcall.settings WHERE kind = %s AND name = ANY(%s::text[])"
_SETTINGS = "SELECT name, value FROM rowcall.settings WHERE kind = %s"
_FORGET = "DELETE FROM rowcall.settings WHERE kind = %s AND NOT keep"
_NOTE = "UPDATE rowcall.runs SET totals = %s WHERE id = %s AND ended_at IS NULL"


async def change(connection: Connection, kind: str, values: Mapping[str, str | None], keep: bool) -> None:
    """Set each name to its text; None takes it away."""
    given = {name: value for name, value in sorted(values.items()) if value is not None}
    wanted = {"kind": kind, "keep": keep, "names": list(given), "values": list(given.values())}
    await connection.execute(_UNSET, (kind, sorted(values.keys() - given.keys())))
    await connection.execute(_SET, wanted)


async def settings(connection: Connection, kind: str) -> dict[str, str]:
    """What is set, by name."""
    return dict(await (await connection.execute(_SETTINGS, (kind,))).fetchall())


async def forget(connection: Connection, kind: str) -> None:
    """Take away what was not to outlive the runs that were alive then."""
    await connection.execute(_FORGET, (kind,))


async def note(connection: Connection, run: int, totals: dict[str, Any]) -> None:
    """Write what a live run has done so far."""
    await connection.execute(_NOTE, (json.dumps(totals, default=str), run))

"""An index that may be larger than memory, kept in a temporary file."""

from __future__ import annotations

import sqlite3
from typing import Self


class DiskIndex:
    """Remembers where each name was first seen. A context manager."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._connection.execute("CREATE TABLE places (name TEXT PRIMARY KEY, place TEXT) WITHOUT ROWID")
        self._connection.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._connection.close()

    def note(self, name: str, place: str = "") -> str | None:
        """Remember a name. Returns where it was seen before, or None if it is new."""
        if self._connection.execute("INSERT OR IGNORE INTO places VALUES (?, ?)", (name, place)).rowcount:
            return None
        (before,) = self._connection.execute("SELECT place FROM places WHERE name = ?", (name,)).fetchone()
        return str(before)

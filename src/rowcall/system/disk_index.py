"""Sets that may hold more than memory does, in a temporary file."""

from __future__ import annotations

import sqlite3
from typing import Self


class DiskIndex:
    """Where each name was met first. A context manager."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._connection.execute("CREATE TABLE places (name TEXT PRIMARY KEY, place TEXT) WITHOUT ROWID")
        self._connection.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._connection.close()

    def note(self, name: str, place: str = "") -> str | None:
        """Where the name was met before; None where it is new."""
        if self._connection.execute("INSERT OR IGNORE INTO places VALUES (?, ?)", (name, place)).rowcount:
            return None
        (before,) = self._connection.execute("SELECT place FROM places WHERE name = ?", (name,)).fetchone()
        return str(before)

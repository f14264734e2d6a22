"""What all records of a kind send, under a number."""

from __future__ import annotations

import sqlite3

_USE = """
    INSERT INTO requests (kind, hash, used)
    VALUES (:kind, :hash, (SELECT coalesce(max(used), 0) + 1 FROM requests WHERE kind = :kind))
    ON CONFLICT DO UPDATE SET used = excluded.used
    RETURNING id
"""
_ADOPT = "UPDATE requests SET adopted_as = :number WHERE kind = :kind AND id <> :number"


def request(connection: sqlite3.Connection, _now: float, kind: str, hash_: str) -> int:
    """Make a request the kind's latest; returns its number."""
    (number,) = connection.execute(_USE, {"kind": kind, "hash": hash_}).fetchone()
    return int(number)


def adopt(connection: sqlite3.Connection, now: float, kind: str, hash_: str) -> int:
    """As ``request``; answers made with the kind's other requests count for it too."""
    number = request(connection, now, kind, hash_)
    connection.execute(_ADOPT, {"kind": kind, "number": number})
    return number

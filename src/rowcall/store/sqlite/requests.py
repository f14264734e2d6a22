"""What all records of a kind send, under a number."""

from __future__ import annotations

import sqlite3

_USE = """
    INSERT INTO requests (kind, hash, used)
    VALUES (:kind, :hash, (SELECT coalesce(max(used), 0) + 1 FROM requests WHERE kind = :kind))
    ON CONFLICT DO UPDATE SET used = excluded.used
    RETURNING id
"""
# Jobs that a person set back belong to no pass: whatever run takes them sends its own request.
_TAKE_ALONG = """
    UPDATE jobs INDEXED BY jobs_pending SET request = :number
    WHERE status = 'pending' AND kind = :kind AND pass IS NULL AND request <> :number
"""
_ADOPT = "UPDATE requests SET adopted_as = :number WHERE kind = :kind AND id <> :number"


def request(connection: sqlite3.Connection, _now: float, kind: str, hash_: str) -> int:
    """Make a request the kind's latest, also for jobs that any run may take; returns its number."""
    (number,) = connection.execute(_USE, {"kind": kind, "hash": hash_}).fetchone()
    connection.execute(_TAKE_ALONG, {"kind": kind, "number": number})
    return int(number)


def adopt(connection: sqlite3.Connection, now: float, kind: str, hash_: str) -> int:
    """As ``request``; answers made with the kind's other requests count for it too."""
    number = request(connection, now, kind, hash_)
    connection.execute(_ADOPT, {"kind": kind, "number": number})
    return number

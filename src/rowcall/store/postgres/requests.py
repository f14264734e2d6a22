"""What all records of a kind send, under a number."""

from __future__ import annotations

from rowcall.store.postgres.locks import lock_kind
from rowcall.store.postgres.pool import Connection, fetched
from rowcall.store.postgres.queries import patiently

_USE = """
    INSERT INTO rowcall.requests (kind, hash, used)
    VALUES (%(kind)s, %(hash)s, (SELECT coalesce(max(used), 0) + 1 FROM rowcall.requests WHERE kind = %(kind)s))
    ON CONFLICT (kind, hash) DO UPDATE SET used = excluded.used
    RETURNING id
"""
# Jobs that a person set back belong to no pass: whatever run takes them sends its own request.
_TAKE_ALONG = """
    UPDATE rowcall.jobs SET request = %(number)s
    WHERE status = 'pending' AND kind = %(kind)s AND pass IS NULL AND request <> %(number)s
"""
_ADOPT = "UPDATE rowcall.requests SET adopted_as = %(number)s WHERE kind = %(kind)s AND id <> %(number)s"


async def request(connection: Connection, kind: str, hash_: str) -> int:
    """Make a request the kind's latest, also for jobs that any run may take; returns its number."""
    await lock_kind(connection, kind)
    (number,) = await fetched(connection, _USE, {"kind": kind, "hash": hash_})
    await patiently(connection)
    await connection.execute(_TAKE_ALONG, {"kind": kind, "number": number})
    return int(number)


async def adopt(connection: Connection, kind: str, hash_: str) -> int:
    """As ``request``; answers made with the kind's other requests count for it too."""
    number = await request(connection, kind, hash_)
    await connection.execute(_ADOPT, {"kind": kind, "number": number})
    return number

"""What PostgreSQL and the way to it say, as store errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from rowcall.model.errors import Busy, Corrupt, Full, ReadOnly, StoreError, Unavailable

_REMEDIES: dict[type[StoreError], str] = {
    Busy: "Run the same command again once it can be reached. Nothing is lost.",
    Unavailable: "Check that the database exists and that this user may use it, or name another one ([store] path).",
    Full: "Free some space on the server's disk, then run the same command again. Nothing that was stored is lost.",
    ReadOnly: "Name a server that accepts writes ([store] path), or make this one accept them again.",
    Corrupt: "Ask who runs the server; restore a backup, or name another database ([store] path).",
    StoreError: "",
}

_AWAY = (Busy, "the database cannot be reached")
_BY_STATE: dict[str, tuple[type[StoreError], str]] = {
    "40001": (Busy, "other transactions are in the way"),
    "40P01": (Busy, "other transactions are in the way"),
    "55P03": (Busy, "somebody else has a part of it locked"),
    "57014": (Busy, "it took too long over a statement, or somebody stopped it"),
    "53100": (Full, "no space is left on the server's disk"),
    "53200": (Busy, "the server has no memory left"),
    "53300": (Busy, "the server takes no more connections"),
    "25006": (ReadOnly, "it takes no writes (a standby, or set to read-only)"),
    "58030": (Unavailable, "the server's disk reports an error"),
    "42P01": (Unavailable, "its tables are gone"),
    "3F000": (Unavailable, "its tables are gone"),
    "XX001": (Corrupt, "the database is damaged"),
    "XX002": (Corrupt, "the database is damaged"),
}
_AWAY_CLASSES = ("08", "57P", "25P03")
"""The connection failed; the server is stopping or starting; it ended a transaction that was idle."""

_GRANT = (
    "Have its owner grant it. To make a store: GRANT CREATE ON DATABASE; to look on: USAGE ON SCHEMA rowcall and"
    " SELECT ON ALL TABLES IN SCHEMA rowcall; to work: USAGE, and ALL ON ALL TABLES and ALL SEQUENCES there."
)
_WHERE_IT_STANDS = "Put the password into the URL of [store] path or --store, into PGPASSWORD, or into ~/.pgpass."
_NO_USER = "Correct the user in the address (left out: the one of this machine), or make it: createuser"
# A refused connection has no code, only the server's or the library's words for it.
_REFUSALS: tuple[tuple[str, type[StoreError], str, str], ...] = (
    ("starting up", *_AWAY, "It is starting; try again."),
    ("shutting down", *_AWAY, "It is restarting; try again."),
    ("in recovery mode", *_AWAY, "It is restarting; try again."),
    ("too many clients", Busy, "the server takes no more connections", "Raise its max_connections, or use a pooler."),
    ("connection slots", Busy, "the server takes no more connections", "Raise its max_connections, or use a pooler."),
    ("password authentication failed", Unavailable, "the server refuses the password of its user", _WHERE_IT_STANDS),
    ("no password supplied", Unavailable, "the server asks for a password", _WHERE_IT_STANDS),
    ("pg_hba.conf", Unavailable, "the server refuses this user from this host", "Allow it in its pg_hba.conf."),
    ('role "', Unavailable, "there is no such user", _NO_USER),
    ("does not exist", Unavailable, "there is no such database", "Make it: createdb, or correct [store] path."),
    ("permission denied", Unavailable, "its user may not connect to it", "Have its owner GRANT CONNECT."),
    ("refused", Unavailable, "nothing listens there", "Start the server, or correct host and port in [store] path."),
    ("translate host", Unavailable, "there is no such host", "Correct the host in [store] path."),
    ("resolve", Unavailable, "there is no such host", "Correct the host in [store] path."),
    ("timeout", Unavailable, "nothing answers there", "See to the network, or correct host and port in [store] path."),
    ("SSL", Unavailable, "no encrypted connection can be made", "See to sslmode and its certificates."),
)


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Raise a ``StoreError`` that names the database for every error of it inside."""
    try:
        yield
    except psycopg.Error as error:
        raise _from_postgres(error, name) from error
    except UnicodeEncodeError as error:
        raise StoreError(f"{name}: a text holds a lone surrogate, which no database can keep") from error
    except ValueError as error:  # the database holds something that is not JSON or a status
        raise _say(name, Corrupt, "the database is damaged") from error


@contextmanager
def explain_refused_connection(name: str) -> Iterator[None]:
    """Explain why a database cannot be reached at all."""
    try:
        yield
    except psycopg.OperationalError as error:
        raise _refused(error, name) from error


def no_longer_writable(name: str) -> Busy:
    """The error for a server that no longer takes writes: after a failover another one soon will."""
    return Busy(f"{name}: the server takes no writes any more", remedy=_REMEDIES[Busy])


def _refused(error: psycopg.OperationalError, name: str) -> StoreError:
    said = str(error)
    for words, kind, what, remedy in _REFUSALS:
        if words in said:
            return kind(f"{name}: {what}", remedy=remedy)
    return Unavailable(f"{name}: the database cannot be reached: {said}", remedy=_REMEDIES[Unavailable])


def _from_postgres(error: psycopg.Error, name: str) -> Exception:
    state = error.sqlstate or ""
    if state == "42501":
        return Unavailable(f"{name}: its user lacks a right ({error.diag.message_primary})", remedy=_GRANT)
    if state in _BY_STATE:
        return _say(name, *_BY_STATE[state])
    if state.startswith(_AWAY_CLASSES) or (not state and isinstance(error, psycopg.OperationalError)):
        return _say(name, *_AWAY)
    if isinstance(error, psycopg.DataError) and not state:
        return StoreError(f"{name}: a text holds a NUL character, which no database can keep")
    return _say(name, StoreError, str(error)) if state else error  # without one: a bug of ours


def _say(name: str, kind: type[StoreError], what: str) -> StoreError:
    return kind(f"{name}: {what}", remedy=_REMEDIES[kind])

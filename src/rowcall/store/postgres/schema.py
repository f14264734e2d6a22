"""The tables: creating them, bringing them up to date, and checking them before anything is read."""

from __future__ import annotations

import shlex
from importlib.resources import files

from rowcall.model.errors import NoStore, SchemaMismatch
from rowcall.store.postgres.pool import Connection, fetched

MIGRATIONS: tuple[str, ...] = ("schema.sql",)
"""Script n takes a database from version n to n + 1."""
VERSION = len(MIGRATIONS)

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('rowcall schema', 0))"
_THERE = """
    SELECT to_regclass('rowcall.schema_version') IS NOT NULL,
        (SELECT count(*) FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'rowcall'))
"""
# The owner of a table, function or trigger decides what happens with the rights of any user who touches it. Trusted
# owners are this user, the owner of the database and superusers, and the roles of this user unless it is a superuser,
# who has all of them.
_FOREIGN = """
    WITH trusted AS (
        SELECT roles.oid FROM pg_catalog.pg_roles AS roles
        JOIN pg_catalog.pg_roles AS me ON me.rolname = current_user
        JOIN pg_catalog.pg_database AS here ON here.datname = current_database()
        WHERE roles.oid IN (me.oid, here.datdba) OR roles.rolsuper
        OR (NOT me.rolsuper AND pg_catalog.pg_has_role(me.oid, roles.oid, 'MEMBER'))),
    space AS (SELECT oid, nspowner FROM pg_catalog.pg_namespace WHERE nspname = 'rowcall')
    SELECT 'the schema', pg_catalog.pg_get_userbyid(nspowner) FROM space WHERE nspowner NOT IN (TABLE trusted)
    UNION ALL
    SELECT 'the table or view ' || relname, pg_catalog.pg_get_userbyid(relowner)
    FROM pg_catalog.pg_class JOIN space ON relnamespace = space.oid WHERE relowner NOT IN (TABLE trusted)
    UNION ALL
    SELECT 'the function ' || proname, pg_catalog.pg_get_userbyid(proowner)
    FROM pg_catalog.pg_proc JOIN space ON pronamespace = space.oid WHERE proowner NOT IN (TABLE trusted)
    UNION ALL
    SELECT 'the trigger ' || tgname || ' on ' || relname, pg_catalog.pg_get_userbyid(proowner)
    FROM pg_catalog.pg_trigger JOIN pg_catalog.pg_class ON pg_class.oid = tgrelid
    JOIN space ON relnamespace = space.oid JOIN pg_catalog.pg_proc ON pg_proc.oid = tgfoid
    WHERE NOT tgisinternal AND (pronamespace, tgname, proname) <> (space.oid, 'jobs_set_back', 'set_back')
    LIMIT 1
"""
_VERSION = "SELECT max(version) FROM rowcall.schema_version"
_MARK = "INSERT INTO rowcall.schema_version VALUES (%s)"
_CLEAR = "DELETE FROM rowcall.schema_version"
_MOVING = "SELECT source FROM rowcall.moving"


async def require(connection: Connection, name: str) -> None:
    """Check that there is a store that this rowcall can read; ``name`` is the database's, for people.

    Raises:
        NoStore: there is none yet.
        SchemaMismatch: a newer or an older rowcall or another program made it, or a migration into it is not finished.
    """
    version = await _version(connection, name)
    if not version:
        raise NoStore(f"{name}: there is no store yet", remedy="`rowcall run` or `rowcall enqueue` creates it.")
    if version < VERSION:
        raise SchemaMismatch(
            f"{name}: an older rowcall made the tables", remedy="`rowcall run` brings them up to date."
        )
    await _require_whole(connection, name)


async def prepare(connection: Connection, name: str) -> None:
    """As ``make``, and check that no migration into it is unfinished.

    Raises:
        SchemaMismatch: as there; or a migration into it is not finished.
    """
    await make(connection, name)
    await _require_whole(connection, name)


async def make(connection: Connection, name: str) -> None:
    """Create the tables or bring them up to date; one process at a time, all scripts in one transaction.

    Raises:
        SchemaMismatch: a newer rowcall made them, or another program.
    """
    if await _version(connection, name) == VERSION:
        return
    await connection.execute(_LOCK)
    version = await _version(connection, name)
    for step in MIGRATIONS[version:]:
        script = files("rowcall.store.postgres").joinpath(step).read_text("utf-8")
        await connection.execute(script.encode(), prepare=False)
    await connection.execute(_CLEAR)
    await connection.execute(_MARK, (VERSION,))


async def _version(connection: Connection, name: str) -> int:
    """The version of the tables, 0 where there are none.

    Raises:
        SchemaMismatch: a newer rowcall or another program made them.
    """
    there, tables = await fetched(connection, _THERE)
    if not there:
        if tables:
            raise SchemaMismatch(
                f"{name}: the schema `rowcall` there is another program's", remedy="Name another database."
            )
        return 0
    await _require_known_owners(connection, name)
    (version,) = await fetched(connection, _VERSION)
    if (version or 0) > VERSION:
        raise SchemaMismatch(
            f"{name}: a newer rowcall made the tables (schema {version}; this one knows {VERSION})",
            remedy="Update rowcall: pip install -U rowcall",
        )
    return version or 0


async def _require_known_owners(connection: Connection, name: str) -> None:
    """Check who made the tables before anything is read from them, which could be a view that runs a function.

    Raises:
        SchemaMismatch: somebody made them, or a function or trigger, who is not trusted.
    """
    for what, owner in await (await connection.execute(_FOREIGN)).fetchall():
        raise SchemaMismatch(
            f"{name}: {what} of rowcall belongs to {owner}, who could run commands with your rights there",
            remedy="Name another database; or, if you trust that user: ALTER ... OWNER TO the database's owner,"
            " or make yours a member: GRANT owner TO user. A trigger of your own has to be dropped.",
        )


async def _require_whole(connection: Connection, name: str) -> None:
    for (source,) in await (await connection.execute(_MOVING)).fetchall():
        raise SchemaMismatch(
            f"{name}: a migration from {source} into it is not finished",
            remedy=f"Resume it with: rowcall migrate --from {shlex.quote(source)} --to URL",
        )

"""Migrating a store into another one, page by page, so that a migration that was interrupted can be resumed.

Both stores use plain rows: texts, whole numbers, floats, None; times as ISO-8601 UTC text, truth values as 1 and 0. Row
numbers, epochs and costs stay as they are, so that nothing is called again. Running jobs become pending, uncharged.
Sessions and limits are not migrated: limits go by another clock.

A target is empty, or holds an unfinished migration of the same source in the same state. It can be used as a store only
when the migration is finished.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

from rowcall.model.errors import StoreError

PAGE = 1000
"""Rows that are copied in one transaction."""

Row = tuple[Any, ...]
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class MigratedTable:
    """A table of a store: its name, its columns in the order of plain rows, and the key that pages go by.

    ``flags`` are the columns that hold yes or no.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    flags: tuple[str, ...] = ()

    def key_of(self, row: Row) -> Key:
        """The key of a row."""
        return tuple(row[self.columns.index(column)] for column in self.key)


def _table(name: str, columns: str, *, key: str, flags: str = "") -> MigratedTable:
    return MigratedTable(name, tuple(columns.split()), tuple(key.split()), tuple(flags.split()))


_USED = "input_tokens output_tokens cached_tokens reasoning_tokens cost"
TABLES = (
    _table("requests", "id kind hash adopted_as used", key="id"),
    _table("runs", "id kind pass session started_at ended_at stop_reason settings totals role", key="id"),
    _table(
        "jobs",
        "rowid id kind batch request input_hash status attempts crashes epoch session pass error reason run_after"
        f" wait_ms created_at updated_at http_status request_id latency_ms {_USED}",
        key="rowid",
    ),
    _table("payloads", "job record", key="job"),
    _table(
        "results",
        f"id job epoch request input_hash superseded batch at {_USED} value origin",
        key="id",
        flags="superseded",
    ),
    _table(
        "tries",
        f"job epoch at class reason message charged http_status request_id latency_ms {_USED} body",
        key="job epoch",
        flags="charged",
    ),
    _table("handed_out", "job request input_hash at answered", key="job request input_hash", flags="answered"),
    _table("totals", f"kind attempts {_USED}", key="kind"),
    _table("recipes", "kind at recipe", key="kind"),
    _table("settings", "kind name value keep", key="kind name", flags="keep"),
)
"""The tables that are migrated, in this order."""


@dataclass(frozen=True, slots=True)
class MigrationMark:
    """How far a migration is: the index of its table, the key of the last row that was copied, and rows in all."""

    table: int = 0
    after: Key | None = None
    rows: int = 0

    @property
    def text(self) -> str:
        """The mark as a target stores it."""
        return json.dumps([self.table, self.after, self.rows])

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a mark from its text."""
        table, after, rows = json.loads(text)
        return cls(table, None if after is None else tuple(after), rows)


@dataclass(frozen=True, slots=True)
class MigrationOrigin:
    """What is migrated: the name of the source, and a text that differs once anything in the source has changed."""

    name: str
    state: str


@dataclass(frozen=True, slots=True)
class TargetState:
    """What a target holds before a migration: nothing, an unfinished migration, or a store."""

    empty: bool
    unfinished: tuple[MigrationOrigin, MigrationMark] | None = None

    def resume_at(self, origin: MigrationOrigin, target: str) -> MigrationMark | None:
        """Where to resume; None if the target has to be emptied and the migration started again.

        Raises:
            StoreError: it holds something else.
        """
        if self.unfinished is None and self.empty:
            return None
        if self.unfinished is None:
            raise StoreError(f"{target}: holds a store already", remedy="Name a place without a store.")
        begun, mark = self.unfinished
        if begun.name != origin.name:
            what = f"{target}: holds an unfinished migration of another store, {begun.name}"
            raise StoreError(what, remedy="Resume that one, or name another place.")
        return mark if begun == origin else None


@dataclass(frozen=True, slots=True)
class MigrationPage:
    """Rows of one table, with the marks before and after them."""

    table: MigratedTable
    rows: list[Row]
    before: MigrationMark
    after: MigrationMark


@dataclass(frozen=True, slots=True)
class StoreContents:
    """What a store holds: jobs by kind and status (running ones count as pending), and other rows by table."""

    by_status: Mapping[tuple[str, str], int]
    others: Mapping[str, int]

    @property
    def jobs(self) -> int:
        """All of them."""
        return sum(self.by_status.values())


@dataclass(frozen=True, slots=True)
class MigrationProgress:
    """The progress of a migration: the current table, rows copied, and rows in all."""

    table: str
    rows: int
    of: int


def not_alone(target: str) -> StoreError:
    """The error if another process migrates into the same target."""
    return StoreError(f"{target}: somebody else migrates into it", remedy="Let it finish: it does the same.")


class _End(Protocol):
    """One of the two ends of a migration."""

    @property
    def name(self) -> str:
        """The name of the store, without secrets."""

    async def close(self) -> None:
        """Close the connection; safe to repeat."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class MigrationSource(_End, Protocol):
    """The store that is migrated; nothing is written to it."""

    async def living(self) -> list[str]:
        """The processes that work on it, in words."""

    async def state(self) -> str:
        """A text that differs once anything that is migrated has changed."""

    async def page(self, table: MigratedTable, after: Key | None) -> list[Row]:
        """The next ``PAGE`` rows of a table in the order of its key; fewer at its end."""

    async def contents(self) -> StoreContents:
        """What it holds."""


class MigrationTarget(_End, Protocol):
    """The store into which another one is migrated."""

    async def begin(self, origin: MigrationOrigin) -> MigrationMark:
        """Begin a migration or resume one; from here until ``finish`` the target cannot be used as a store.

        Raises:
            StoreError: it holds something else.
        """

    async def put(self, page: MigrationPage) -> None:
        """Write a page together with its mark; safe to repeat.

        Raises:
            StoreError: another process migrates into the same target.
        """

    async def contents(self) -> StoreContents:
        """What it holds by now."""

    async def finish(self, stop_reason: str) -> None:
        """Make it a store in which nothing runs; open runs end with this reason.

        Raises:
            StoreError: another process has done so.
        """


def _nobody(progress: MigrationProgress) -> None:
    """Takes progress that nobody asked for."""


async def move(
    source: MigrationSource, sink: MigrationTarget, told: Callable[[MigrationProgress], None] = _nobody
) -> StoreContents:
    """Migrate a store, or resume; returns what was migrated, counted in both stores.

    Raises:
        StoreError: a run is alive in the source or changed it meanwhile, the target holds something else, or the counts
            differ. The source is left as it is in any case.
    """
    if alive := await source.living():
        what = f"{source.name}: a run is live ({', '.join(alive)}), and its results would not be copied"
        raise StoreError(what, remedy="Stop it (Ctrl+C loses nothing) or let it end, then migrate again.")
    return await copy(source, sink, "crashed", told)


async def copy(
    source: MigrationSource,
    sink: MigrationTarget,
    stop_reason: str,
    told: Callable[[MigrationProgress], None] = _nobody,
) -> StoreContents:
    """As ``move``, while runs may be alive: the source has to show the same moment from beginning to end."""
    origin = MigrationOrigin(source.name, await source.state())
    held = await source.contents()
    await _move_pages(source, sink, await sink.begin(origin), held, told)
    if await source.state() != origin.state:
        raise StoreError(f"{source.name}: has changed meanwhile", remedy="Migrate again; it starts from the beginning.")
    if (arrived := await sink.contents()) != held:
        raise StoreError(f"{sink.name}: the counts differ from those of {source.name}: {_differences(held, arrived)}")
    await sink.finish(stop_reason)
    return held


async def _move_pages(
    source: MigrationSource,
    sink: MigrationTarget,
    mark: MigrationMark,
    held: StoreContents,
    told: Callable[[MigrationProgress], None],
) -> None:
    of = held.jobs + sum(held.others.values())
    while mark.table < len(TABLES):
        table = TABLES[mark.table]
        rows = await source.page(table, mark.after)
        page = MigrationPage(table, rows, mark, _next(mark, table, rows))
        await sink.put(page)
        mark = page.after
        told(MigrationProgress(table.name, mark.rows, of))


def _next(mark: MigrationMark, table: MigratedTable, rows: list[Row]) -> MigrationMark:
    in_all = mark.rows + len(rows)
    return (
        MigrationMark(mark.table, table.key_of(rows[-1]), in_all)
        if len(rows) == PAGE
        else MigrationMark(mark.table + 1, None, in_all)
    )


def _differences(held: StoreContents, arrived: StoreContents) -> str:
    ours = {**{f"{kind} {status}": count for (kind, status), count in held.by_status.items()}, **held.others}
    theirs = {**{f"{kind} {status}": count for (kind, status), count in arrived.by_status.items()}, **arrived.others}
    names = [name for name in {**ours, **theirs} if ours.get(name, 0) != theirs.get(name, 0)]
    return ", ".join(f"{name} {ours.get(name, 0):,} and {theirs.get(name, 0):,}" for name in names)

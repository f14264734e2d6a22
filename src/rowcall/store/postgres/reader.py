"""The reading half of the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from rowcall.model import json_values
from rowcall.model.job import Status
from rowcall.store.base import Reader
from rowcall.store.call_history import History, Span
from rowcall.store.postgres import history, keeping, queries, recipes, runs, schema, twins, withdrawing
from rowcall.store.postgres.backup import backup
from rowcall.store.postgres.faults import translated
from rowcall.store.postgres.pool import Connection, Database
from rowcall.store.types import (
    Answer,
    Counts,
    ErrorGroup,
    Flaw,
    JobRow,
    LastCall,
    LeftBehind,
    RequestStanding,
    RolledBack,
    RunRow,
    Selected,
    Selection,
    Try,
    read_answer,
)

P = ParamSpec("P")
T = TypeVar("T")


class PostgresReader(Reader):
    """Reads a store beside whoever writes it; never writes.

    Made by ``open``. Each question is one transaction of its own, which sees one moment.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    async def open(cls, url: str) -> Self:
        """Open an existing store by the URL of its database.

        Raises:
            NoStore: there is no store yet.
            Unavailable: the server cannot be reached, or does not let us in.
            SchemaMismatch: another rowcall made the tables.
        """
        database = await Database.open(url)
        try:
            await database.read(schema.require, database.name)
        except BaseException:
            await database.close()
            raise
        return cls(database)

    async def close(self) -> None:
        """Give up the connections; safe to repeat."""
        await self._database.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def kinds(self) -> list[str]:
        """The kinds in the store, by name."""
        return await self._read(queries.kinds)

    async def counts(self, kind: str) -> Counts:
        """A kind at a glance: one walk over its jobs."""
        return await self._read(queries.counts, kind)

    async def spent(self, kind: str) -> int:
        """What all calls of the kind have cost so far, in nano-dollars."""
        return await self._read(queries.spent, kind)

    async def errors(self, kind: str) -> list[ErrorGroup]:
        """Failed jobs by reason, most first."""
        return await self._read(queries.errors, kind)

    async def job(self, kind: str, key: str) -> JobRow | None:
        """One job by its key."""
        return await self._read(queries.job, kind, key)

    async def payload(self, row: int) -> dict[str, Any] | None:
        """The record of a job; None where it was pruned."""
        record = await self._read(queries.payload, row)
        with translated(self._database.name):
            return None if record is None else json_values.read_back(record)

    async def donor(self, row: int) -> str | None:
        """The key of the twin whose answer a job was given; None where it was called itself."""
        return await self._read(twins.donor, row)

    async def tries(self, row: int) -> list[Try]:
        """A job's unsuccessful calls, oldest first."""
        return await self._read(queries.tries, row)

    async def answers(self, kind: str, keys: Sequence[str]) -> dict[str, Answer]:
        """Jobs by key, with the current answer of the done ones. At most 1,000 keys a call."""
        rows = await self._read(queries.answers, kind, keys)
        with translated(self._database.name):
            return {answer.key: answer for answer in map(read_answer, rows)}

    async def last_calls(self, kind: str, keys: Sequence[str]) -> dict[str, LastCall]:
        """What the last calls of jobs came to, by key."""
        return await self._read(queries.last_calls, kind, keys)

    async def page(self, kind: str, *, after: int = 0, limit: int = 1000, status: Status | None = None) -> list[JobRow]:
        """Jobs in the order of their enqueueing, those after row ``after``."""
        return await self._read(queries.page, kind, after, limit, status)

    async def strays(self, kind: str, pass_: int) -> int:
        """Jobs, pending or failed, that an earlier pass brought and this one did not."""
        return await self._read(queries.strays, kind, pass_)

    async def last_run(self, kind: str) -> RunRow | None:
        """The newest run of the kind."""
        return await self._read(runs.last_run, kind)

    async def live_runs(self, kind: str) -> list[RunRow]:
        """The runs of the kind whose session is alive, newest first."""
        return await self._read(runs.live_runs, kind)

    async def runs(self, kind: str) -> list[RunRow]:
        """The runs of the kind, oldest first."""
        return await self._read(runs.runs, kind)

    async def recipe(self, kind: str) -> dict[str, Any] | None:
        """How the calls of the kind are made, as it was last published; None where it never was."""
        return await self._read(recipes.recipe, kind)

    async def history(self, kind: str, span: Span, quiet: float) -> History:
        """How calls went in a span of time: walks over them."""
        return await self._read(history.history, kind, span, quiet)

    async def request_standing(self, kind: str, hash_: str) -> RequestStanding:
        """How a request stands to what is in the store."""
        return await self._read(queries.request_standing, kind, hash_)

    async def select(self, kind: str, selection: Selection) -> Selected:
        """What a selection holds; nothing is changed."""
        return await self._read(queries.select, kind, selection)

    async def check(self) -> list[str]:
        """Faults that the server knows of; it looks for none."""
        return await self._read(queries.check)

    async def flaws(self, kind: str) -> list[Flaw]:
        """Faults in what a kind holds."""
        return await self._read(keeping.flaws, kind)

    async def batches(self, kind: str) -> list[str]:
        """The batches of a kind, by name."""
        return await self._read(withdrawing.batches, kind)

    async def batch_answers(self, kind: str, batch: str) -> RolledBack:
        """What ``rollback`` would do; nothing is changed."""
        return await self._read(withdrawing.batch_answers, kind, batch)

    async def prunable(self, kind: str, before: str) -> int:
        """Payloads that ``prune`` would drop."""
        return await self._read(keeping.prunable, kind, before)

    async def left_behind(self, kind: str, pass_: int, *, after: int = 0, limit: int = 1000) -> list[LeftBehind]:
        """Pending jobs with a payload that this pass did not bring."""
        return await self._read(keeping.left_behind, kind, pass_, after, limit)

    async def backup(self, path: Path) -> None:
        """Write a snapshot to a new SQLite file; whoever works on the database goes on meanwhile.

        Raises:
            OutputError: the file is there already, or cannot be written.
        """
        await backup(self._database, path)

    async def _read(
        self, query: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._database.read(query, *args, **kwargs)

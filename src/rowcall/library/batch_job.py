"""A batch job as a program holds it."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from rowcall.calls.handlers import Function, check_signature
from rowcall.config import Config, HandlerTable, InputTable
from rowcall.engine.options import IfChanged, Options, Report
from rowcall.engine.run_parts import RunParts
from rowcall.library.added_records import Records, Spool, Staged
from rowcall.library.live_display import LiveDisplay
from rowcall.model.errors import NoStore
from rowcall.model.events import Listener
from rowcall.model.job import Record, Status
from rowcall.output import is_table, open_export
from rowcall.output.join_answers import Join, OutputShape
from rowcall.run.assembly import assemble_from
from rowcall.run.job_store import open_reader
from rowcall.run.make_calls import handler_calls
from rowcall.run.output_config import key_column, make_columns
from rowcall.run.pipeline import Assembling, Pipeline
from rowcall.sources.keys import Keying, compile_key
from rowcall.store.base import Reader
from rowcall.store.types import Answer, Enqueued, Entry

GROUP = 500
"""Records looked up at a time."""


@dataclass(frozen=True, slots=True)
class Result:
    """One record and what became of it.

    Attributes:
        key: its key.
        status: ``done``, ``failed``, ``pending``, ``running`` or ``cancelled``.
        value: what the handler gave for it; None where it is not done.
        row: the record.
        error: why it failed, for a person.
        reason: why it failed, as a stable code.
    """

    key: str
    status: Status
    value: Any
    row: dict[str, Any]
    error: str | None = None
    reason: str | None = None


class BatchJob:
    """Records, a store and an API; made by ``rowcall.open``, used as an async context manager.

    Args:
        config: what to do.
        emit: told what happens in a run.
        display: whether runs are shown while they work; None: in a notebook.
    """

    def __init__(self, config: Config, emit: Listener | None = None, *, display: bool | None = None) -> None:
        self._config = config
        self._emit = emit
        self._display = display
        self._folder: TemporaryDirectory[str] | None = None
        self._staged = Staged()
        self._key: str | None = None
        self._spool: Spool | None = None
        self._function: Function | None = None
        self._begun = False
        self._pipeline: Pipeline | None = None

    def __repr__(self) -> str:
        return f"<rowcall {self._config.name} in {self._config.store_location}>"

    async def __aenter__(self) -> Self:
        self._folder = TemporaryDirectory(prefix="rowcall-")
        self._spool = Spool(Path(self._folder.name))
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._spool = None
        if self._folder:
            self._folder.cleanup()

    async def add(self, records: Records, *, key: str | None = None) -> Enqueued:
        """Bring records in, for the next run; all that is added until then is worked on together.

        The records are read once, so that what cannot be read is known before anything is paid for; what can be
        read only once is kept in a temporary file meanwhile.

        Args:
            records: a path, what ``rowcall.read`` gives, rows, or rows that come asynchronously.
            key: a column, or a template, unique per record; None: a hash of the record. The same in all ``add``.

        Returns:
            How the records stand to what is in the store; ``total`` is how many there are.

        Raises:
            InputError: a record that cannot be read or has no key; nothing of these records is brought in.
            ValueError: another key than before.
        """
        self._begin_adding(key)
        source = await self._opened().source_of(records)
        if source is None:
            return Enqueued()
        counts = await self._compare(Staged.of(source))
        self._staged.append(source)
        return counts

    async def run(
        self,
        handler: Function | None = None,
        *,
        limit: int | None = None,
        if_changed: IfChanged | None = None,
        retry_failed: bool = False,
        batch: str | None = None,
    ) -> Report:
        """Start, or go on: call the handler for every record that is not done.

        Without any ``add`` before, the pending records in the store are worked on.

        Args:
            handler: ``async def f(row, call)``, or ``def f(row, call)``, which runs in a thread; None: that of the
                last run.
            limit: most records worked on in this run.
            if_changed: where records were done by another handler or version: ``keep`` their answers, ``redo`` them,
                or ``stop`` (as None does).
            retry_failed: failed records are set back to pending first.
            batch: label of the records that come in.

        Raises:
            ConfigError: no handler that takes a row and a call; a variable that is not set.
            InputError: a record with the key of another one that differs.
            RequestChanged: records were done by another handler or version, and ``if_changed`` does not say what to do.
            StoreError: the store cannot be used.
        """
        self._opened()
        function = self._handler(handler)
        options = Options(
            limit=limit,
            batch=batch,
            if_changed=if_changed,
            retry_failed=retry_failed,
            left_behind=not self._staged,
        )
        self._begun = True
        shown = LiveDisplay.here(self._display, self._emit)
        self._pipeline = Pipeline(self._config_for(function), emit=shown.hear, assembling=self._assembling(function))
        try:
            async with shown.during(self._pipeline, limit):
                report = await self._pipeline.run(options)
            shown.ended(report)
            return report
        finally:
            self._pipeline = None

    def stop(self) -> None:
        """Let the run that is under way take no more records; calls in flight may end."""
        if self._pipeline:
            self._pipeline.stop("interrupted")

    async def results(self) -> AsyncIterator[Result]:
        """The records that were added, in their order, each with what became of it; else all that are in the store.

        Raises:
            StoreError: there is no store yet, or it cannot be read.
        """
        async with await open_reader(self._config) as reader:
            found = self._results_of_input(reader) if self._staged else self._results_of_store(reader)
            async for result in found:
                yield result

    async def export(
        self, path: str | Path, *, columns: Mapping[str, str] | None = None, only: Status | None = None
    ) -> int:
        """Write the records that were added, with new columns beside their own; returns how many rows.

        Args:
            path: ``.csv``, ``.tsv``, ``.jsonl``, ``.json``, ``.parquet`` or ``.db``; written as a whole or not at all.
            columns: new columns by their JMESPath into the result; left out: one column ``result``.
            only: records with that status alone.

        Raises:
            OutputError: it cannot be written.
            ConfigError: not a JMESPath.
        """
        new = make_columns(columns or self._config.output.columns)
        async with await open_reader(self._config) as reader:
            key, added = key_column(self._keying().key, None)
            shape = OutputShape(key_as=key if added and is_table(path) else None)
            join = Join(reader, self._config.name, self._staged, self._keying(), new, shape)
            with open_export(path, table=self._config.name, key=key) as export:
                return await join.write(export, only=only)

    # What is to be done

    def _opened(self) -> Spool:
        if self._spool is None:
            raise RuntimeError("use it as in: async with rowcall.open(...) as job")
        if self._pipeline is not None:
            raise RuntimeError("a run is under way")
        return self._spool

    def _begin_adding(self, key: str | None) -> None:
        if self._begun:
            self._staged, self._begun = Staged(), False
        if self._staged and key != self._key:
            raise ValueError(f"records of one run have one key, {self._key!r} and not {key!r}")
        self._key = key

    def _handler(self, handler: Function | None) -> Function:
        function = handler or self._function
        if function is None:
            raise ValueError("run needs a handler: async def f(row, call)")
        check_signature(function, name_of(function), "rowcall.run")
        self._function = function
        return function

    def _config_for(self, function: Function) -> Config:
        """The config with this handler, whose name is a part of what the store knows answers by."""
        table = self._config.handler or HandlerTable.model_construct()
        handler = table.model_copy(update={"path": name_of(function)})
        return self._config.model_copy(update={"handler": handler, "input": self._input()})

    def _input(self) -> InputTable:
        return self._config.input.model_copy(update={"key": self._key})

    def _assembling(self, function: Function) -> Assembling:
        def assemble(config: Config, *, base_url: str | None = None) -> RunParts:
            return assemble_from(config, self._staged, handler_calls(config, function, base_url))

        return assemble

    def _keying(self) -> Keying:
        table = self._config.handler
        columns = frozenset(table.columns) if table and table.columns else None
        return Keying(compile_key(self._key), columns)

    # What there is

    async def _compare(self, source: Staged) -> Enqueued:
        """How records stand to the store, which is only read."""
        counts = Enqueued()
        try:
            opened = await open_reader(self._config)
        except NoStore:
            async for group in self._groups(source):
                counts += Enqueued(new=len(group))
            return counts
        async with opened as reader:
            async for group in self._groups(source):
                found = await self._answers(reader, group)
                for _, entry in group:
                    counts += _standing(found.get(entry.key), entry)
        return counts

    async def _results_of_input(self, reader: Reader) -> AsyncIterator[Result]:
        async for group in self._groups(self._staged):
            found = await self._answers(reader, group)
            for record, entry in group:
                yield _result(entry.key, record.data, found.get(entry.key), entry.input_hash)

    async def _results_of_store(self, reader: Reader) -> AsyncIterator[Result]:
        last = 0
        while page := await reader.page(self._config.name, after=last, limit=GROUP):
            found = await reader.answers(self._config.name, [job.key for job in page])
            for job in page:
                row = await reader.payload(job.row)
                yield _result(job.key, row or {}, found.get(job.key))
            last = page[-1].row

    async def _groups(self, source: Staged) -> AsyncIterator[list[tuple[Record, Entry]]]:
        keying, records = self._keying(), iter(source)
        while group := await asyncio.to_thread(_group, records, keying):
            yield group

    async def _answers(self, reader: Reader, group: list[tuple[Record, Entry]]) -> dict[str, Answer]:
        return await reader.answers(self._config.name, list({entry.key for _, entry in group}))


def name_of(function: Function) -> str:
    """``module:qualname``; a script's module is its file's name, however it was started."""
    while isinstance(function, functools.partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    module = named.__module__
    if module == "__main__":
        module = Path(getattr(sys.modules[module], "__file__", None) or module).stem
    return f"{module}:{named.__qualname__}"


def _group(records: Iterator[Record], keying: Keying) -> list[tuple[Record, Entry]]:
    return [(record, keying.entry(record)) for record in islice(records, GROUP)]


_UNCHANGED = {
    Status.PENDING: Enqueued(waiting=1),
    Status.RUNNING: Enqueued(waiting=1),
    Status.DONE: Enqueued(done=1),
    Status.FAILED: Enqueued(failed=1),
    Status.CANCELLED: Enqueued(cancelled=1),
}


def _standing(answer: Answer | None, entry: Entry) -> Enqueued:
    if answer is None:
        return Enqueued(new=1)
    return _UNCHANGED[answer.status] if answer.input_hash == entry.input_hash else Enqueued(changed=1)


def _result(key: str, row: dict[str, Any], answer: Answer | None, input_hash: str | None = None) -> Result:
    """A record with its answer; one to what it was before an edit does not count."""
    if answer is None or (input_hash is not None and answer.input_hash != input_hash):
        return Result(key, Status.PENDING, None, row)
    return Result(key, answer.status, answer.value, row, answer.error, answer.reason)

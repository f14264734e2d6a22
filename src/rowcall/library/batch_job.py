"""The batch job that ``rowcall.open`` returns."""

from __future__ import annotations

import functools
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from rowcall.calls.handlers import Function, check_signature
from rowcall.config import Config, HandlerTable
from rowcall.engine.options import IfChanged, Options, Report
from rowcall.engine.run_parts import RunParts
from rowcall.library.added_records import AddedRecords, Records, TemporaryCopies
from rowcall.library.job_results import Result, compare, results_of_input, results_of_store
from rowcall.library.live_display import LiveDisplay
from rowcall.model.events import Listener
from rowcall.model.job import Status
from rowcall.output import is_table, open_export
from rowcall.output.join_answers import Join, OutputShape
from rowcall.run.assembly import assemble_from
from rowcall.run.job_store import open_reader
from rowcall.run.make_calls import handler_calls
from rowcall.run.output_config import key_column, make_columns
from rowcall.run.pipeline import MakeParts, Pipeline
from rowcall.sources.keys import Keying, compile_key
from rowcall.store.types import Enqueued


class BatchJob:
    """Records, a store and an API. Made by ``rowcall.open`` and used as an async context manager.

    Args:
        config: the config of the job.
        emit: called with each event of a run.
        display: whether runs show their progress; None: only in a notebook.
    """

    def __init__(self, config: Config, emit: Listener | None = None, *, display: bool | None = None) -> None:
        self._config = config
        self._emit = emit
        self._display = display
        self._folder: TemporaryDirectory[str] | None = None
        self._added = AddedRecords()
        self._key: str | None = None
        self._copies: TemporaryCopies | None = None
        self._function: Function | None = None
        self._begun = False
        self._pipeline: Pipeline | None = None

    def __repr__(self) -> str:
        return f"<rowcall {self._config.name} in {self._config.store_location}>"

    async def __aenter__(self) -> Self:
        self._folder = TemporaryDirectory(prefix="rowcall-")
        self._copies = TemporaryCopies(Path(self._folder.name))
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._copies = None
        if self._folder:
            self._folder.cleanup()

    async def add(self, records: Records, *, key: str | None = None) -> Enqueued:
        """Add records to the next run. All records added before a run are worked on together.

        The records are read once now, so that an unreadable record is found before anything is paid for. Records that
        can be read only once are kept in a temporary file until the block ends.

        Args:
            records: a path, a source from ``rowcall.read``, rows, or an asynchronous iterable of rows.
            key: a column or a template that is unique per record; None: a hash of the record. It must be the same in
                all calls of ``add`` before a run.

        Returns:
            How many records are new, changed, waiting, done, failed or cancelled in the store; ``total`` is their sum.

        Raises:
            InputError: a record cannot be read or has no key. None of these records is added.
            ValueError: the key differs from that of records added before.
        """
        if self._begun:
            self._added, self._begun = AddedRecords(), False
        if self._added and key != self._key:
            raise ValueError(f"all records of one run need the same key: {self._key!r}, not {key!r}")
        self._key = key
        source = await self._opened().source_of(records)
        if source is None:
            return Enqueued()
        counts = await compare(self._config, AddedRecords.of(source), self._keying())
        self._added.append(source)
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
        """Start or resume: call the handler for every record that is not done.

        If no records were added, work on the pending records in the store.

        Args:
            handler: ``async def f(row, call)``, or ``def f(row, call)``, which runs in a thread; None: the handler of
                the last run.
            limit: the most records to work on in this run; None: all.
            if_changed: what to do with records that another handler or version has finished: ``keep`` their answers,
                ``redo`` them, or ``stop`` (the default).
            retry_failed: set failed records back to pending first.
            batch: a label for the added records; None: ``pass-`` and a number.

        Returns:
            What the run did, why it ended, and the counts of the whole job.

        Raises:
            ConfigError: the handler does not take a row and a call, or an environment variable is not set.
            InputError: two records have the same key but different contents.
            RequestChanged: another handler or version has finished records, and ``if_changed`` does not say what to do.
            StoreError: the store cannot be used.
        """
        self._opened()
        function = self._handler(handler)
        options = Options(
            limit=limit,
            batch=batch,
            if_changed=if_changed,
            retry_failed=retry_failed,
            left_behind=not self._added,
        )
        self._begun = True
        shown = LiveDisplay.here(self._display, self._emit)
        self._pipeline = Pipeline(self._config_for(function), emit=shown.hear, make_parts=self._make_parts(function))
        try:
            async with shown.during(self._pipeline, limit):
                report = await self._pipeline.run(options)
            shown.ended(report)
            return report
        finally:
            self._pipeline = None

    def stop(self) -> None:
        """Stop the current run: it starts no more records and waits for its calls in flight."""
        if self._pipeline:
            self._pipeline.stop("interrupted")

    async def results(self) -> AsyncIterator[Result]:
        """Yield the result of each added record, in order; if none was added, of each record in the store.

        Raises:
            StoreError: the store does not exist yet or cannot be read.
        """
        async with await open_reader(self._config) as reader:
            kind, added = self._config.name, self._added
            results = results_of_input(reader, kind, added, self._keying()) if added else results_of_store(reader, kind)
            async for result in results:
                yield result

    async def export(
        self, path: str | Path, *, columns: Mapping[str, str] | None = None, only: Status | None = None
    ) -> int:
        """Write the added records with their results and return the number of rows.

        Args:
            path: a ``.csv``, ``.tsv``, ``.jsonl``, ``.json``, ``.parquet`` or ``.db`` file. It is written completely or
                not at all.
            columns: the new columns, each with a JMESPath expression into the result; None: one column ``result``.
            only: write only the records with this status; None: all.

        Raises:
            OutputError: the file cannot be written.
            ConfigError: an expression is not valid JMESPath.
        """
        new = make_columns(columns or self._config.output.columns)
        async with await open_reader(self._config) as reader:
            key, added = key_column(self._keying().key, None)
            shape = OutputShape(key_as=key if added and is_table(path) else None)
            join = Join(reader, self._config.name, self._added, self._keying(), new, shape)
            with open_export(path, table=self._config.name, key=key) as export:
                return await join.write(export, only=only)

    # What a run needs

    def _opened(self) -> TemporaryCopies:
        if self._copies is None:
            raise RuntimeError("use the job in a block: async with rowcall.open(...) as job: ...")
        if self._pipeline is not None:
            raise RuntimeError("a run of this job is still at work")
        return self._copies

    def _handler(self, handler: Function | None) -> Function:
        function = handler or self._function
        if function is None:
            raise ValueError("run needs a handler: async def f(row, call)")
        check_signature(function, name_of(function), "rowcall.run")
        self._function = function
        return function

    def _config_for(self, function: Function) -> Config:
        """Return the config with this handler. Its name is part of the request, by which the store knows answers."""
        table = self._config.handler or HandlerTable.model_construct()
        handler = table.model_copy(update={"path": name_of(function)})
        input_ = self._config.input.model_copy(update={"key": self._key})
        return self._config.model_copy(update={"handler": handler, "input": input_})

    def _make_parts(self, function: Function) -> MakeParts:
        def assemble(config: Config, *, base_url: str | None = None) -> RunParts:
            return assemble_from(config, self._added, handler_calls(config, function, base_url))

        return assemble

    def _keying(self) -> Keying:
        table = self._config.handler
        columns = frozenset(table.columns) if table and table.columns else None
        return Keying(compile_key(self._key), columns)


def name_of(function: Function) -> str:
    """Return ``module:qualname``. A script's module is named after its file, so that ``__main__`` is not its name."""
    while isinstance(function, functools.partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    module = named.__module__
    if module == "__main__":
        module = Path(getattr(sys.modules[module], "__file__", None) or module).stem
    return f"{module}:{named.__qualname__}"

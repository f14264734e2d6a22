"""Opens the input that a config names."""

from __future__ import annotations

from rowcall.config import Config
from rowcall.model.errors import ConfigError, Problem
from rowcall.sources import open_source
from rowcall.sources.base import Source
from rowcall.sources.pipe_copy import PipeCopy
from rowcall.sources.store_source import StoreSource


def open_input(config: Config) -> Source:
    """Return the source of the records, without reading any of them.

    A source that can be read only once (a pipe) is copied while it is read, so that the export can read it again.

    Raises:
        ConfigError: the job would read its own results.
        InputError: the input does not exist, or has an unknown format.
    """
    table = config.input
    if table.store:
        if config.store_location.is_at(config.input_path) and table.kind in (None, config.name):
            what = "input.store is the store of this job itself"
            remedy = "kind names the other job in it, or [store] path another file for this one"
            raise ConfigError(Problem(config.where(("input", "store")), what, remedy))
        return StoreSource(config.input_path, table.store, table.kind, table.result or "result")
    source = open_source(
        config.input_path,
        name=table.path,
        format=table.format,
        header=table.header,
        quoting=table.quoting,
        encoding=table.encoding,
        sql=table.sql,
        sheet=table.sheet,
        on_bad=table.on_bad,
    )
    return source if source.rereadable else PipeCopy(source)

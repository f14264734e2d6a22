"""Writes an export: chooses its rows, its columns and its format."""

from __future__ import annotations

from pathlib import Path

from rowcall.config import Config
from rowcall.engine.run_parts import RunParts
from rowcall.model.job import Status
from rowcall.output import FormatName, is_table, open_export
from rowcall.output.join_answers import Join, OutputShape
from rowcall.output.openai_batch_output import BatchLines
from rowcall.run.output_config import format_at, key_column
from rowcall.store.base import Reader


async def write_output(
    config: Config,
    parts: RunParts,
    reader: Reader,
    path: Path,
    *,
    format_: FormatName | None = None,
    only: Status | None = None,
) -> int:
    """Write the input with its answers and return the number of rows. The file is written completely or not at all.

    Args:
        config: the config.
        parts: the input, its keys and the output columns.
        reader: the store.
        path: where the export goes; ``-`` is stdout.
        format_: its format; None: the config's format for the config's own path, else by the path's suffix.
        only: write only the records with this status; None: all.

    Raises:
        OutputError: the export cannot be written.
    """
    table, chosen = config.output, format_ or format_at(config, path)
    key, added = key_column(parts.keying.key, table.keep)
    shape = OutputShape(table.keep, table.overwrite, table.flatten, key if added and is_table(path, chosen) else None)
    join = Join(reader, config.name, parts.source, parts.keying, parts.columns, shape)
    header = shape.header(parts.source, parts.columns)
    with open_export(path, format=chosen, columns=header, table=table.table or config.name, key=key) as export:
        if chosen == "openai-batch-output":
            return await BatchLines(join, table.order).write(export, only=only)
        return await join.write(export, only=only)

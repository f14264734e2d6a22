"""An export from start to end: which rows, in which shape, where to."""

from __future__ import annotations

from pathlib import Path

from rowcall.batchlines import BatchLines
from rowcall.config import Config
from rowcall.exports import FormatName
from rowcall.job import Status
from rowcall.parts import Parts, format_at, open_output
from rowcall.results import Join
from rowcall.store.base import Reader


async def write_output(
    config: Config,
    parts: Parts,
    reader: Reader,
    path: Path,
    *,
    format_: FormatName | None = None,
    only: Status | None = None,
) -> int:
    """Write the input with its answers, as a whole or not at all; returns how many rows.

    Args:
        config: says how.
        parts: the input, and what belongs to it.
        reader: the store.
        path: where to; ``-`` is stdout.
        format_: None: the config's for the config's own path, else by the path's suffix.
        only: records with that status alone.

    Raises:
        OutputError: it cannot be written.
    """
    join = Join(reader, config.name, parts.source, parts.keying, parts.columns)
    with open_output(config, path, format_) as export:
        if (format_ or format_at(config, path)) == "openai-batch-output":
            return await BatchLines(join, config.output.order).write(export, only=only)
        return await join.write(export, only=only)

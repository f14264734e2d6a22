"""Reads and checks ``[output]``: the new columns, the format, the key column, and whether the export can be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rowcall.config import Config
from rowcall.model.errors import ConfigError, OutputError, Problem
from rowcall.model.store_location import StoreLocation
from rowcall.output import FormatName, check_export
from rowcall.output.join_answers import COLUMN_CLASH_REMEDY, Columns, OutputShape, column_clash_message
from rowcall.providers.read_reply import Unacceptable, compile_path
from rowcall.sources.keys import Key


def make_columns(paths: Mapping[str, str]) -> Columns:
    """Compile new columns from their JMESPath expressions into the answer.

    Raises:
        ConfigError: an expression is not valid JMESPath.
    """
    return {name: _column(name, path) for name, path in paths.items()}


def _column(name: str, path: str) -> Callable[[Any], Any]:
    """Return a function that reads a new column from an answer; null if the path does not fit the answer's shape."""
    read = compile_path(path, where=f"output.columns.{name}")

    def column(answer: Any) -> Any:
        try:
            return read(answer)
        except Unacceptable:
            return None

    return column


def check_output(config: Config, path: Path, format_: FormatName | None = None) -> None:
    """Check, before anything is called, that the export can be written and does not replace a file the run needs.

    Args:
        config: the config.
        path: where the export goes; ``-`` is stdout.
        format_: its format; None: the config's format for the config's own path, else by the path's suffix.

    Raises:
        OutputError: the export cannot be written, or would replace the input, the store or the config.
    """
    for what, other in {
        "the input": StoreLocation(config.input_path),
        "the store": config.store_location,
        "the config": StoreLocation(config.file),
    }.items():
        if other.is_at(path) and str(path) != "-":
            raise OutputError(f"{path} is {what}", remedy="name another file in [output] path, or with -o")
    check_export(path, format=format_ or format_at(config, path))


def format_at(config: Config, path: Path) -> FormatName | None:
    """Return the config's format if ``path`` is the config's own output path, else None."""
    return config.output.format if path == config.output_path else None


def check_output_columns(config: Config, available: Sequence[str] | None) -> None:
    """Check that ``[output]`` fits the columns of the input.

    Args:
        config: the config.
        available: the input's columns; None if they are not known in advance.

    Raises:
        ConfigError: a new column has the name of an input column, or ``keep`` names a column that does not exist.
    """
    table, known = config.output, available or []
    unknown = [name for name in table.keep or () if available is not None and name not in known]
    if unknown:
        what = f"output.keep names {', '.join(map(repr, unknown))}, which the input does not have"
        raise ConfigError(Problem(config.where(("output", "keep")), what, f"the columns are: {', '.join(known[:50])}"))
    clash = set(OutputShape(keep=table.keep).kept(known)) & table.columns.keys()
    if clash and not (table.overwrite or table.flatten or table.format == "openai-batch-output"):
        raise ConfigError(
            Problem(config.where(("output", "columns")), column_clash_message(clash), COLUMN_CLASH_REMEDY)
        )


def key_column(key: Key, keep: Sequence[str] | None) -> tuple[str, bool]:
    """Return the name of the key column of an exported table, and whether it must be added.

    It must be added, with the name ``key``, if the key is not a column that the export contains anyway.
    """
    named = key.spec is not None and "{{" not in key.spec and (keep is None or key.spec in keep)
    return (key.spec, False) if named and key.spec else ("key", True)

"""Writes answers: opens an export in the format that its path or the config names."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

from rowcall.config.export_formats import EXPORT_SUFFIXES, ExportFormat
from rowcall.model.errors import OutputError
from rowcall.output.base import Export
from rowcall.system import atomic_files

FormatName = ExportFormat

_STDOUT = "stdout"


@contextmanager
def open_export(
    path: str | Path,
    *,
    format: FormatName | None = None,  # noqa: A002  the word of the config
    columns: Sequence[str] | None = None,
    table: str = "rows",
    key: str = "key",
) -> Iterator[Export]:
    """Open an export, which replaces the old file when the block ends without an error; otherwise the old file stays.

    Args:
        path: the file; ``-`` is stdout, which gets the rows as they come, csv unless ``format`` says otherwise.
        format: instead of the suffix.
        columns: the header of csv and tsv, where rows may lack a column but have no other; left out: the keys of
            all rows, which are kept on disk until they are known. In jsonl and json each row has the keys it has.
        table: of a SQLite file, which gets the rows and keeps its others.
        key: the column by which rows are found there.

    Raises:
        OutputError: an unknown suffix, a missing or read-only folder, no space left, a value the format cannot hold.
    """
    stdout = str(path) == "-"
    chosen = format or ("csv" if stdout else _by_suffix(Path(path)))
    with _opened(path, chosen, columns, table, key) as export:
        yield export
        export.finish()


@contextmanager
def _opened(
    path: str | Path, chosen: FormatName, columns: Sequence[str] | None, table: str, key: str
) -> Iterator[Export]:
    if chosen == "sqlite":
        from rowcall.output.sqlite_export import open_table

        if str(path) == "-":
            raise OutputError("a database cannot be written to stdout", remedy="use -o FILE.db")
        with open_table(Path(path), table, key) as export:
            yield export
    else:
        with destination(path) as file, tempfile.TemporaryFile() as spool:
            yield _make(chosen, file, _STDOUT if str(path) == "-" else str(path), columns, spool)


def is_table(path: str | Path, format: FormatName | None = None) -> bool:  # noqa: A002  the word of the config
    """Return whether rows are written to a table of a SQLite file."""
    return (format or EXPORT_SUFFIXES.get(Path(path).suffix.lower())) == "sqlite"


def destination(path: str | Path) -> AbstractContextManager[BinaryIO]:
    """Open stdout, or a file that gets its name when the block ends without an error."""
    return _stdout() if str(path) == "-" else atomic_files.replacing(Path(path))


def check_export(path: Path, *, format: FormatName | None = None) -> None:  # noqa: A002  the word of the config
    """Check that ``open_export`` can write there, before any call is paid for.

    Raises:
        OutputError: an unknown suffix, a missing or read-only folder, a format whose library is not installed.
    """
    chosen = format or ("csv" if str(path) == "-" else _by_suffix(path))
    if chosen == "parquet":
        from rowcall.output.parquet_export import require_pyarrow

        require_pyarrow(str(path))
    if str(path) != "-":
        atomic_files.rehearse(path)


def _by_suffix(path: Path) -> FormatName:
    suffix = path.suffix.lower()
    if suffix not in EXPORT_SUFFIXES:
        what = f"{path}: {suffix or 'a file without a suffix'} is not a format that rowcall can write"
        raise OutputError(what, remedy=f"use one of {' '.join(EXPORT_SUFFIXES)}, or name the format with --format")
    return EXPORT_SUFFIXES[suffix]


@contextmanager
def _stdout() -> Iterator[BinaryIO]:
    file = sys.stdout.buffer
    with atomic_files.explained(_STDOUT):
        yield file
        file.flush()


def _make(chosen: FormatName, file: BinaryIO, name: str, columns: Sequence[str] | None, spool: BinaryIO) -> Export:
    from rowcall.output.row_spool import Spooled

    if chosen in ("jsonl", "openai-batch-output"):
        from rowcall.output.json_lines import JsonLinesExport

        return JsonLinesExport(file, name)
    if chosen == "json":
        from rowcall.output.json_array import JsonArrayExport

        return JsonArrayExport(file, name)
    if chosen == "parquet":
        from rowcall.output.parquet_export import ParquetExport

        return Spooled(spool, lambda found: ParquetExport(file, name, found))
    from rowcall.output.csv_export import DelimitedExport, check_tsv, csv_lines, tsv_lines

    rules = (csv_lines, None) if chosen == "csv" else (tsv_lines, check_tsv)
    if columns is None:
        return Spooled(spool, lambda found: DelimitedExport(file, name, found, *rules))
    return DelimitedExport(file, name, columns, *rules, at_once=name == _STDOUT)

"""Opens the input: chooses a reader by the file's suffix or its first bytes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rowcall.model.errors import InputError
from rowcall.sources.base import Source

if TYPE_CHECKING:
    from rowcall.sources.byte_streams import ByteSource
    from rowcall.sources.text_source import TextFormat

FormatName = Literal["csv", "tsv", "jsonl", "json", "sqlite", "parquet", "xlsx", "openai-batch"]

SUFFIXES: dict[str, FormatName] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".db": "sqlite",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
}
"""The format of each suffix. A text format may also have .gz behind it."""


def open_source(
    path: str | Path,
    *,
    name: str | None = None,
    format: FormatName | None = None,  # noqa: A002  the key of the config
    header: Sequence[str] | None = None,
    quoting: bool | None = None,
    encoding: str | None = None,
    sql: str | None = None,
    sheet: str | None = None,
    on_bad: Literal["stop", "skip"] = "stop",
) -> Source:
    """Make the source for a file, by its suffix. Nothing is read yet.

    Args:
        path: the file; ``-`` is stdin, which is read as JSON if it starts with an object or array, else as CSV.
        name: the name of the file in messages. None: its name without folders.
        format: the format, instead of the suffix.
        header: the columns of a csv or tsv file without a header line.
        quoting: whether cells may be in double quotes. None: yes in csv, no in tsv.
        encoding: None: UTF-8. A byte order mark overrides both.
        sql: the query, for a database.
        sheet: the sheet of an .xlsx file. None: the first.
        on_bad: ``stop``: a line that cannot be read is an error. ``skip``: it is written to ``<path>.bad.jsonl``.

    Raises:
        InputError: the suffix or encoding is unknown, or the format does not have one of the options.
    """
    file = Path(path)
    stdin = str(path) == "-"
    name = name or ("stdin" if stdin else file.name)
    chosen = format or (None if stdin else _by_suffix(file, name))
    _check_options(name, chosen, header=header, quoting=quoting, encoding=encoding, sql=sql, sheet=sheet)
    quarantine = Path("stdin.bad.jsonl" if stdin else f"{file}.bad.jsonl") if on_bad == "skip" else None
    if chosen == "sqlite":
        from rowcall.sources.sql_source import SqliteSource

        return SqliteSource(file, name, sql, quarantine=quarantine)
    if chosen in ("parquet", "xlsx"):
        from rowcall.sources.parquet_xlsx import TableFile, parquet_table, xlsx_table

        opened = parquet_table(file, name) if chosen == "parquet" else xlsx_table(file, name, sheet)
        return TableFile(file, name, opened, quarantine=quarantine)
    from rowcall.sources.encodings import check_encoding
    from rowcall.sources.text_source import TextSource

    check_encoding(name, encoding)
    layout = _layouts(name, chosen, header, quoting)
    return TextSource(_input(file, name, stdin=stdin), layout, encoding=encoding, quarantine=quarantine)


def _by_suffix(file: Path, name: str) -> FormatName:
    suffix = Path(file.name.lower().removesuffix(".gz")).suffix
    if suffix not in SUFFIXES:
        remedy = f"rowcall reads {' '.join(SUFFIXES)} (text formats also with .gz), and - for stdin"
        raise InputError(
            name, f"{suffix or 'a file without a suffix'} is not a format that rowcall reads", remedy=remedy
        )
    if SUFFIXES[suffix] in ("sqlite", "parquet", "xlsx") and file.name.lower().endswith(".gz"):
        raise InputError(name, f"a compressed {suffix} file cannot be read", remedy=f"gunzip --keep {file}")
    return SUFFIXES[suffix]


_USED_BY = {
    "header": ("csv", "tsv"),
    "quoting": ("csv", "tsv"),
    "encoding": ("csv", "tsv", "jsonl", "json", "openai-batch"),
    "sql": ("sqlite",),
    "sheet": ("xlsx",),
}


def _check_options(name: str, chosen: FormatName | None, **options: object) -> None:
    for option, value in options.items():
        if value is not None and (chosen or "csv") not in _USED_BY[option]:
            formats = " and ".join(_USED_BY[option])
            raise InputError(
                name, f"{option} has no effect on {chosen or 'stdin'}", remedy=f"it works only with {formats}"
            )


def _input(file: Path, name: str, *, stdin: bool) -> ByteSource:
    from rowcall.sources.byte_streams import File, Pipe

    if stdin:
        return Pipe(lambda: sys.stdin.buffer, name, close=False)
    if file.exists() and not file.is_file() and not file.is_dir():
        return Pipe(lambda: file.open("rb"), name, close=True)
    return File(file, name)


def _layouts(
    name: str, chosen: FormatName | None, header: Sequence[str] | None, quoting: bool | None
) -> Callable[[bytes], TextFormat]:
    """Return a function that chooses how to read a text, given its first bytes."""
    known = chosen or ("csv" if header is not None or quoting is not None else None)

    def layout(head: bytes) -> TextFormat:
        from rowcall.sources.csv_source import Delimited
        from rowcall.sources.json_source import JsonArray, JsonLines
        from rowcall.sources.openai_batch_input import check_batch_line

        match known or _guess(head):
            case "tsv":
                return Delimited(name, "\t", quoting=quoting is True, header=header)
            case "jsonl":
                return JsonLines(name)
            case "openai-batch":
                return JsonLines(name, check_batch_line)
            case "json":
                return JsonArray(name)
            case _:
                return Delimited(name, ",", quoting=quoting is not False, header=header)

    return layout


def _guess(head: bytes) -> FormatName:
    """Guess a format by the first character that is not a byte order mark, NUL (UTF-16) or white space."""
    first = head.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")[:1]
    guesses: dict[bytes, FormatName] = {b"{": "jsonl", b"[": "json"}
    return guesses.get(first, "csv")

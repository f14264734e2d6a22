"""Where answers go."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from rowcall import atomic
from rowcall.errors import OutputError
from rowcall.exports.base import Export

FormatName = Literal["csv", "tsv", "jsonl", "openai-batch-output"]

SUFFIXES: dict[str, FormatName] = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
"""What each suffix means."""


@contextmanager
def open_export(
    path: str | Path,
    *,
    format: FormatName | None = None,  # noqa: A002  the word of the config
    columns: Sequence[str] | None = None,
) -> Iterator[Export]:
    """A file of rows that takes its name when the block ends well; until then, and otherwise, the old one stays.

    Args:
        path: the file; ``-`` is stdout, which gets the rows as they come, csv unless ``format`` says otherwise.
        format: instead of the suffix.
        columns: the header of csv and tsv, where rows may lack a column but have no other; left out: the keys of
            the first row. In jsonl each row has the keys it has.

    Raises:
        OutputError: an unknown suffix, a missing or read-only folder, no space left, a value the format cannot hold.
    """
    stdout = str(path) == "-"
    chosen = format or ("csv" if stdout else _by_suffix(Path(path)))
    with destination(path) as file:
        yield _make(chosen, file, "stdout" if stdout else str(path), columns)


def destination(path: str | Path) -> AbstractContextManager[BinaryIO]:
    """Where bytes go: a file that takes its name when the block ends well, or stdout."""
    return _stdout() if str(path) == "-" else atomic.replacing(Path(path))


def check_export(path: Path, *, format: FormatName | None = None) -> None:  # noqa: A002  the word of the config
    """See that ``open_export`` could write there, before anything is paid for.

    Raises:
        OutputError: an unknown suffix, a missing or read-only folder.
    """
    if str(path) != "-":
        _ = format or _by_suffix(path)
        atomic.rehearse(path)


def _by_suffix(path: Path) -> FormatName:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        what = f"{path}: {suffix or 'a file without a suffix'} is not a format that is written"
        raise OutputError(what, remedy=f"known are {' '.join(SUFFIXES)}; or say --format csv|jsonl")
    return SUFFIXES[suffix]


@contextmanager
def _stdout() -> Iterator[BinaryIO]:
    file = sys.stdout.buffer
    with atomic.explained("stdout"):
        yield file
        file.flush()


def _make(chosen: FormatName, file: BinaryIO, name: str, columns: Sequence[str] | None) -> Export:
    if chosen in ("jsonl", "openai-batch-output"):
        from rowcall.exports.jsonlines import JsonLinesExport

        return JsonLinesExport(file, name)
    from rowcall.exports.delimited import DelimitedExport, csv_line, tsv_line

    return DelimitedExport(file, name, columns, csv_line if chosen == "csv" else tsv_line)

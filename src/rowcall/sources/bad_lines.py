"""Lines that cannot be read: they end the reading, or are written to a file of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rowcall.model import json_values
from rowcall.model.errors import InputError
from rowcall.system import atomic_files


@dataclass(frozen=True, slots=True)
class LineFault:
    """What is wrong with a line, and what to do about it."""

    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is not a valid record. ``number`` counts from 1; ``raw`` is its text as read."""

    where: str
    number: int
    fault: LineFault
    raw: str


Report = Callable[[BadLine], None]
"""Called with each bad line. An exception from it ends the reading."""


def stop(bad: BadLine) -> None:
    """End the reading.

    Raises:
        InputError: always.
    """
    skip = 'or set on_bad = "skip" in [input], to write bad lines to a file and continue with the others'
    raise InputError(bad.where, bad.fault.what, remedy=f"{bad.fault.remedy}\n  {skip}")


def ignore(bad: BadLine) -> None:
    """Do nothing: a later reading reports the line."""


@contextmanager
def bad_lines_file(path: Path) -> Iterator[Report]:
    """Write bad lines to ``path``, one JSON object each: line, reason, raw.

    When the reading is complete, the file is replaced, or removed if there were no bad lines. If the reading breaks
    off, the old file stays.

    Raises:
        OutputError: the file cannot be written.
    """
    with ExitStack() as stack:
        files: list[BinaryIO] = []

        def set_aside(bad: BadLine) -> None:
            if not files:
                files.append(stack.enter_context(atomic_files.replacing(path)))
            entry = {"line": bad.number, "reason": bad.fault.what, "raw": printable(bad.raw)}
            files[0].write(json_values.dumps(entry) + b"\n")

        yield set_aside
    if not files:
        atomic_files.remove(path)


def printable(text: str) -> str:
    """Write undecodable bytes and lone surrogates as escapes, so that the text can be stored as UTF-8."""
    return text.translate(_ESCAPES) if not text.isascii() else text


_ESCAPES = {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(256)} | {
    code: f"\\u{code:04x}" for code in range(0xD800, 0xE000) if not 0xDC00 <= code < 0xDD00
}

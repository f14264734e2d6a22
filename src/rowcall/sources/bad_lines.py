"""What is done about lines that cannot be read: the reading stops there, or they are set aside in a file."""

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
    """A line that is no record; ``number`` counts from 1, ``raw`` is its text as it was read."""

    where: str
    number: int
    fault: LineFault
    raw: str


Report = Callable[[BadLine], None]
"""Told of each bad line; what it raises ends the reading."""


def stop(bad: BadLine) -> None:
    """End the reading.

    Raises:
        InputError: always.
    """
    skip = 'on_bad = "skip" under [input] sets such lines aside'
    raise InputError(bad.where, bad.fault.what, remedy=f"{bad.fault.remedy}\n  {skip}")


def ignore(bad: BadLine) -> None:
    """Leave it to the next reading."""


@contextmanager
def setting_aside(path: Path) -> Iterator[Report]:
    """Write bad lines to ``path``, one JSON object each: line, reason, raw.

    The file is replaced when the reading is complete, removed where it found none, and left as it was where the
    reading broke off.

    Raises:
        OutputError: it cannot be written.
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
    """``text`` with the bytes that could not be decoded, and lone surrogates, as escapes."""
    return text.translate(_ESCAPES) if not text.isascii() else text


_ESCAPES = {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(256)} | {
    code: f"\\u{code:04x}" for code in range(0xD800, 0xE000) if not 0xDC00 <= code < 0xDD00
}

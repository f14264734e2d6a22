"""Reads JSON: one object per line, or one array of objects. Numbers keep their digits as written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TextIO

from rowcall.model import json_values
from rowcall.model.errors import InputError
from rowcall.model.job import Record
from rowcall.sources.bad_lines import BadLine, LineFault, Report, ignore
from rowcall.sources.encodings import LONE_SURROGATE, NUL, empty, find_fault
from rowcall.sources.text_source import columns_of

_BLOCK = 1 << 16  # characters
_LONGEST_TOKEN = 16  # the longest number, literal or escape, in characters, that the end of a block may cut

Object = dict[str, Any]
Check = Callable[[Object], LineFault | None]
"""Finds other faults of a record."""


@dataclass(frozen=True, slots=True)
class JsonLines:
    """One object per line; blank lines are skipped."""

    name: str
    check: Check | None = None
    uniform: ClassVar[bool] = False

    def columns(self, text: TextIO) -> list[str] | None:
        """Return the keys of the first 100 records."""
        return columns_of(self.records(text, ignore))

    def records(self, text: TextIO, report: Report) -> Iterator[Record]:
        """Yield one record per line."""
        blank = True
        for number, line in enumerate(text, 1):
            if line.isspace():
                continue
            blank = False
            found = _parse(line, text.encoding, self.check)
            if isinstance(found, LineFault):
                report(BadLine(f"{self.name}:{number}", number, found, line))
            else:
                yield Record(found, f"{self.name}:{number}")
        if blank:
            raise empty(self.name)


@dataclass(frozen=True, slots=True)
class JsonArray:
    """One array of objects, read in blocks. Messages name a record by its position in the array, from 1."""

    name: str
    uniform: ClassVar[bool] = False

    def columns(self, text: TextIO) -> list[str] | None:
        """Return the keys of the first 100 records."""
        return columns_of(self.records(text, ignore))

    def records(self, text: TextIO, report: Report) -> Iterator[Record]:
        """Yield one record per item. A syntax error of the array itself ends the reading, even with on_bad = "skip"."""
        for number, item in enumerate(_items(text, self.name), 1):
            found = _parse(item, text.encoding, None)
            if isinstance(found, LineFault):
                report(BadLine(f"{self.name}, item {number}", number, found, item))
            else:
                yield Record(found, f"{self.name}, item {number}")


def _parse(raw: str, encoding: str, check: Check | None) -> Object | LineFault:
    if fault := find_fault(raw, encoding):
        return fault
    try:
        value = json_values.loads(raw)
    except json.JSONDecodeError as error:
        return LineFault(
            f"not valid JSON: {error.msg} at character {error.pos + 1}", "correct the record, or remove it"
        )
    except UnicodeEncodeError:  # raised by json_values.loads for an escaped lone surrogate
        return LONE_SURROGATE
    except ValueError as error:
        return LineFault(f"not valid JSON: {error}", "correct it, or remove it")
    if not isinstance(value, dict):
        return LineFault(f"{_kind(value)}, not an object", 'a record is an object, such as {"id": 1, "text": "..."}')
    if "\\u0000" in raw and _ESCAPED_NUL.search(raw):
        return NUL
    return (check(value) if check else None) or value


def _kind(value: Any) -> str:
    """Return the name of a type in JSON."""
    names = {str: "a string", bool: "true or false", list: "an array", type(None): "null"}
    return names.get(type(value), "a number")


def _items(text: TextIO, name: str) -> Iterator[str]:
    """Yield the items of the array in a text, each as it was written."""
    window = _Window(text, name)
    if not window.next():
        raise empty(name)
    window.skip("[", 'a .json file must be one array, "[{...}, {...}]"; for one object per line use .jsonl')
    if window.next() == "]":
        window.skip("]", "")
    else:
        yield window.item()
        while window.next() == ",":
            window.skip(",", "")
            yield window.item()
        window.skip("]", "put a comma between two items, and ] at the end")
    if window.next():
        raise window.error("text after the end of the array", "for one object per line use .jsonl")


class _Window:
    """A window on a text: it grows at the right end, and drops what is read at the left, so that memory stays flat."""

    def __init__(self, text: TextIO, name: str) -> None:
        self._text = text
        self._name = name
        self._part = ""
        self._position = 0
        self._line = 1  # of the first character of the part

    def next(self) -> str:
        """Move to the next character that is not white space and return it; empty at the end of the text."""
        while True:
            while self._part[self._position : self._position + 1].isspace():
                self._position += 1
            if self._position < len(self._part) or not self._grow(_BLOCK):
                return self._part[self._position : self._position + 1]

    def skip(self, character: str, remedy: str) -> None:
        """Skip the next character, which must be this one."""
        if (found := self.next()) != character:
            raise self.error(
                f"found {found!r} instead of {character!r}" if found else "the file ends too early", remedy
            )
        self._position += 1

    def item(self) -> str:
        """Skip the next value and return its text. For a long value the blocks double, to keep the time linear."""
        self.next()
        size = _BLOCK
        while True:
            try:
                _, end = _SCANNER.raw_decode(self._part, self._position)
                if end < len(self._part) or not self._grow(size):  # 12 at the end of the window may be the start of 123
                    break
            except json.JSONDecodeError as error:
                if not (_may_be_cut(error, len(self._part)) and self._grow(size)):
                    self._position = error.pos
                    raise self.error(f"not valid JSON: {error.msg}", "correct it there") from None
            except RecursionError:
                raise self.error("not valid JSON: nested too deeply", "use fewer levels") from None
            size *= 2
        item, self._position = self._part[self._position : end], end
        return item

    def error(self, what: str, remedy: str) -> InputError:
        """Return an error with the line at which the window is."""
        line = self._line + self._part.count("\n", 0, self._position)
        return InputError(f"{self._name}:{line}", what, remedy=remedy)

    def _grow(self, size: int) -> bool:
        more = self._text.read(size)
        self._line += self._part.count("\n", 0, self._position)
        self._part = self._part[self._position :] + more
        self._position = 0
        return bool(more)


def _may_be_cut(error: json.JSONDecodeError, length: int) -> bool:
    return error.msg.startswith("Unterminated string") or error.pos > length - _LONGEST_TOKEN


# Only finds where a value ends; json_values parses it afterwards. As text, numbers cost nothing here.
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
# \u0000 after an even number of backslashes; after an odd number it is a backslash and the text u0000
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

"""JSON: one object a line, or one array of objects. Numbers keep the text they were written with."""

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
_LONGEST_TOKEN = 16  # characters of a number, literal or escape that the end of a block may have cut

Object = dict[str, Any]
Check = Callable[[Object], LineFault | None]
"""Finds what else is wrong with a record."""


@dataclass(frozen=True, slots=True)
class JsonLines:
    """One object a line; blank lines are nothing."""

    name: str
    check: Check | None = None
    uniform: ClassVar[bool] = False

    def columns(self, text: TextIO) -> list[str] | None:
        """The keys of the first 100 records."""
        return columns_of(self.records(text, ignore))

    def records(self, text: TextIO, report: Report) -> Iterator[Record]:
        """One record a line."""
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
    """One array of objects, read piece by piece. A record is known by its place in the array, from 1."""

    name: str
    uniform: ClassVar[bool] = False

    def columns(self, text: TextIO) -> list[str] | None:
        """The keys of the first 100 records."""
        return columns_of(self.records(text, ignore))

    def records(self, text: TextIO, report: Report) -> Iterator[Record]:
        """One record an item. A fault in the array's own punctuation ends the reading whatever the policy."""
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
        return LineFault(f"not JSON: {error.msg} at character {error.pos + 1}", "mend it, or take it out")
    except UnicodeEncodeError:
        return LONE_SURROGATE
    except ValueError as error:
        return LineFault(f"not JSON: {error}", "mend it, or take it out")
    if not isinstance(value, dict):
        return LineFault(f"{_kind(value)}, not an object", 'a record is an object such as {"id": 1, "text": "..."}')
    if "\\u0000" in raw and _ESCAPED_NUL.search(raw):
        return NUL
    return (check(value) if check else None) or value


def _kind(value: Any) -> str:
    """What JSON calls it."""
    names = {str: "a string", bool: "true or false", list: "an array", type(None): "null"}
    return names.get(type(value), "a number")


def _items(text: TextIO, name: str) -> Iterator[str]:
    """The items of the one array that a text holds, each as it was written."""
    window = _Window(text, name)
    if not window.next():
        raise empty(name)
    window.skip("[", 'a .json file holds one array, "[{...}, {...}]"; one object a line is .jsonl')
    if window.next() == "]":
        window.skip("]", "")
    else:
        yield window.item()
        while window.next() == ",":
            window.skip(",", "")
            yield window.item()
        window.skip("]", "an array is closed by ], and there is a comma between two items")
    if window.next():
        raise window.error("text after the end of the array", "one object a line is .jsonl")


class _Window:
    """A part of a text that grows on the right and is cut on the left."""

    def __init__(self, text: TextIO, name: str) -> None:
        self._text = text
        self._name = name
        self._part = ""
        self._at = 0
        self._line = 1  # of the first character of the part

    def next(self) -> str:
        """The next character that is no white space, where the window then stands; empty at the end."""
        while True:
            while self._part[self._at : self._at + 1].isspace():
                self._at += 1
            if self._at < len(self._part) or not self._grow(_BLOCK):
                return self._part[self._at : self._at + 1]

    def skip(self, character: str, remedy: str) -> None:
        """Step over the next character, which must be that one."""
        if (found := self.next()) != character:
            raise self.error(f"{found!r} where {character!r} should be" if found else "the file ends early", remedy)
        self._at += 1

    def item(self) -> str:
        """Step over the next value; returns its text. Of a long one, twice as much is read each time."""
        self.next()
        size = _BLOCK
        while True:
            try:
                _, end = _scan(self._part, self._at)
                if end < len(self._part) or not self._grow(size):  # a cut number looks whole
                    break
            except json.JSONDecodeError as error:
                if not (_may_be_cut(error, len(self._part)) and self._grow(size)):
                    self._at = error.pos
                    raise self.error(f"not JSON: {error.msg}", "mend it there") from None
            except RecursionError:
                raise self.error("not JSON: nested too deeply", "make it flatter") from None
            size *= 2
        item, self._at = self._part[self._at : end], end
        return item

    def error(self, what: str, remedy: str) -> InputError:
        """What to raise about the place where the window stands."""
        line = self._line + self._part.count("\n", 0, self._at)
        return InputError(f"{self._name}:{line}", what, remedy=remedy)

    def _grow(self, size: int) -> bool:
        more = self._text.read(size)
        self._line += self._part.count("\n", 0, self._at)
        self._part = self._part[self._at :] + more
        self._at = 0
        return bool(more)


def _may_be_cut(error: json.JSONDecodeError, length: int) -> bool:
    return error.msg.startswith("Unterminated string") or error.pos > length - _LONGEST_TOKEN


def _scan(text: str, at: int) -> tuple[Any, int]:
    """Where a value ends; what it is, is found later, with its numbers as written."""
    return _SCANNER.raw_decode(text, at)


_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

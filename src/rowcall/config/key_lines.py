"""Finds the line of each key of a TOML file.

tomllib does not return line numbers. This scanner walks through a text that tomllib has accepted and notes the line of
every key, table and list item under its path: ``("request", "messages", 0, "content")``. It relies on the text being
valid TOML (https://toml.io/en/v1.0.0) and does not parse values.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left

KeyPath = tuple[str | int, ...]
"""The path of a value: names of tables and keys, positions in lists."""

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY = re.compile(rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*")
_GAP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_MULTILINE = re.compile(r'''"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}''', re.DOTALL)
_STRING = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*\'""")
_PLAIN = re.compile(r"[^,\]}#\n]+")


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line, from 1, of every key, table and list item of ``text``.

    Args:
        text: a TOML document that tomllib accepts.
    """
    return _Scanner(text).scan()


def dotted(path: KeyPath) -> str:
    """Return a path as people write it: ``body.messages[0].content``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._breaks = [found.start() for found in re.finditer("\n", text)]
        self._lines: dict[KeyPath, int] = {}
        self._lengths: dict[KeyPath, int] = {}  # of arrays of tables, so far

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._skip_gap():
            if self._next() == "[":
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _next(self) -> str:
        return self._text[self._position : self._position + 1]

    def _skip_gap(self) -> bool:
        """Skip white space and comments; return False at the end of the text."""
        self._take(_GAP)
        return self._position < len(self._text)

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._position)
        if found is None:
            raise ValueError(f"not valid TOML at character {self._position}")
        self._position = found.end()
        return found.group()

    def _skip(self, letters: str) -> None:
        self._skip_gap()
        self._position += len(letters)

    def _line(self) -> int:
        return bisect_left(self._breaks, self._position) + 1

    def _key(self) -> KeyPath:
        return _key_parts(self._take(_KEY))

    def _header(self) -> KeyPath:
        brackets = "[[" if self._text.startswith("[[", self._position) else "["
        line = self._line()
        self._skip(brackets)
        self._skip_gap()
        *outer, last = self._key()
        self._skip(brackets)
        path: KeyPath = ()
        for part in outer:
            path = self._newest((*path, part))
            self._lines.setdefault(path, line)
        path = (*path, last)
        return self._item(path, line) if brackets == "[[" else self._note(path, line)

    def _newest(self, path: KeyPath) -> KeyPath:
        """Return the table that a part of a header refers to: in an array of tables, the last one."""
        return (*path, self._lengths[path] - 1) if path in self._lengths else path

    def _item(self, path: KeyPath, line: int) -> KeyPath:
        number = self._lengths.get(path, 0)
        self._lengths[path] = number + 1
        self._lines.setdefault(path, line)
        return self._note((*path, number), line)

    def _note(self, path: KeyPath, line: int) -> KeyPath:
        self._lines[path] = line
        return path

    def _pair(self, table: KeyPath) -> None:
        line = self._line()
        path = table
        for part in self._key():
            path = (*path, part)
            self._lines.setdefault(path, line)
        self._skip("=")
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._skip_gap()
        if self._next() == "[":
            self._array(path)
        elif self._next() == "{":
            self._inline_table(path)
        else:
            self._scalar()

    def _scalar(self) -> None:
        if self._text.startswith(('"""', "'''"), self._position):
            self._take(_MULTILINE)
        else:
            self._take(_STRING if self._next() in "\"'" else _PLAIN)

    def _array(self, path: KeyPath) -> None:
        self._skip("[")
        number = 0
        while not self._closed("]"):
            self._value(self._note((*path, number), self._line()))
            number += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._skip("{")
        while not self._closed("}"):
            self._pair(path)

    def _closed(self, bracket: str) -> bool:
        """Skip the comma between two items, or the bracket after the last one; return whether it was the bracket."""
        self._skip_gap()
        if self._next() == ",":
            self._skip(",")
            self._skip_gap()
        if self._next() != bracket:
            return False
        self._skip(bracket)
        return True


def _key_parts(key: str) -> KeyPath:
    """Return the names in a dotted key. tomllib parses the key, so that quotes and escapes are right."""
    parts: KeyPath = ()
    node = tomllib.loads(f"{key} = 0")
    while isinstance(node, dict):
        [(part, node)] = node.items()
        parts = (*parts, part)
    return parts

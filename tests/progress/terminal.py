"""A terminal that understands what the display sends it, to see what a person sees."""

from __future__ import annotations

import io
import re

_STEP = re.compile(r"\x1b\[(\d*)([A-Za-z])|[\s\S]")


class Terminal(io.StringIO):
    """Keeps what is written; ``rows`` is the screen, its lines wrapped at ``columns``."""

    encoding = "utf-8"

    def __init__(self, columns=80):
        super().__init__()
        self.columns = columns

    def isatty(self):
        return True

    @property
    def rows(self):
        return screen_of(self.getvalue(), self.columns)


class _Screen:
    def __init__(self, columns):
        self.rows, self.row, self.column, self.columns = [""], 0, 0, columns

    def escape(self, number, letter):
        if letter == "A":
            self.row = max(0, self.row - number)
        elif letter == "K":
            self.rows[self.row] = ""
        elif letter == "J":
            self.rows = [*self.rows[: self.row], self.rows[self.row][: self.column]]
        else:
            assert letter == "m", letter

    def write(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.down()
        else:
            if self.column == self.columns:
                self.down()
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[: self.column] + character + row[self.column + 1 :]
            self.column += 1

    def down(self):
        self.row, self.column = self.row + 1, 0
        self.rows += [""] * (self.row == len(self.rows))


def screen_of(text, columns):
    screen = _Screen(columns)
    for found in _STEP.finditer(text):
        if found[2]:
            screen.escape(int(found[1] or 1), found[2])
        else:
            screen.write(found[0])
    return screen.rows

"""A block of lines at the bottom of a terminal, drawn over and over."""

from __future__ import annotations

import os
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console, RenderableType

_WIDTH = 80
"""Columns of what does not say."""


class Screen:
    """Draws on a terminal, from the line that the cursor is on.

    The cursor stays at the begin of the last line, so that a ``^C`` that the terminal writes there wraps nothing.
    Nothing is left switched on in the terminal between two draws, so that a kill leaves it as it was.

    Args:
        stream: a terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._shown: list[int] = []

    @property
    def can_redraw(self) -> bool:
        """It knows how to move its cursor."""
        return self._stream.isatty() and not self._console.is_dumb_terminal  # FORCE_COLOR makes no terminal

    @property
    def width(self) -> int:
        """Columns now: terminals are resized."""
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _WIDTH
        except (OSError, ValueError):  # no terminal of the system, or one that is closed
            return _WIDTH

    def draw(self, block: RenderableType) -> str:
        """What draws a block over the one before."""
        width = self.width
        self._console.width = width
        with self._console.capture() as captured:
            self._console.print(block, end="")
        lines = captured.get().rstrip("\n").split("\n")
        over = self._to_top(width) + "\n".join(f"\x1b[2K{line}" for line in lines) + "\x1b[J\r"
        self._shown = [cell_len(_plain(line)) for line in lines]
        return over

    def wipe(self) -> str:
        """What takes the block away."""
        wiped = f"{self._to_top(self.width)}\x1b[J" if self._shown else ""
        self._shown = []
        return wiped

    def _to_top(self, width: int) -> str:
        """From the begin of its last line to that of the block; a terminal made narrower has wrapped the lines."""
        rows = sum(max(1, -(-length // width)) for length in self._shown[:-1])
        return "\r" + (f"\x1b[{rows}A" if rows else "")


def _plain(line: str) -> str:
    """A line without its styles: the only escapes in it are ours."""
    return "".join(part.partition("m")[2] if number else part for number, part in enumerate(line.split("\x1b[")))

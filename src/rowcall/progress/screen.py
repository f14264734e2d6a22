"""Redraws a block of lines at the bottom of a terminal."""

from __future__ import annotations

import os
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console, RenderableType

_WIDTH = 80
"""Columns, if the terminal does not report its width."""


class Screen:
    """Draws on a terminal, from the cursor's line on.

    The cursor stays at the start of the block's last line, so that a ``^C`` echoed there does not wrap the line. No
    terminal mode stays changed between two draws, so that a killed process leaves the terminal as it was.

    Args:
        stream: a terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._shown: list[int] = []

    @property
    def can_redraw(self) -> bool:
        """Whether the stream is a terminal that can move its cursor."""
        return self._stream.isatty() and not self._console.is_dumb_terminal  # rich alone would trust FORCE_COLOR

    @property
    def width(self) -> int:
        """The current number of columns; a terminal can be resized."""
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _WIDTH
        except (OSError, ValueError):  # a stream without a file descriptor, or a closed terminal
            return _WIDTH

    def draw(self, block: RenderableType) -> str:
        """Return the text that draws a block over the previous one."""
        width = self.width
        self._console.width = width
        with self._console.capture() as captured:
            self._console.print(block, end="")
        lines = captured.get().rstrip("\n").split("\n")
        over = self._to_top(width) + "\n".join(f"\x1b[2K{line}" for line in lines) + "\x1b[J\r"
        self._shown = [cell_len(_plain(line)) for line in lines]
        return over

    def wipe(self) -> str:
        """Return the text that removes the block."""
        wiped = f"{self._to_top(self.width)}\x1b[J" if self._shown else ""
        self._shown = []
        return wiped

    def _to_top(self, width: int) -> str:
        """Return the text that moves the cursor to the block's first line; its lines may have wrapped meanwhile."""
        rows = sum(max(1, -(-length // width)) for length in self._shown[:-1])
        return "\r" + (f"\x1b[{rows}A" if rows else "")


def _plain(line: str) -> str:
    """Remove the styles from a line. It contains no other escape sequences."""
    return "".join(part.partition("m")[2] if number else part for number, part in enumerate(line.split("\x1b[")))

"""Draws the README's picture from a real run: ``python tests/docs/picture.py`` writes ``examples/run.svg``.

The demo runs in a terminal of its own, is stopped by Ctrl+C, and is started again. The picture shows that terminal
after the stop, during the second run and at its end. It takes half a minute.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "examples" / "run.svg"
COMMAND = ["rowcall", "run", "examples/reviews/config.toml"]
COLUMNS, LINES = 90, 24
STOP_AT, LOOK_AT = 1_000, 2_400  # records that are done

THEME = TerminalTheme(
    background=(13, 17, 23),
    foreground=(214, 221, 229),
    normal=[
        (72, 79, 88),
        (255, 123, 114),
        (86, 211, 100),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (177, 186, 196),
    ],
)
DIM, BOLD, END = "\x1b[38;5;245m", "\x1b[1m", "\x1b[0m"

# rich's own template loads a font from the network; this one takes what the reader's machine has
SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<!-- python tests/docs/picture.py -->
<style>
.{unique_id}-matrix {{
    font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
    font-size: {char_height}px;
    line-height: {line_height}px;
}}
.{unique_id}-title {{ font: bold 18px sans-serif }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


class Screen:
    """The lines of a terminal, with their colours. It knows what the display of a run sends."""

    _STEP = re.compile(r"\x1b\[(\d*)([AKJ])|\r|\n|((?:\x1b\[[\d;]*m|[^\r\n\x1b])+)")

    def __init__(self) -> None:
        """Start with one empty line."""
        self.lines = [""]
        self._row = 0
        self._at_start = True

    def feed(self, text: str) -> None:
        """Take what a program has written."""
        for step in self._STEP.finditer(text):
            if step[3]:
                self.lines[self._row] = step[3] if self._at_start else self.lines[self._row] + step[3]
                self._at_start = False
            elif step[2]:
                self._escape(int(step[1] or 1), step[2])
            elif step[0] == "\r":
                self._at_start = True
            else:
                self._row += 1
                self._at_start = True
                self.lines += [""] * (self._row == len(self.lines))

    def _escape(self, number: int, letter: str) -> None:
        if letter == "A":
            self._row -= number
        elif letter == "K":
            self.lines[self._row] = ""
        else:
            del self.lines[self._row + (not self._at_start) :]
            self.lines += [""] * (self._row == len(self.lines))

    @property
    def done(self) -> int:
        """How many records the display says are done."""
        found = re.search(r"(?:\A|[ m])done ([\d,]+)", "\n".join(self.lines))
        return int(found[1].replace(",", "")) if found else 0


def run(folder: Path, look_at: int, *, stop: bool) -> tuple[list[str], list[str]]:
    """Run the demo in a terminal. Returns its lines when ``look_at`` records are done, and its lines at the end."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.execv(Path(sys.executable).with_name("rowcall"), COMMAND)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    screen, seen, rest = Screen(), [], b""
    while block := read(terminal):
        text, rest = whole(rest + block)
        screen.feed(text)
        if not seen and screen.done >= look_at:
            seen = list(screen.lines)
            if stop:
                os.write(terminal, b"\x03")
    os.close(terminal)
    os.waitpid(pid, 0)
    return seen, screen.lines


def read(terminal: int) -> bytes:
    """What has been written; nothing once the program has ended, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def whole(block: bytes) -> tuple[str, bytes]:
    """Text up to the last redraw that is complete, and the bytes after it."""
    end = block.rfind(b"\r") + 1 or len(block)
    return block[:end].decode(), block[end:]


def draw(lines: list[str]) -> str:
    """The lines as an SVG of a terminal."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), color_system="truecolor")  # noqa: PTH123, SIM115
    for line in lines:
        text = Text.from_ansi(line)
        for start in (0, *(span.end for span in text.spans)):  # some viewers drop the spaces that begin a part
            text.stylize("dim", start, len(text.plain) - len(text.plain[start:].lstrip()))
        console.print(text, no_wrap=True, crop=True)
    return console.export_svg(title="rowcall", theme=THEME, code_format=SVG, unique_id="run")


def main() -> None:
    """Run the demo twice and write the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "examples" / "reviews", folder / "examples" / "reviews")
        _, stopped = run(folder, STOP_AT, stop=True)
        working, ended = run(folder, LOOK_AT, stop=False)
    command = f"{DIM}${END} {BOLD}{' '.join(COMMAND)}{END}"
    interrupt = next(number for number, line in enumerate(stopped) if line.startswith("Stopping"))
    end = next(number for number, line in enumerate(ended) if "finished" in line)
    picture = [
        command,
        *stopped[:interrupt],
        f"{DIM}^C{END}",
        *filter(None, stopped[interrupt:]),
        "",
        command,
        *working,
    ]
    PICTURE.write_text(draw([*picture, f"{DIM}... and at its end:{END}", *filter(None, ended[end:])]))
    print(f"written: {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

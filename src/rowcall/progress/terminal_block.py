"""Renders a view for a terminal: a block of lines, or one line if the terminal is narrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rowcall.model.outcome import Usage
from rowcall.model.prices import usd
from rowcall.progress.number_text import clean, latency_text, rate_text, short_number, short_time
from rowcall.progress.view import View, share_text

NARROW = 70
"""Below this number of columns the block is one line."""
_GAP = "   "
_CUT = "yellow"
"""The style of text that may be cut; numbers are never cut."""
Part = tuple[str, str]
"""A text and its style."""


def block(view: View, width: int) -> RenderableType:
    """Render a view. Text from the API or the data is never read as markup."""
    return _line(_narrow(view), width, "  ") if width < NARROW else Group(*_lines(view, width))


def _lines(view: View, width: int) -> Iterator[RenderableType]:
    yield _bar(view, width)
    yield _line(_counts(view), width)
    yield _line(_figures(view), width)
    if view.held_up:
        yield _line([(view.held_up, _CUT)], width)
    if view.slow:
        ages = ", ".join(f"{clean(key)} for {short_time(age)}" for key, age in view.slow)
        yield _line([(f"slow: {ages}", _CUT)], width)


def _bar(view: View, width: int) -> RenderableType:
    text = share_text(view) + (f"{_GAP}{short_time(view.left)} left" if view.left is not None else "")
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=max(10, min(50, width - len(text) - 4)))
    grid.add_column(no_wrap=True)
    grid.add_row(
        ProgressBar(total=max(1, view.total), completed=view.ended, complete_style="cyan", finished_style="cyan"),
        Text(text),
    )
    indented = Table.grid(padding=0)
    indented.add_row(" ", grid)
    return indented


def _counts(view: View) -> Iterator[Part]:
    yield f"done {view.done:,}", "green"
    yield f"failed {view.failed:,}", "red" if view.failed else ""
    yield f"in flight {view.in_flight}/{view.slots}", ""
    yield f"waiting {view.waiting:,}" + (" and more" if view.reading else ""), ""
    if view.retrying:
        yield f"retrying {view.retrying:,}", ""


def _figures(view: View) -> Iterator[Part]:
    yield rate_text(view.speed) if view.speed > 0 else "-/s", "bold"
    if view.usage.cost is not None:
        about = "" if view.expected is None else f" of about {usd(view.expected)}"
        yield f"{usd(view.usage.cost)}{about}", ""
    if view.p50 is not None and view.p95 is not None:
        yield f"p50 {latency_text(view.p50)}  p95 {latency_text(view.p95)}", ""
    if view.usage.input or view.usage.output:
        yield tokens_text(view.usage), ""


def tokens_text(usage: Usage) -> str:
    """Format tokens: ``412k tokens in (61% cached), 88k out``."""
    cached = f" ({100 * usage.cached // usage.input}% cached)" if usage.cached and usage.input else ""
    return f"{short_number(usage.input)} tokens in{cached}, {short_number(usage.output)} out"


def _narrow(view: View) -> Iterator[Part]:
    yield share_text(view), "bold"
    if view.failed:
        yield f"failed {view.failed:,}", "red"
    if view.held_up:
        yield view.held_up, _CUT
        return
    if view.left is not None:
        yield f"{short_time(view.left)} left", ""
    if view.speed > 0:
        yield rate_text(view.speed), ""


def _line(parts: Iterable[Part], width: int, gap: str = _GAP) -> Text:
    """Join as many parts as fit into the width. Numbers are left out rather than cut; other text may be cut."""
    line = Text(" ", no_wrap=True, overflow="crop")
    for text, style in parts:
        part = Text((gap if len(line) > 1 else "") + text, style=style)
        if style != _CUT and len(line) > 1 and line.cell_len + part.cell_len >= width:
            break
        line.append_text(part)
    line.truncate(width - 1)
    return line

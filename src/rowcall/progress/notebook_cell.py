"""Shows a run at work in a notebook, in one output of the cell that is updated."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from html import escape
from importlib import import_module
from typing import Any, Protocol

from rowcall.model.prices import usd
from rowcall.progress.display import ProgressDisplay
from rowcall.progress.number_text import latency_text, rate_text, short_time
from rowcall.progress.terminal_block import tokens_text
from rowcall.progress.view import View, plain_line, share_text

UPDATED = 0.5
"""Seconds between two updates."""
_MESSAGES = 5
"""The latest messages that are shown below the bar."""


class CellOutput(Protocol):
    """An output of a notebook's cell, as returned by ``IPython.display.display(..., display_id=True)``."""

    def update(self, obj: dict[str, str], *, raw: bool) -> None:
        """Replace the output by representations for MIME types."""


def cell_output() -> CellOutput | None:
    """Return a new output of the running cell; None outside a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if type(shell).__name__ != "ZMQInteractiveShell":
        return None
    handle: CellOutput = import_module("IPython.display").display(_bundle("rowcall", ""), raw=True, display_id=True)
    return handle


class CellProgress(ProgressDisplay):
    """Shows a run at work in a cell, with its messages below the bar."""

    def __init__(self, handle: CellOutput) -> None:
        super().__init__(io.StringIO(), live=False, plain_every=UPDATED)
        self._handle = handle
        self._messages: list[str] = []
        self._drawn = ""

    def say(self, text: str) -> None:
        """Add a message."""
        self._messages = [*self._messages, text][-_MESSAGES:]
        self._update("\n".join(self._messages), self._drawn + _lines(self._messages))

    async def close(self) -> None:
        """Remove the bar; the messages stay."""
        await super().close()
        self._drawn = ""

    def _draw(self, view: View) -> None:
        self._drawn = html(view)
        self._update(plain_line(view), self._drawn + _lines(self._messages))

    def _update(self, text: str, markup: str) -> None:
        self._handle.update(_bundle(text, markup), raw=True)


def html(view: View) -> str:
    """Render a view as HTML. Text from the API or the data is escaped."""
    left = "" if view.left is None else f", {short_time(view.left)} left"
    bar = f'<progress max="{max(1, view.total)}" value="{view.ended}" style="width: 24em"></progress>'
    return f"<div>{bar} {escape(share_text(view) + left)}</div>" + _lines(_facts(view))


def _facts(view: View) -> Iterator[str]:
    counts = f"done {view.done:,}, failed {view.failed:,}, in flight {view.in_flight}/{view.slots}"
    yield counts + (f", retrying {view.retrying:,}" if view.retrying else "")
    figures = [rate_text(view.speed)] if view.speed > 0 else []
    if view.p50 is not None and view.p95 is not None:
        figures.append(f"p50 {latency_text(view.p50)}, p95 {latency_text(view.p95)}")
    if view.usage.input or view.usage.output:
        figures.append(tokens_text(view.usage))
    if view.usage.cost is not None:
        figures.append(usd(view.usage.cost))
    yield ", ".join(figures)
    yield view.held_up


def _lines(lines: Iterator[str] | list[str]) -> str:
    return "".join(f"<div>{escape(line)}</div>" for line in lines if line)


def _bundle(text: str, markup: str) -> dict[str, Any]:
    return {"text/plain": text, "text/html": f'<div style="font-family: monospace">{markup}</div>'}

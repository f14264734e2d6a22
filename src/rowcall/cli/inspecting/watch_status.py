"""``rowcall status --watch``: follows a run from another terminal until it ends."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from time import monotonic

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from rowcall.cli.shared.job_address import JobAddress
from rowcall.cli.shared.job_lookup import read_job
from rowcall.progress.display import PLAIN
from rowcall.progress.screen import Screen
from rowcall.run.summary import Summary, summarise
from rowcall.store.base import Reader

INTERVAL = 0.5
"""Seconds between two readings of the store."""
PAUSE_FACTOR = 4
"""Reading a large store takes long: the pause after a reading is at least this many times as long as it took."""


async def watch_status(address: JobAddress, text: Callable[[Summary], str], *, as_json: bool) -> None:
    """Show how a batch job stands until its run ends; once if no run is live.

    On a terminal the text is redrawn; elsewhere it is written again every 10 s.

    Args:
        address: where the job is.
        text: turns a summary into text for people.
        as_json: print a line of JSON for each change instead.
    """
    async with read_job(address) as (reader, kind):
        if as_json:
            await _print_changes(reader, kind)
        elif Screen(sys.stdout).can_redraw:
            await _redraw(reader, kind, text)
        else:
            await _write(reader, kind, text)


async def _print_changes(reader: Reader, kind: str) -> None:
    printed: Summary | None = None
    async for summary in _summaries(reader, kind):
        if summary.model_copy(update={"elapsed_s": None}) != printed:
            printed = summary.model_copy(update={"elapsed_s": None})
            click.echo(json.dumps(summary.model_dump(mode="json"), ensure_ascii=False))


async def _redraw(reader: Reader, kind: str, text: Callable[[Summary], str]) -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    with Live(console=console, auto_refresh=False) as live:
        async for summary in _summaries(reader, kind):
            live.update(Text(text(summary)), refresh=True)


async def _write(reader: Reader, kind: str, text: Callable[[Summary], str]) -> None:
    due, written = 0.0, ""
    async for summary in _summaries(reader, kind):
        now, block = monotonic(), text(summary)
        if block != written and (now >= due or not _is_live(summary)):
            click.echo(block if not written else f"\n{block}")
            due, written = now + PLAIN, block


def _is_live(summary: Summary) -> bool:
    return summary.state in ("running", "paused")


async def _summaries(reader: Reader, kind: str) -> AsyncIterator[Summary]:
    """Yield how the job stands, again and again; the last one is from after its run has ended."""
    while True:
        began = monotonic()
        summary = await summarise(reader, kind)
        yield summary
        if not _is_live(summary):
            return
        await asyncio.sleep(max(INTERVAL, PAUSE_FACTOR * (monotonic() - began)))

"""``rowcall status --watch``: a run from another terminal, until it ends."""

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

from rowcall.cli.shared.common import only_kind
from rowcall.model.store_location import StoreLocation
from rowcall.progress.display import PLAIN
from rowcall.progress.screen import Screen
from rowcall.run.summary import Summary, summarise
from rowcall.store.base import Reader
from rowcall.store.open_at import open_reader

EVERY = 0.5
"""Seconds between two looks."""
RESTS = 4
"""A look at a large store takes long: no other one begins for so many times as long."""


async def follow(
    place: StoreLocation, named: str | None, name: str | None, text: Callable[[Summary], str], *, as_json: bool
) -> None:
    """Show how a kind stands until its run ends; once where no run is alive.

    It is redrawn on a terminal, and written again every 10 s elsewhere.

    Args:
        place: the store.
        named: the kind that the config names.
        name: the kind that a person names, which goes before it.
        text: a summary as people read it.
        as_json: a line of JSON for each change instead.
    """
    async with await open_reader(place) as reader:
        kind = only_kind(await reader.kinds(), name or named, place)
        if as_json:
            await _print_changes(reader, kind)
        elif Screen(sys.stdout).can_redraw:
            await _draw(reader, kind, text)
        else:
            await _write(reader, kind, text)


async def _print_changes(reader: Reader, kind: str) -> None:
    said: Summary | None = None
    async for summary in _looks(reader, kind):
        if summary.model_copy(update={"elapsed_s": None}) != said:
            said = summary.model_copy(update={"elapsed_s": None})
            click.echo(json.dumps(summary.model_dump(mode="json"), ensure_ascii=False))


async def _draw(reader: Reader, kind: str, text: Callable[[Summary], str]) -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    with Live(console=console, auto_refresh=False) as live:
        async for summary in _looks(reader, kind):
            live.update(Text(text(summary)), refresh=True)


async def _write(reader: Reader, kind: str, text: Callable[[Summary], str]) -> None:
    due, said = 0.0, ""
    async for summary in _looks(reader, kind):
        now, block = monotonic(), text(summary)
        if block != said and (now >= due or not _lasts(summary)):
            click.echo(block if not said else f"\n{block}")
            due, said = now + PLAIN, block


def _lasts(summary: Summary) -> bool:
    return summary.state in ("running", "paused")


async def _looks(reader: Reader, kind: str) -> AsyncIterator[Summary]:
    """How the kind stands now, again and again, and at last how it stood when its run had ended."""
    while True:
        began = monotonic()
        summary = await summarise(reader, kind)
        yield summary
        if not _lasts(summary):
            return
        await asyncio.sleep(max(EVERY, RESTS * (monotonic() - began)))

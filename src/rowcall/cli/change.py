"""Verbs that change jobs: retry."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from rowcall.cli.common import only_kind, store_options, store_path
from rowcall.errors import RowcallError
from rowcall.job import Status
from rowcall.progress import clean
from rowcall.store.base import Selected, Selection
from rowcall.store.sqlite import SQLiteReader, SQLiteStore


@click.command(epilog="Example: rowcall retry http_500 --dry-run; rowcall retry --all-failed")
@click.argument("reasons_or_keys", nargs=-1, metavar="[REASON|KEY ...]")
@click.option("--all-failed", is_flag=True, help="Every failed record.")
@click.option("--done", is_flag=True, help="Done records too: they are called, and paid, again.")
@click.option("--batch", metavar="B", help="Only records of that batch.")
@click.option("--dry-run", is_flag=True, help="Show the selection, change nothing.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@store_options
def retry(
    reasons_or_keys: tuple[str, ...],
    all_failed: bool,
    done: bool,
    batch: str | None,
    dry_run: bool,
    yes: bool,
    config: Path,
    store: Path | None,
    name: str | None,
) -> None:
    """Set records back to pending, with all their attempts; the next run calls them."""
    if not (reasons_or_keys or all_failed or batch):
        raise RowcallError("nothing selected", remedy="name reasons or keys, or --all-failed, or --batch B")
    statuses = (Status.FAILED, Status.CANCELLED) + ((Status.DONE,) if done else ())
    selection = Selection(reasons_or_keys, (Status.FAILED,) if all_failed and not done else statuses, batch)
    path, kind = store_path(config, store)
    asyncio.run(_retry(path, name or kind, selection, ask=not yes and sys.stdin.isatty(), dry_run=dry_run))


async def _retry(path: Path, wanted: str | None, selection: Selection, *, ask: bool, dry_run: bool) -> None:
    async with await SQLiteReader.open(path) as reader:
        kind = only_kind(await reader.kinds(), wanted, path)
        selected = await reader.select(kind, selection)
    click.echo(_selected_text(selected), err=True)
    if dry_run or not selected.count or (ask and not click.confirm("Set them back?", err=True)):
        return
    async with await SQLiteStore.open(path) as store:
        number = await store.retry(kind, selection)
    click.echo(f"{number:,} records are pending again; rowcall run calls them", err=True)


def _selected_text(selected: Selected) -> str:
    parts = ", ".join(f"{number:,} {status}" for status, number in selected.by_status.items() if number)
    text = f"selected: {parts or 'nothing'}"
    if selected.sample:
        text += f" ({', '.join(map(clean, selected.sample))}{', ...' if selected.count > len(selected.sample) else ''})"
    if selected.unmatched:
        text += f"\nmatches nothing: {', '.join(map(clean, selected.unmatched))}"
    return text

"""``rowcall migrate``: copy a store to a new place, such as a PostgreSQL database."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from rowcall.cli.shared.console import print_json
from rowcall.cli.shared.flags import json_option, parse_store
from rowcall.model.errors import RowcallError
from rowcall.model.job import Status
from rowcall.model.store_location import StoreLocation
from rowcall.progress import clean
from rowcall.progress.number_text import counted
from rowcall.store.migration import MigrationProgress, StoreContents, move
from rowcall.store.open_at import open_source, open_target


@click.command(epilog="Example: rowcall migrate --from reviews.db --to postgresql://user@host/database")
@click.option(
    "--from",
    "source",
    envvar="ROWCALL_FROM",
    type=click.Path(),
    callback=parse_store,
    required=True,
    metavar="FILE|URL",
    help="The store to copy.",
)
@click.option(
    "--to",
    "target",
    envvar="ROWCALL_TO",
    type=click.Path(),
    callback=parse_store,
    required=True,
    metavar="FILE|URL",
    help="Where to copy it.",
)
@json_option
def migrate(source: StoreLocation, target: StoreLocation, as_json: bool) -> None:
    """Copy a store from a SQLite file to a PostgreSQL database, or back: all records, answers and tries.

    Nothing is called again. The old store stays as it is; the new place must not hold a store yet. If this is
    interrupted, the same command resumes it; until it has finished, no run can use the new place. Not possible while a
    run is live.
    """
    if str(source) == str(target) if source.path is None else target.is_at(source.path):
        raise RowcallError(f"{source}: --from and --to name the same store", remedy="name another place with --to")
    try:
        with _progress_bar() as show:
            moved = asyncio.run(_migrate(source, target, show))
    except KeyboardInterrupt:
        click.echo("Interrupted. Resume with the same command.", err=True)
        raise
    if as_json:
        print_json({"from": str(source), "to": str(target)} | _summary(moved))
    else:
        click.echo(f"{clean(str(target))}: {_text(moved)}; the same counts as {clean(str(source))}", err=True)
        click.echo(f"To use the new store: {_setting(target)}. {clean(str(source))} is unchanged.", err=True)


async def _migrate(
    source: StoreLocation, target: StoreLocation, show: Callable[[MigrationProgress], None]
) -> StoreContents:
    async with await open_source(source) as read, await open_target(target) as filled:
        return await move(read, filled, show)


@contextmanager
def _progress_bar() -> Iterator[Callable[[MigrationProgress], None]]:
    """Yield what shows the progress, as a bar on a terminal and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda progress: None
        return
    with click.progressbar(length=1, label="rows", file=sys.stderr) as bar:

        def show(progress: MigrationProgress) -> None:
            bar.length = progress.of
            bar.update(progress.rows - bar.pos)

        yield show


def _by_status(moved: StoreContents) -> dict[str, int]:
    counts = {status.value: 0 for status in Status}
    for (_, status), count in moved.by_status.items():
        counts[status] += count
    return {status: count for status, count in counts.items() if count}


def _summary(moved: StoreContents) -> dict[str, Any]:
    return {
        "records": moved.jobs,
        "by_status": _by_status(moved),
        "answers": moved.others["results"],
        "tries": moved.others["tries"],
        "payloads": moved.others["payloads"],
        "runs": moved.others["runs"],
    }


def _text(moved: StoreContents) -> str:
    by_status = ", ".join(f"{count:,} {status}" for status, count in _by_status(moved).items())
    answers, tries = counted(moved.others["results"], "answer"), counted(moved.others["tries"], "try", "tries")
    return f"{counted(moved.jobs, 'record')} ({by_status or 'none'}), {answers}, {tries}"


def _setting(target: StoreLocation) -> str:
    if target.is_secret:
        return f'[store] path = {{ env = "ROWCALL_STORE" }}, with the URL of {clean(str(target))} in that variable'
    return f'[store] path = "{clean(str(target))}"'

"""Moving a store to another place."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from rowcall.cli.shared.common import json_option, placed, print_json
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
    callback=placed,
    required=True,
    metavar="FILE|URL",
    help="The store.",
)
@click.option(
    "--to",
    "target",
    envvar="ROWCALL_TO",
    type=click.Path(),
    callback=placed,
    required=True,
    metavar="FILE|URL",
    help="Its new place.",
)
@json_option
def migrate(source: StoreLocation, target: StoreLocation, as_json: bool) -> None:
    """Move a store from a SQLite file to a PostgreSQL database, or back: all records, answers and tries.

    Nothing is called again. The old store is left as it is; the new place must hold none yet. Where it was broken off,
    the same command goes on; until it has ended, no run works on the new place. Refused while a run is alive.
    """
    _require_two(source, target)
    try:
        with _bar() as told:
            moved = asyncio.run(_migrate(source, target, told))
    except KeyboardInterrupt:
        click.echo("Broken off; the same command goes on.", err=True)
        raise
    if as_json:
        print_json({"from": str(source), "to": str(target)} | _summary(moved))
    else:
        click.echo(f"{clean(str(target))}: {_text(moved)}; the counts agree with {clean(str(source))}", err=True)
        click.echo(f"Go on there: {_setting(target)}. {clean(str(source))} is left as it is.", err=True)


def _require_two(source: StoreLocation, target: StoreLocation) -> None:
    same = str(source) == str(target) if source.path is None else target.is_at(source.path)
    if same:
        raise RowcallError(f"{source}: is both the store and its new place", remedy="Name another place with --to.")


async def _migrate(
    source: StoreLocation, target: StoreLocation, told: Callable[[MigrationProgress], None]
) -> StoreContents:
    async with await open_source(source) as read, await open_target(target) as filled:
        return await move(read, filled, told)


@contextmanager
def _bar() -> Iterator[Callable[[MigrationProgress], None]]:
    """What shows how far a move is, where somebody looks."""
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
        return f'[store] path = {{ env = "ROWCALL_STORE" }}, a variable with the URL of {clean(str(target))}'
    return f'[store] path = "{clean(str(target))}"'

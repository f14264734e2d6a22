"""``rowcall backup``: write a snapshot of the store."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path

import click

from rowcall.cli.shared.flags import file_options
from rowcall.cli.shared.job_address import JobAddress
from rowcall.cli.shared.job_lookup import find_store
from rowcall.model.store_location import StoreLocation
from rowcall.store.open_at import open_reader
from rowcall.system import atomic_files


@click.command(epilog="Example: rowcall backup --keep 7")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--keep",
    type=click.IntRange(1),
    metavar="N",
    help="Then delete older backups with default names, so that N are left.",
)
@file_options
def backup(file: Path | None, keep: int | None, config: Path, store: StoreLocation | None) -> None:
    """Write a snapshot of the store, also while a run is at work. An existing file is never overwritten.

    FILE is the new file, or the folder to put it in. The default is STORE-YYYYmmdd-HHMMSS.db (UTC) beside the store.
    The copy is a complete store that a run can resume from.
    """
    place, _ = find_store(JobAddress(config, store))
    named = file is not None and not file.is_dir()
    if named and keep is not None:
        raise click.UsageError("--keep works with default names only: leave FILE out, or name a folder")
    if file is not None and named:
        target = file
    else:
        beside = place.path.parent if place.path else Path()
        target = (file or beside) / f"{place.stem}-{datetime.now(UTC).strftime('%Y%m%d-%H%M%S')}.db"
    asyncio.run(_backup(place, target))
    click.echo(f"{target}: written, {target.stat().st_size:,} bytes", err=True)
    for old in _outdated(target, place.stem, keep) if keep else ():
        atomic_files.remove(old)
        click.echo(f"{old}: deleted", err=True)


async def _backup(store: StoreLocation, target: Path) -> None:
    async with await open_reader(store) as reader:
        await reader.backup(target)


def _outdated(target: Path, stem: str, keep: int) -> list[Path]:
    """Return all backups with default names but the newest; their names sort by time."""
    named = re.compile(re.escape(stem) + r"-\d{8}-\d{6}\.db")
    return sorted(file for file in target.parent.iterdir() if named.fullmatch(file.name))[:-keep]

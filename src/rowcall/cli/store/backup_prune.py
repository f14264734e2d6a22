"""Verbs that keep the store in good order: backup, prune."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path

import click

from rowcall.cli.shared.common import confirmed, file_options, only_kind, store_location, store_options
from rowcall.model.store_location import StoreLocation
from rowcall.store.open_at import open_reader, open_store
from rowcall.system import atomic_files


@click.command(epilog="Example: rowcall backup --keep 7")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--keep", type=click.IntRange(1), metavar="N", help="Then delete all but the newest N of the default name."
)
@file_options
def backup(file: Path | None, keep: int | None, config: Path, store: StoreLocation | None) -> None:
    """Write a snapshot of the store, also while a run works; an existing file is refused.

    FILE is the new file, or a folder; left out, it stands beside the store as STORE-YYYYmmdd-HHMMSS.db (UTC). In the
    copy nothing runs: it is a store to go on with.
    """
    place, _ = store_location(config, store)
    named = file is not None and not file.is_dir()
    if named and keep is not None:
        raise click.UsageError("--keep goes with the default name: leave FILE out, or name a folder")
    target = file if file is not None and named else (file or _beside(place)) / f"{place.stem}-{_now()}.db"
    asyncio.run(_backup(place, target))
    click.echo(f"{target}: {target.stat().st_size:,} bytes", err=True)
    for old in _outdated(target, place.stem, keep) if keep else ():
        atomic_files.remove(old)
        click.echo(f"{old}: deleted", err=True)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y%m%d-%H%M%S")


def _beside(place: StoreLocation) -> Path:
    """The folder of the store; for one that is no file, this one."""
    return place.path.parent if place.path else Path()


async def _backup(place: StoreLocation, target: Path) -> None:
    async with await open_reader(place) as reader:
        await reader.backup(target)


def _outdated(target: Path, stem: str, keep: int) -> list[Path]:
    """Backups by the default name, but for the newest; their names sort by time."""
    named = re.compile(re.escape(stem) + r"-\d{8}-\d{6}\.db")
    return sorted(file for file in target.parent.iterdir() if named.fullmatch(file.name))[:-keep]


@click.command(epilog="Example: rowcall prune --done-before 2026-11-01")
@click.option(
    "--done-before",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    required=True,
    metavar="DATE",
    help="Only records that were done before it: 2026-11-01, or 2026-11-01T12:00:00 (UTC).",
)
@click.option("--dry-run", is_flag=True, help="Show the selection, change nothing.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@store_options
def prune(
    done_before: datetime, dry_run: bool, yes: bool, config: Path, store: StoreLocation | None, name: str | None
) -> None:
    """Drop the stored input of done records, and make the file smaller; status and answers stay.

    A record without its stored input is read from the input again where it is needed. Refused while a run is alive.
    """
    before = done_before.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    place, named = store_location(config, store)
    asyncio.run(_prune(place, name or named, before, yes=yes, dry_run=dry_run))


async def _prune(place: StoreLocation, wanted: str | None, before: str, *, yes: bool, dry_run: bool) -> None:
    async with await open_reader(place) as reader:
        kind = only_kind(await reader.kinds(), wanted, place)
        number = await reader.prunable(kind, before)
    click.echo(f"selected: the stored input of {number:,} records done before {before}", err=True)
    if dry_run or not confirmed("Drop it?", yes=yes):
        return
    async with await open_store(place) as store:
        pruned = await store.prune(kind, before)
    click.echo(f"{place}: {pruned.payloads:,} payloads dropped, {pruned.gained:,} bytes gained", err=True)

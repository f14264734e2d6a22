"""``rowcall prune``: delete the stored input of done records."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import click

from rowcall.cli.shared.console import confirmed
from rowcall.cli.shared.flags import dry_run_option, store_options, yes_option
from rowcall.cli.shared.job_address import JobAddress
from rowcall.cli.shared.job_lookup import find_store, read_job
from rowcall.model.store_location import StoreLocation
from rowcall.progress import counted
from rowcall.store.open_at import open_store


@click.command(epilog="Example: rowcall prune --done-before 2026-11-01")
@click.option(
    "--done-before",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    required=True,
    metavar="DATE",
    help="Only records that were done before this time (UTC): 2026-11-01, or 2026-11-01T12:00:00.",
)
@dry_run_option
@yes_option
@store_options
def prune(
    done_before: datetime, dry_run: bool, yes: bool, config: Path, store: StoreLocation | None, name: str | None
) -> None:
    """Delete the stored input of done records, and make the file smaller. Their status and answers stay.

    If such a record is needed again, it is read from the input again. Not possible while a run is live.
    """
    before = done_before.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    asyncio.run(_prune(JobAddress(config, store, name), before, yes=yes, dry_run=dry_run))


async def _prune(address: JobAddress, before: str, *, yes: bool, dry_run: bool) -> None:
    async with read_job(address) as (reader, kind):
        number = await reader.prunable(kind, before)
    click.echo(f"selected: the stored input of {counted(number, 'record')} done before {before}", err=True)
    if dry_run or not confirmed("Delete it?", yes=yes):
        return
    place, _ = find_store(address)
    async with await open_store(place) as store:
        pruned = await store.prune(kind, before)
    deleted = counted(pruned.payloads, "stored input")
    click.echo(f"{place}: {deleted} deleted, {pruned.gained:,} bytes freed", err=True)

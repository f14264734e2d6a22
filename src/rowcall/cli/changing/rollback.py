"""``rowcall rollback``: withdraw the answers of a batch."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from rowcall.cli.changing.select_jobs import change_options, sample_text
from rowcall.cli.shared.console import confirmed
from rowcall.cli.shared.job_address import JobAddress
from rowcall.cli.shared.job_lookup import find_store, read_job, require_batch
from rowcall.model.store_location import StoreLocation
from rowcall.progress import counted
from rowcall.store.open_at import open_store
from rowcall.store.types import RolledBack


@click.command(epilog="Example: rowcall rollback --batch new-prompt --dry-run")
@click.option("--batch", metavar="B", required=True, help="The batch whose answers are withdrawn.")
@change_options
def rollback(batch: str, dry_run: bool, yes: bool, config: Path, store: StoreLocation | None, name: str | None) -> None:
    """Withdraw the answers of a batch.

    Records that had an answer before get it back; the others are pending again.
    """
    asyncio.run(_rollback(JobAddress(config, store, name), batch, yes=yes, dry_run=dry_run))


async def _rollback(address: JobAddress, batch: str, *, yes: bool, dry_run: bool) -> None:
    async with read_job(address) as (reader, kind):
        await require_batch(reader, kind, batch)
        selected = await reader.batch_answers(kind, batch)
    click.echo(_selected_text(selected), err=True)
    if dry_run or not selected.count or not confirmed("Withdraw these answers?", yes=yes):
        return
    async with await open_store(find_store(address)[0]) as store:
        rolled = await store.rollback(kind, batch)
    click.echo(
        f"{counted(rolled.restored, 'record')} got the previous answer back, {rolled.pending:,} pending again", err=True
    )


def _selected_text(selected: RolledBack) -> str:
    sample = sample_text(selected.sample, selected.count)
    return (
        f"selected: {counted(selected.count, 'answer')} of this batch{sample}\n"
        f"  {selected.restored:,} with a previous answer, {selected.pending:,} without one, which would be pending"
    )

"""``rowcall retry``: set records back to pending."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from rowcall.cli.changing.select_jobs import (
    ColumnValues,
    SelectionChange,
    change_options,
    change_selection,
    select_options,
)
from rowcall.cli.shared.job_address import JobAddress
from rowcall.model.errors import RowcallError
from rowcall.model.job import Status
from rowcall.model.store_location import StoreLocation
from rowcall.store.types import Selection

_RETRY = SelectionChange(
    "Set them back to pending?",
    lambda store, *selected: store.retry(*selected),
    "pending again; rowcall run calls the API for {}",
)


@click.command(epilog="Example: rowcall retry http_500 --dry-run; rowcall retry --all-failed --where lang=de")
@click.argument("reasons_or_keys", nargs=-1, metavar="[REASON|KEY ...]")
@click.option("--all-failed", is_flag=True, help="Select every failed record.")
@click.option("--done", is_flag=True, help="Select done records too. They are called, and paid for, again.")
@select_options
@change_options
def retry(
    reasons_or_keys: tuple[str, ...],
    all_failed: bool,
    done: bool,
    batch: str | None,
    where: ColumnValues,
    dry_run: bool,
    yes: bool,
    config: Path,
    store: StoreLocation | None,
    name: str | None,
) -> None:
    """Set records back to pending, with all their attempts. The next run calls the API for them."""
    if not (reasons_or_keys or all_failed or batch or where):
        remedy = "name reasons or keys, or use --all-failed, --batch B or --where COLUMN=VALUE"
        raise RowcallError("no records are selected", remedy=remedy)
    statuses = (Status.FAILED, Status.CANCELLED) + ((Status.DONE,) if done else ())
    selection = Selection(reasons_or_keys, (Status.FAILED,) if all_failed and not done else statuses, batch, where)
    asyncio.run(change_selection(_RETRY, JobAddress(config, store, name), selection, yes=yes, dry_run=dry_run))

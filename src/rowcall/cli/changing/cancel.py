"""``rowcall cancel``: take records out of the work."""

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

_CANCEL = SelectionChange(
    "Cancel them?", lambda store, *selected: store.cancel(*selected), "cancelled; rowcall retry KEY brings {} back"
)


@click.command(epilog="Example: rowcall cancel --pending --dry-run; rowcall cancel 1_1 --yes")
@click.argument("reasons_or_keys", nargs=-1, metavar="[REASON|KEY ...]")
@select_options
@click.option("--pending", is_flag=True, help="Only pending records; all of them if nothing else is named.")
@change_options
def cancel(
    reasons_or_keys: tuple[str, ...],
    batch: str | None,
    where: ColumnValues,
    pending: bool,
    dry_run: bool,
    yes: bool,
    config: Path,
    store: StoreLocation | None,
    name: str | None,
) -> None:
    """Cancel records that are not done, so that no run calls the API for them. `rowcall retry` brings them back.

    If a record is being called right now, its run drops the call within 5 s.
    """
    if not (reasons_or_keys or batch or pending or where):
        remedy = "name keys, or use --pending, --batch B or --where COLUMN=VALUE"
        raise RowcallError("no records are selected", remedy=remedy)
    statuses = (Status.PENDING,) if pending else (Status.PENDING, Status.RUNNING)
    selection = Selection(reasons_or_keys, statuses, batch, where)
    asyncio.run(change_selection(_CANCEL, JobAddress(config, store, name), selection, yes=yes, dry_run=dry_run))

"""Selecting records by reason, key, batch and column, showing the selection, and changing it: for retry and cancel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import click

from rowcall.cli.shared.console import confirmed
from rowcall.cli.shared.flags import F, dry_run_option, store_options, yes_option
from rowcall.cli.shared.job_address import JobAddress
from rowcall.cli.shared.job_lookup import find_store, read_job, require_batch
from rowcall.model.errors import RowcallError
from rowcall.progress import clean, counted
from rowcall.store.base import Reader, Store
from rowcall.store.open_at import open_store
from rowcall.store.types import Selected, Selection

ColumnValues = tuple[tuple[str, str], ...]
"""Columns, each with the text that it must hold."""


def _column_values(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> ColumnValues:
    """Split each ``lang=de`` into column and text."""
    for value in values:
        if not value.partition("=")[0] or "=" not in value:
            raise click.BadParameter(f"{value!r} is not of the form COLUMN=VALUE, such as lang=de", ctx, param)
    return tuple((column, cell) for column, _, cell in (value.partition("=") for value in values))


def select_options(verb: F) -> F:
    """Add ``--batch`` and ``--where``."""
    verb = click.option(
        "--where",
        multiple=True,
        callback=_column_values,
        metavar="COLUMN=VALUE",
        help="Only records whose column holds exactly this value. Can be repeated; then all of them must match.",
    )(verb)
    return click.option("--batch", metavar="B", help="Only records of this batch.")(verb)


def change_options(verb: F) -> F:
    """Add the flags of a verb that changes jobs: where they are, ``--dry-run`` and ``--yes``."""
    return store_options(dry_run_option(yes_option(verb)))


@dataclass(frozen=True, slots=True)
class SelectionChange:
    """A change to a selection of records.

    Attributes:
        question: asks the user to confirm it.
        apply: makes it in the store; returns how many records changed.
        result: what is said of the records afterwards; ``{}`` stands for "it" or "them".
    """

    question: str
    apply: Callable[[Store, str, Selection], Awaitable[int]]
    result: str


async def change_selection(
    change: SelectionChange, address: JobAddress, selection: Selection, *, yes: bool, dry_run: bool
) -> None:
    """Show the selection, ask, and change it.

    Raises:
        RowcallError: an unknown batch or column, or a key or reason that matches no record.
    """
    async with read_job(address) as (reader, kind):
        if selection.batch is not None:
            await require_batch(reader, kind, selection.batch)
        await _require_columns(reader, kind, selection.where)
        selected = await reader.select(kind, selection)
    if selected.unmatched and not selected.count:
        words = ", ".join(map(clean, selected.unmatched))
        remedy = "write keys as they are in the input; rowcall errors lists the reasons"
        raise RowcallError(f"no record has the key or the reason {words}", remedy=remedy)
    click.echo(_selected_text(selected), err=True)
    if dry_run or not selected.count or not confirmed(change.question, yes=yes):
        return
    async with await open_store(find_store(address)[0]) as store:
        number = await change.apply(store, kind, selection)
    are, them = ("is", "it") if number == 1 else ("are", "them")
    click.echo(f"{counted(number, 'record')} {are} {address.fill_in(change.result.format(them))}", err=True)


async def _require_columns(reader: Reader, kind: str, where: ColumnValues) -> None:
    """Refuse a column that the records do not have, judging by the first record whose input is still stored."""
    first = await reader.page(kind, limit=1)
    record = await reader.payload(first[0].row) if first and where else None
    unknown = [column for column, _ in where if record and column not in record]
    if record and unknown:
        listed = ", ".join(map(clean, record))
        raise RowcallError(f"{kind}: there is no column {unknown[0]!r}", remedy=f"the columns are: {listed}")


def _selected_text(selected: Selected) -> str:
    parts = ", ".join(f"{number:,} {status}" for status, number in selected.by_status.items() if number)
    text = f"selected: {parts or 'nothing'}{sample_text(selected.sample, selected.count)}"
    if selected.unmatched:
        text += f"\nno record matches: {', '.join(map(clean, selected.unmatched))}"
    return text


def sample_text(sample: tuple[str, ...], count: int) -> str:
    """Return a few keys in brackets: `` (1_1, 1_2, ...)``; empty if there are none."""
    more = ", ..." if count > len(sample) else ""
    return f" ({', '.join(map(clean, sample))}{more})" if sample else ""

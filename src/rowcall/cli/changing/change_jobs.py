"""Verbs that change jobs: retry, cancel, rollback."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import click

from rowcall.cli.shared.common import F, confirmed, only_kind, require_batch, store_location, store_options
from rowcall.cli.shared.located_commands import Located
from rowcall.model.errors import RowcallError
from rowcall.model.job import Status
from rowcall.model.store_location import StoreLocation
from rowcall.progress import clean, counted
from rowcall.store.base import Reader, Store
from rowcall.store.open_at import open_reader, open_store
from rowcall.store.types import RolledBack, Selected, Selection

Cells = tuple[tuple[str, str], ...]
"""Columns and the text of their values."""


def _cells(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Cells:
    """``lang=de`` as its two halves."""
    for value in values:
        if not value.partition("=")[0] or "=" not in value:
            raise click.BadParameter(f"{value!r} is not of the form COLUMN=VALUE, such as lang=de", ctx, param)
    return tuple((column, cell) for column, _, cell in (value.partition("=") for value in values))


def _select_options(verb: F) -> F:
    """What narrows a selection."""
    verb = click.option(
        "--where",
        multiple=True,
        callback=_cells,
        metavar="COLUMN=VALUE",
        help="Only records whose column holds exactly that; several must all hold.",
    )(verb)
    return click.option("--batch", metavar="B", help="Only records of that batch.")(verb)


def _change_options(verb: F) -> F:
    verb = click.option("--yes", is_flag=True, help="Ask nothing.")(verb)
    verb = click.option("--dry-run", is_flag=True, help="Show the selection, change nothing.")(verb)
    return store_options(verb)


@click.command(epilog="Example: rowcall retry http_500 --dry-run; rowcall retry --all-failed --where lang=de")
@click.argument("reasons_or_keys", nargs=-1, metavar="[REASON|KEY ...]")
@click.option("--all-failed", is_flag=True, help="Every failed record.")
@click.option("--done", is_flag=True, help="Done records too: they are called, and paid, again.")
@_select_options
@_change_options
def retry(
    reasons_or_keys: tuple[str, ...],
    all_failed: bool,
    done: bool,
    batch: str | None,
    where: Cells,
    dry_run: bool,
    yes: bool,
    config: Path,
    store: StoreLocation | None,
    name: str | None,
) -> None:
    """Set records back to pending, with all their attempts; the next run calls them."""
    if not (reasons_or_keys or all_failed or batch or where):
        remedy = "name reasons or keys, or --all-failed, or --batch B, or --where COLUMN=VALUE"
        raise RowcallError("nothing selected", remedy=remedy)
    statuses = (Status.FAILED, Status.CANCELLED) + ((Status.DONE,) if done else ())
    selection = Selection(reasons_or_keys, (Status.FAILED,) if all_failed and not done else statuses, batch, where)
    asyncio.run(_change(_RETRY, _Place(config, store, name), selection, yes=yes, dry_run=dry_run))


@click.command(epilog="Example: rowcall cancel --pending --dry-run; rowcall cancel 1_1 --yes")
@click.argument("reasons_or_keys", nargs=-1, metavar="[REASON|KEY ...]")
@_select_options
@click.option("--pending", is_flag=True, help="Only pending records, all of them where nothing else is named.")
@_change_options
def cancel(
    reasons_or_keys: tuple[str, ...],
    batch: str | None,
    where: Cells,
    pending: bool,
    dry_run: bool,
    yes: bool,
    config: Path,
    store: StoreLocation | None,
    name: str | None,
) -> None:
    """Take records that are not done out of the work; `rowcall retry` brings them back.

    The calls of running ones are dropped at the next sign of life of their run, within 5 s.
    """
    if not (reasons_or_keys or batch or pending or where):
        remedy = "name keys, or --pending, or --batch B, or --where COLUMN=VALUE"
        raise RowcallError("nothing selected", remedy=remedy)
    statuses = (Status.PENDING,) if pending else (Status.PENDING, Status.RUNNING)
    selection = Selection(reasons_or_keys, statuses, batch, where)
    asyncio.run(_change(_CANCEL, _Place(config, store, name), selection, yes=yes, dry_run=dry_run))


@click.command(epilog="Example: rowcall rollback --batch new-prompt --dry-run")
@click.option("--batch", metavar="B", required=True, help="The batch whose answers no longer count.")
@_change_options
def rollback(batch: str, dry_run: bool, yes: bool, config: Path, store: StoreLocation | None, name: str | None) -> None:
    """Let the answers of a batch no longer count: the previous ones do, or the records are pending again."""
    asyncio.run(_rollback(_Place(config, store, name), batch, yes=yes, dry_run=dry_run))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a person says that the jobs are."""

    config: Path
    store: StoreLocation | None
    name: str | None


@dataclass(frozen=True, slots=True)
class _Verb:
    """A verb over a selection: the question, what it does, what is said of the records afterwards."""

    question: str
    act: Callable[[Store, str, Selection], Awaitable[int]]
    said: str


_RETRY = _Verb("Set them back?", lambda store, *chosen: store.retry(*chosen), "pending again; rowcall run calls {}")
_CANCEL = _Verb(
    "Cancel them?", lambda store, *chosen: store.cancel(*chosen), "cancelled; rowcall retry KEY brings {} back"
)


async def _change(verb: _Verb, place: _Place, selection: Selection, *, yes: bool, dry_run: bool) -> None:
    at, named = store_location(place.config, place.store)
    async with await open_reader(at) as reader:
        kind = only_kind(await reader.kinds(), place.name or named, at)
        if selection.batch is not None:
            await require_batch(reader, kind, selection.batch)
        await _require_columns(reader, kind, selection.where)
        selected = await reader.select(kind, selection)
    _require_match(selected)
    click.echo(_selected_text(selected), err=True)
    if dry_run or not selected.count or not confirmed(verb.question, yes=yes):
        return
    async with await open_store(at) as store:
        number = await verb.act(store, kind, selection)
    click.echo(_said(verb, number, Located(place.config, place.store)), err=True)


def _said(verb: _Verb, number: int, located: Located) -> str:
    are, them = ("is", "it") if number == 1 else ("are", "them")
    return f"{counted(number, 'record')} {are} {located(verb.said.format(them))}"


async def _rollback(place: _Place, batch: str, *, yes: bool, dry_run: bool) -> None:
    at, named = store_location(place.config, place.store)
    async with await open_reader(at) as reader:
        kind = only_kind(await reader.kinds(), place.name or named, at)
        await require_batch(reader, kind, batch)
        selected = await reader.batch_answers(kind, batch)
    click.echo(_rolled_text(selected), err=True)
    if dry_run or not selected.count or not confirmed("Roll them back?", yes=yes):
        return
    async with await open_store(at) as store:
        rolled = await store.rollback(kind, batch)
    click.echo(
        f"{rolled.restored:,} records have their previous answer, {rolled.pending:,} are pending again", err=True
    )


async def _require_columns(reader: Reader, kind: str, where: Cells) -> None:
    """Refuse a column that the records do not have, by the first one that the store still holds.

    Raises:
        RowcallError: names those that it has.
    """
    first = await reader.page(kind, limit=1)
    record = await reader.payload(first[0].row) if first and where else None
    unknown = [column for column, _ in where if record and column not in record]
    if record and unknown:
        listed = ", ".join(map(clean, record))
        raise RowcallError(f"{kind}: there is no column {unknown[0]!r}", remedy=f"the columns are: {listed}")


def _require_match(selected: Selected) -> None:
    if selected.unmatched and not selected.count:
        words = ", ".join(map(clean, selected.unmatched))
        remedy = "keys are written as in the input; rowcall errors names the reasons"
        raise RowcallError(f"no record has the key or the reason {words}", remedy=remedy)


def _selected_text(selected: Selected) -> str:
    parts = ", ".join(f"{number:,} {status}" for status, number in selected.by_status.items() if number)
    text = f"selected: {parts or 'nothing'}{_sample_text(selected.sample, selected.count)}"
    if selected.unmatched:
        text += f"\nmatches nothing: {', '.join(map(clean, selected.unmatched))}"
    return text


def _rolled_text(rolled: RolledBack) -> str:
    sample = _sample_text(rolled.sample, rolled.count)
    return (
        f"selected: {rolled.count:,} records are done with an answer of this batch{sample}\n"
        f"  {rolled.restored:,} have a previous answer, {rolled.pending:,} do not and would be pending"
    )


def _sample_text(sample: tuple[str, ...], count: int) -> str:
    more = ", ..." if count > len(sample) else ""
    return f" ({', '.join(map(clean, sample))}{more})" if sample else ""

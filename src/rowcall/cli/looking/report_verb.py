"""``rowcall report``: one page with pictures of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from rowcall import __version__
from rowcall.cli.shared.common import only_kind, store_location, store_options
from rowcall.cli.shared.hints import hint_for
from rowcall.model.errors import OutputError
from rowcall.model.store_location import StoreLocation
from rowcall.report import read_report, render
from rowcall.store.open_at import open_reader


@click.command(epilog="Example: rowcall report -o run.html; rowcall report --all -o - > history.html")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    default=Path("report.html"),
    show_default=True,
    help="Where to; - is stdout.",
)
@click.option("--all", is_flag=True, help="All runs, not only the last one that made calls.")
@store_options
def report(output: Path, all: bool, config: Path, store: StoreLocation | None, name: str | None) -> None:  # noqa: A002  the flag's name
    """Write a page with pictures: calls, failures, latencies, tokens and money over time, and the slowest records.

    It is one file without script or network, made from the store alone, also while a run works.
    """
    page = asyncio.run(_page(config, store, name, all_runs=all))
    if str(output) == "-":
        click.echo(page, nl=False)
        return
    try:
        output.write_text(page, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"{output}: cannot be written: {error.strerror}", remedy="name another file with -o"
        ) from None
    click.echo(f"{output}: open it in a browser", err=True)


async def _page(config: Path, store: StoreLocation | None, name: str | None, *, all_runs: bool) -> str:
    place, kind = store_location(config, store)
    async with await open_reader(place) as reader:
        kind = only_kind(await reader.kinds(), name or kind, place)
        return render(await read_report(reader, kind, all_runs=all_runs), hint_for, version=__version__)

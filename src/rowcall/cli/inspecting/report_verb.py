"""``rowcall report``: an HTML page with charts of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from rowcall import __version__
from rowcall.cli.shared.failure_hints import hint_for
from rowcall.cli.shared.flags import store_options
from rowcall.cli.shared.job_address import JobAddress
from rowcall.cli.shared.job_lookup import read_job
from rowcall.model.errors import OutputError
from rowcall.model.store_location import StoreLocation
from rowcall.report import read_report, render


@click.command(epilog="Example: rowcall report -o run.html; rowcall report --all -o - > history.html")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    default=Path("report.html"),
    show_default=True,
    help="Write the page to FILE; - is stdout.",
)
@click.option("--all", is_flag=True, help="Cover all runs, not only the last one that made calls.")
@store_options
def report(output: Path, all: bool, config: Path, store: StoreLocation | None, name: str | None) -> None:  # noqa: A002  the flag's name
    """Write an HTML page with charts: calls, failures, latencies, tokens and cost over time, and the slowest records.

    It is a single file without scripts or external resources, made from the store alone. It can be written while a run
    is at work.
    """
    page = asyncio.run(_page(JobAddress(config, store, name), all_runs=all))
    if str(output) == "-":
        click.echo(page, nl=False)
        return
    try:
        output.write_text(page, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"{output}: cannot be written: {error.strerror}", remedy="name another file with -o"
        ) from None
    click.echo(f"{output}: written; open it in a browser", err=True)


async def _page(address: JobAddress, *, all_runs: bool) -> str:
    async with read_job(address) as (reader, kind):
        return render(await read_report(reader, kind, all_runs=all_runs), hint_for, version=__version__)

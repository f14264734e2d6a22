"""``rowcall errors``: failures by reason, with what to do about them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from rowcall.cli.inspecting.status import read_summary
from rowcall.cli.shared.console import print_json
from rowcall.cli.shared.failure_hints import hint_for
from rowcall.cli.shared.flags import json_option, store_options
from rowcall.cli.shared.job_address import JobAddress
from rowcall.model.store_location import StoreLocation
from rowcall.progress import clean


@click.command(epilog="Example: rowcall errors, then rowcall retry http_500")
@store_options
@json_option
def errors(config: Path, store: StoreLocation | None, name: str | None, as_json: bool) -> None:
    """Show failures by reason: how many, the key of one, its message, and what to do."""
    address = JobAddress(config, store, name)
    failures = asyncio.run(read_summary(address)).errors
    groups = [each.model_dump() | {"hint": address.fill_in(hint_for(each.reason))} for each in failures]
    if as_json:
        print_json(groups)
        return
    for group in groups:
        example = f"for example {clean(group['sample_key'])}: {clean(group['message'])}"
        click.echo(f"{group['count']:,}  {group['reason']}  {example}\n      {group['hint']}")
    if not groups:
        click.echo("nothing has failed", err=True)

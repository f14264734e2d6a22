"""``rowcall enqueue``: store the records of the input, for workers to call the API for."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from rowcall.cli.running.run_messages import INTERRUPTED, input_text
from rowcall.cli.setup.request_preview import SecretPlaceholders
from rowcall.cli.shared.console import print_json
from rowcall.cli.shared.flags import (
    batch_label_option,
    config_argument,
    config_options,
    json_option,
    load_config,
    sample_option,
)
from rowcall.cli.shared.job_address import JobAddress
from rowcall.cli.shared.problem_lines import with_config_lines
from rowcall.config import Config
from rowcall.engine.options import Options
from rowcall.model.errors import Exit
from rowcall.model.events import Event, InputRead, StoreWaits
from rowcall.run.pipeline import EnqueuedInput, Pipeline


@click.command(epilog="Example: rowcall enqueue --batch monday && rowcall status")
@config_argument
@config_options
@sample_option
@batch_label_option
@click.option(
    "--if-changed",
    type=click.Choice(["keep", "redo", "stop"]),
    help="What to do if the request has changed since records were done, as in rowcall run.  [default: stop]",
)
@click.option("--retry-failed", is_flag=True, help="Set failed records back to pending.")
@json_option
def enqueue(config: Path, as_json: bool, **flags: Any) -> int:
    """Store the records of the input without calling the API. rowcall work calls it, here or on other machines.

    Repeating the command changes nothing. Workers that are waiting begin at once. No API key is needed here.
    """
    loaded = load_config(config, flags)
    options = Options(**{name: flags[name] for name in ("sample", "batch", "if_changed", "retry_failed")})
    try:
        with with_config_lines(loaded):
            added = asyncio.run(_enqueue(_without_api_access(loaded), options))
    except KeyboardInterrupt:
        click.echo(INTERRUPTED, err=True)
        return Exit.INTERRUPTED
    read = InputRead(total=added.enqueued.total, **asdict(added.enqueued))
    if as_json:
        print_json({"kind": loaded.name, "pass": added.run.pass_} | asdict(read))
    click.echo(f"{loaded.name}: {input_text(read)}", err=True)
    if added.withheld:
        click.echo(f"The config could not be stored for workers, who need a copy of it: {added.withheld}", err=True)
    if not added.run.joined:
        click.echo(f"Call the API for them with: {JobAddress(config).fill_in('rowcall work')}", err=True)
    return Exit.DONE


def _without_api_access(config: Config) -> Config:
    """Return the config without secrets, proxy and certificates, which enqueueing does not need."""
    masked = config.masked(SecretPlaceholders(config.folder))
    network = {"proxy": None, "ca_file": None, "client_cert": None, "client_key": None}
    return masked.model_copy(update={"api": masked.api.model_copy(update=network)})


async def _enqueue(config: Config, options: Options) -> EnqueuedInput:
    def emit(event: Event) -> None:
        if isinstance(event, StoreWaits):
            click.echo(event.message, err=True)

    async with AsyncExitStack() as stack:
        return await Pipeline(config, emit=emit).enqueue(stack, options)

"""``rowcall enqueue``: bring records in, for workers to call the API for."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from rowcall.cli.running.run_messages import LEFT, input_text
from rowcall.cli.setup.shown_requests import Marks
from rowcall.cli.shared.common import config_argument, config_options, json_option, load_config, print_json
from rowcall.cli.shared.config_places import placed
from rowcall.cli.shared.located_commands import Located
from rowcall.config import Config
from rowcall.engine.options import Options
from rowcall.model.errors import Exit
from rowcall.model.events import Event, InputRead, StoreWaits
from rowcall.run.pipeline import BroughtIn, Pipeline


@click.command(epilog="Example: rowcall enqueue --batch monday && rowcall status")
@config_argument
@config_options
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N records of the input, the same each time.")
@click.option("--batch", metavar="NAME", help="Label for the records that come in.")
@click.option(
    "--if-changed",
    type=click.Choice(["keep", "redo", "stop"]),
    help="When the request has changed: as in run; left out: stop.",
)
@click.option("--retry-failed", is_flag=True, help="Failed records are to be tried again.")
@json_option
def enqueue(config: Path, as_json: bool, **flags: Any) -> int:
    """Bring the input's records in, and call nothing: rowcall work does, here or on other machines.

    Doing it again changes nothing. All that is brought in until the next run or work is worked on together; workers
    that are there already begin at once. No key of the API is needed here.
    """
    loaded = load_config(config, flags)
    options = Options(**{name: flags[name] for name in ("sample", "batch", "if_changed", "retry_failed")})
    try:
        with placed(loaded):
            brought = asyncio.run(_bring_in(_for_reading(loaded), options))
    except KeyboardInterrupt:
        click.echo(LEFT, err=True)
        return Exit.INTERRUPTED
    read = InputRead(total=brought.enqueued.total, **asdict(brought.enqueued))
    if as_json:
        print_json({"kind": loaded.name, "pass": brought.run.pass_} | asdict(read))
    click.echo(f"{loaded.name}: {input_text(read)}", err=True)
    if brought.withheld:
        click.echo(f"Workers need the config: {brought.withheld}", err=True)
    if not brought.run.joined:
        click.echo(f"Have them called: {Located(config)('rowcall work')}", err=True)
    return Exit.DONE


def _for_reading(config: Config) -> Config:
    """The config for who calls nothing: without secrets, and without its way to the API."""
    masked = config.masked(Marks(config.folder))
    way = {"proxy": None, "ca_file": None, "client_cert": None, "client_key": None}
    return masked.model_copy(update={"api": masked.api.model_copy(update=way)})


async def _bring_in(config: Config, options: Options) -> BroughtIn:
    async with AsyncExitStack() as stack:
        return await Pipeline(config, emit=_say).bring_in(stack, options)


def _say(event: Event) -> None:
    if isinstance(event, StoreWaits):
        click.echo(event.message, err=True)

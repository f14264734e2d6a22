"""``rowcall batch``: run an OpenAI batch file against any endpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from rowcall.cli.running.next_commands import NextCommands
from rowcall.cli.running.run_config import PrintFlags, options_of, run_config
from rowcall.cli.shared.flags import (
    limit_option,
    no_progress_option,
    overrides,
    pace_options,
    quiet_option,
    store_option,
    summary_option,
    yes_option,
)
from rowcall.cli.shared.job_address import JobAddress
from rowcall.config import Config, Secret, compose
from rowcall.model.errors import RowcallError
from rowcall.model.store_location import StoreLocation
from rowcall.run.open_input import open_input
from rowcall.sources.openai_batch_input import check_batch_file

_DEFAULT_KEY = "OPENAI_API_KEY"


@click.command(epilog="Example: rowcall batch in.jsonl -o out.jsonl --base-url http://localhost:8000/v1 -c 64")
@click.argument("input", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="IN.jsonl")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="OUT.jsonl",
    help="The output file; - is stdout.",
)
@click.option(
    "--base-url",
    required=True,
    metavar="URL",
    help="The URL of the API. If it ends in /v1 like the url of a line, that part is used once.",
)
@pace_options
@click.option(
    "--api-key-env",
    metavar="NAME",
    help=f"The variable that holds the API key.  [default: {_DEFAULT_KEY}, if it is set]",
)
@click.option(
    "--header", multiple=True, metavar="'NAME: VALUE'", help="Send this header with every call. Can be repeated."
)
@click.option("--ordered", is_flag=True, help="Write lines in the order of the input, not of their completion.")
@store_option("The store.  [default: OUT.jsonl.db]")
@limit_option
@click.option(
    "--if-changed",
    type=click.Choice(["keep", "redo", "stop"]),
    help="What to do if the URL has changed since lines were done: keep their answers, redo the lines, or stop.",
)
@click.option("--retry-failed", is_flag=True, help="Try failed lines again.")
@summary_option
@quiet_option
@no_progress_option
@yes_option
def batch(**flags: Any) -> int:
    """Call the API for every line of an OpenAI batch file, and write the output file that OpenAI would write.

    It needs no config. After Ctrl+C, a crash or an outage, the same command resumes; lines that are done are not called
    again. If the API answered, a line holds its response, even with an error status; else it holds an error.
    """
    config = _config(flags)
    check_batch_file(open_input(config))
    address = JobAddress(store=config.store_location)
    commands = NextCommands("the same command", address.fill_in("rowcall errors"), address)
    return run_config(config, options_of(flags | {"output": None}), PrintFlags.of(flags), commands)


def _config(flags: dict[str, Any]) -> Config:
    """Return the config that the flags describe.

    Raises:
        ConfigError: the value of a flag is not valid.
    """
    key = flags["api_key_env"] or (_DEFAULT_KEY if os.environ.get(_DEFAULT_KEY) else None)
    api = {"preset": "openai-batch", "base_url": flags["base_url"], "headers": _headers(flags["header"])}
    settings = {
        "name": "batch",
        "input": {"path": str(flags["input"]), "format": "openai-batch", "key": "custom_id"},
        "api": api | ({"api_key": {"env": key}} if key else {}),
        "output": {
            "path": str(flags["output"]),
            "format": "openai-batch-output",
            "order": "input" if flags["ordered"] else "completion",
        },
        "store": {"path": _store(flags)},
    }
    return compose(settings, name="rowcall batch", further=overrides(flags))


def _store(flags: dict[str, Any]) -> str:
    if flags["store"] is None and str(flags["output"]) == "-":
        raise RowcallError("-o - needs a place for the store, which is usually beside OUT", remedy="add --store FILE")
    place: StoreLocation | None = flags["store"]
    return (place.url or str(place)) if place else f"{flags['output']}.db"


def _headers(written: tuple[str, ...]) -> dict[str, Secret]:
    """Parse headers as curl writes them. Each may hold a secret, so none is ever shown or stored."""
    pairs = [(name.strip(), value.strip()) for name, _, value in (text.partition(":") for text in written)]
    if not all(name and value for name, value in pairs):
        raise RowcallError("--header needs a name and a value", remedy="write it as --header 'X-Team: research'")
    return {name: Secret(name, value) for name, value in pairs}

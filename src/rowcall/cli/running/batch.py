"""``rowcall batch``: an OpenAI batch file against any endpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from rowcall.cli.running.run import carry_out, run
from rowcall.cli.running.run_messages import Following
from rowcall.cli.shared.common import overrides, pace_options, store_option
from rowcall.cli.shared.located_commands import Located
from rowcall.config import Config, Secret, compose
from rowcall.model.errors import RowcallError
from rowcall.model.store_location import StoreLocation
from rowcall.run.open_input import open_input
from rowcall.sources.openai_batch_input import check_batch_file

_USUAL_KEY = "OPENAI_API_KEY"


@click.command(epilog="Example: rowcall batch in.jsonl -o out.jsonl --base-url http://localhost:8000/v1 -c 64")
@click.argument("input", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="IN.jsonl")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="OUT.jsonl", help="The output file."
)
@click.option("--base-url", required=True, metavar="URL", help="The API; a /v1 that lines repeat is not doubled.")
@pace_options
@click.option("--api-key-env", metavar="NAME", help=f"The variable with the key; left out: {_USUAL_KEY}, if it is set.")
@click.option("--header", multiple=True, metavar="'NAME: VALUE'", help="A header for every call; may be repeated.")
@click.option("--ordered", is_flag=True, help="Lines in the order of the input instead of that of their ends.")
@store_option("Left out: OUT.jsonl.db.")
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", help="At most N lines this time.")
@click.option(
    "--if-changed",
    type=click.Choice(["keep", "redo", "stop"]),
    help="When the URL has changed: done lines keep their answers, are called again, or nothing is called.",
)
@click.option("--retry-failed", is_flag=True, help="Failed lines are tried again.")
@click.option("--json", is_flag=True, help="A summary as JSON on stdout at the end.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.option("--no-progress", is_flag=True, help="No line that is redrawn.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
def batch(**flags: Any) -> int:
    """Call the API for every line of an OpenAI batch file, and write the output file that OpenAI would.

    The same command goes on after Ctrl+C, a crash or an outage; lines that are done are not called again. What the
    API answered is a line's response, an error status too; what no answer came for is its error.
    """
    config = _config(flags)
    check_batch_file(open_input(config))
    located = Located(store=config.store_location)
    following = Following("the same command", located("rowcall errors"), located)
    return carry_out(config, run.make_context("run", []).params | flags | {"output": None}, following)


def _config(flags: dict[str, Any]) -> Config:
    """What a config file would say.

    Raises:
        ConfigError: a flag whose value cannot be used.
    """
    key = flags["api_key_env"] or (_USUAL_KEY if os.environ.get(_USUAL_KEY) else None)
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
        raise RowcallError("-o - leaves no place for the store, which is beside OUT", remedy="--store FILE")
    place: StoreLocation | None = flags["store"]
    return (place.url or str(place)) if place else f"{flags['output']}.db"


def _headers(written: tuple[str, ...]) -> dict[str, Secret]:
    """Headers as curl takes them; none of them is shown or stored, since each may hold a secret."""
    pairs = [(name.strip(), value.strip()) for name, _, value in (text.partition(":") for text in written)]
    if not all(name and value for name, value in pairs):
        raise RowcallError("--header needs a name and a value", remedy="write it as --header 'X-Team: research'")
    return {name: Secret(name, value) for name, value in pairs}

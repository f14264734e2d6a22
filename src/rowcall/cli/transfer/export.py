"""``rowcall export``: write the answers, or the requests that are left, to a file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, get_args

import click

from rowcall.batchapi.write_requests import SHAPES, BatchFormat, write_requests
from rowcall.cli.shared.flags import config_argument, config_options, load_config
from rowcall.config import Config
from rowcall.engine.options import IfChanged, Options
from rowcall.model.errors import RowcallError
from rowcall.model.job import Status
from rowcall.output import FormatName
from rowcall.progress import counted
from rowcall.run.pipeline import Pipeline


@click.command(epilog="Example: rowcall export -o - --format jsonl --only failed | head")
@config_argument
@config_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to FILE; - is stdout. [default: output.path]",
)
@click.option(
    "--format",
    "format_",
    envvar="ROWCALL_FORMAT",
    type=click.Choice([*get_args(FormatName), *SHAPES]),
    help="The format; by default the one of the file's suffix. openai-batch and anthropic-batch write requests.",
)
@click.option("--only", type=click.Choice(["done", "failed", "pending"]), help="Only records with this status.")
@click.option(
    "--if-changed",
    type=click.Choice(["keep", "redo", "stop"]),
    help="For batch formats: what to do if the request has changed, as in rowcall run.",
)
def export(
    config: Path,
    output: Path | None,
    format_: str | None,
    only: str | None,
    if_changed: IfChanged | None,
    **flags: Any,
) -> None:
    """Write the input with its answers: every column as it was, in the same order, with the new columns added.

    With --format openai-batch or anthropic-batch, write the requests of pending records for the provider's batch API
    instead, with the keys as custom_id. rowcall import reads the answers.
    """
    loaded = load_config(config, flags)
    for name in (each for each in SHAPES if each == format_):
        _export_requests(loaded, output, name, only, Options(if_changed=if_changed))
        return
    path = output or loaded.output_path
    if path is None:
        raise RowcallError(f"{config}: [output] path is not set", remedy="set it, or name a file with -o FILE")
    named = next((name for name in get_args(FormatName) if name == format_), None)
    rows = asyncio.run(Pipeline(loaded).export(path, format_=named, only=Status(only) if only else None))
    click.echo(f"{path}: {counted(rows, 'row')}", err=True)


def _export_requests(
    config: Config, output: Path | None, name: BatchFormat, only: str | None, options: Options
) -> None:
    if output is None:
        what = f"--format {name} writes a file of requests, and needs a name for it"
        raise RowcallError(what, remedy="name it with -o requests.jsonl")
    written = asyncio.run(write_requests(config, output, SHAPES[name], only=Status(only or "pending"), options=options))
    files = ", ".join(map(str, written.files))
    click.echo(
        f"{files}: {counted(written.requests, 'request')}; read their answers with: rowcall import FILE", err=True
    )

"""Verbs that write files: export."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from rowcall.cli.common import config_argument, config_options, load_config
from rowcall.errors import RowcallError
from rowcall.exports import FormatName
from rowcall.job import Status
from rowcall.pipeline import Pipeline
from rowcall.progress import counted


@click.command(epilog="Example: rowcall export -o - --format jsonl --only failed | head")
@config_argument
@config_options
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to; - is stdout.")
@click.option(
    "--format",
    "format_",
    envvar="ROWCALL_FORMAT",
    type=click.Choice(["csv", "tsv", "jsonl"]),
    help="Left out: by the file's suffix.",
)
@click.option("--only", type=click.Choice(["done", "failed", "pending"]), help="Only records with that status.")
def export(config: Path, output: Path | None, format_: FormatName | None, only: str | None, **flags: Any) -> None:
    """Write the input with its answers: every column as it was, in its order, the new columns beside it."""
    loaded = load_config(config, flags)
    path = output or loaded.output_path
    if path is None:
        raise RowcallError(f"{config}: [output] has no path", remedy="-o FILE, or path in [output]")
    rows = asyncio.run(Pipeline(loaded).export(path, format_=format_, only=Status(only) if only else None))
    click.echo(f"{path}: {counted(rows, 'row')}", err=True)

"""``rowcall work``: call the API for records that others bring in."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from rowcall.cli.common import config_argument, config_options, load_config, setting_options
from rowcall.cli.run import carry_out, run
from rowcall.cli.talk import Following, shown
from rowcall.config import Config
from rowcall.pipeline import Pipeline
from rowcall.progress import counted
from rowcall.store.facts import Role


@click.command(epilog="Example: rowcall enqueue && rowcall work in one terminal, rowcall work in others")
@config_argument
@setting_options
@config_options
@click.option("--wait", is_flag=True, help="Stay when nothing is left, and work on what comes, until Ctrl+C.")
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", help="At most N records this time.")
@click.option("--now", is_flag=True, help="Do not wait for what an earlier run was asked to; the key is another one.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Then read the input and export.")
@click.option("--json", is_flag=True, help="A summary as JSON on stdout at the end.")
@click.option(
    "--events", type=click.Path(path_type=Path), metavar="FILE", help="All that happens as JSON lines; - is stdout."
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.option("--no-progress", is_flag=True, help="No line that is redrawn.")
def work(config: Path, **flags: Any) -> int:
    """Call the API for the records that rowcall enqueue, or a run elsewhere, brings in; no input is read.

    Any number of workers share the work, also on several machines where the store is in PostgreSQL. It ends when
    nothing is left and nobody brings more in. No export is written unless -o asks for it: rowcall export does.
    """
    loaded = load_config(config, flags)
    settings = run.make_context("run", []).params | flags | {"role": Role.WORK}
    code = carry_out(_without_export(loaded), settings, Following.of(config, "rowcall work"))
    if flags["output"]:
        rows = asyncio.run(Pipeline(loaded).export(flags["output"]))
        click.echo(f"{shown(flags['output'])}: {counted(rows, 'row')}", err=True)
    return code


def _without_export(config: Config) -> Config:
    return config.model_copy(update={"output": config.output.model_copy(update={"path": None})})

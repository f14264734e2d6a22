"""``rowcall work``: call the API for records that other processes enqueue."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rowcall.cli.running.next_commands import NextCommands
from rowcall.cli.running.run_config import PrintFlags, options_of, run_config
from rowcall.cli.running.run_messages import shown
from rowcall.cli.shared.flags import (
    config_argument,
    config_options,
    events_option,
    limit_option,
    load_config,
    no_progress_option,
    now_option,
    overrides,
    processes_option,
    quiet_option,
    require_one_process,
    setting_options,
    store_option,
    summary_option,
    trust_options,
)
from rowcall.cli.shared.job_address import JobAddress
from rowcall.cli.shared.recipe_trust import Trust
from rowcall.cli.shared.stored_config import load_stored_config, read_recipe
from rowcall.config import Config
from rowcall.model.errors import NoStore, NothingYet
from rowcall.model.store_location import StoreLocation
from rowcall.progress import counted
from rowcall.run.pipeline import Pipeline
from rowcall.run.recipe import Recipe
from rowcall.store.types import Role

STORE_INTERVAL = 1.0
"""Seconds between two looks into a store that does not hold the job yet."""


@click.command(epilog="Example: rowcall enqueue && rowcall work in one terminal, rowcall work in others")
@config_argument
@store_option("The store, used instead of CONFIG; it also holds the config and the handler.")
@click.option("--name", metavar="KIND", help="Which batch job, if the store holds several.")
@trust_options
@setting_options
@processes_option
@config_options
@click.option("--wait", is_flag=True, help="When nothing is left, wait for new records until Ctrl+C.")
@limit_option
@now_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="At the end, read the input and export to FILE.",
)
@summary_option
@events_option
@quiet_option
@no_progress_option
def work(config: Path, store: StoreLocation | None, name: str | None, **flags: Any) -> int:
    """Call the API for records that rowcall enqueue, or a run elsewhere, has stored. The input is not read.

    Any number of workers can share the work, on several machines if the store is in PostgreSQL. A worker ends when no
    records are left and no process is adding more. It writes no export unless -o asks for one; rowcall export does.

    A worker must use the config and the handler that the records were stored with. With --store it takes them from the
    store. Anyone who can write to the store can change them, so they may use only the variables that --env names, and
    run no command and no handler, unless you give --trust-store or allow it once when you are asked. API keys come from
    the environment of this machine, and from .env in the current folder.
    """
    if store is None and name is not None:
        raise click.UsageError("--name needs --store; a config names its batch job itself")
    named = click.get_current_context().get_parameter_source("config")
    if store is not None and named is ParameterSource.COMMANDLINE:
        raise click.UsageError("--store and CONFIG do not go together: the store holds its own config")
    if store is not None and flags["output"]:
        raise click.UsageError("-o needs the input; where that is, use: rowcall export -o FILE")
    require_one_process(flags)
    with ExitStack() as stack:
        loaded = _stored_config(stack, store, name, flags) if store else load_config(config, flags)
        commands = _next_commands(config, store, loaded.name).with_flags(flags)
        no_export = loaded.model_copy(update={"output": loaded.output.model_copy(update={"path": None})})
        code = run_config(no_export, options_of(flags, Role.WORK), PrintFlags.of(flags), commands)
        if output := flags["output"]:
            rows = asyncio.run(Pipeline(loaded).export(output))
            click.echo(f"{shown(output)}: {counted(rows, 'row')}", err=True)
    return code


def _stored_config(stack: ExitStack, store: StoreLocation, wanted: str | None, flags: dict[str, Any]) -> Config:
    """Load the config that the records of a kind were stored with.

    Raises:
        RowcallError: the store does not hold it.
    """
    recipe = asyncio.run(_recipe(store, wanted, wait=flags["wait"], quiet=flags["quiet"]))
    trust = Trust(flags["trust_store"], flags["env"], asks=True)
    settings = flags["set"] | overrides(flags)
    return load_stored_config(stack, store, recipe, trust=trust, settings=settings, env_file=flags["env_file"])


async def _recipe(store: StoreLocation, wanted: str | None, *, wait: bool, quiet: bool) -> Recipe:
    """Read how the calls are made from the store; with ``wait``, wait until the store holds it."""
    while True:
        try:
            return await read_recipe(store, wanted)
        except (NoStore, NothingYet) as error:
            if not wait:
                raise
            if not quiet:
                click.echo(f"{error.message}; waiting for rowcall enqueue", err=True)
            quiet = True
        await asyncio.sleep(STORE_INTERVAL)


def _next_commands(config: Path, store: StoreLocation | None, kind: str) -> NextCommands:
    """Return the commands that may come next; they leave out a store that ROWCALL_STORE names."""
    if store is None:
        return NextCommands.for_config(config, "rowcall work")
    if click.get_current_context().get_parameter_source("store") is ParameterSource.ENVIRONMENT:
        named = f"--name {shlex.quote(kind)}"
        return NextCommands(f"rowcall work {named}", f"rowcall errors {named}", JobAddress())
    named = f"--store {shlex.quote(str(store))} --name {shlex.quote(kind)}"
    return NextCommands(f"rowcall work {named}", f"rowcall errors {named}", JobAddress(store=store))

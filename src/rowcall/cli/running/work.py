"""``rowcall work``: call the API for records that others bring in."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rowcall.cli.running.run import carry_out, run
from rowcall.cli.running.run_messages import Following, shown
from rowcall.cli.shared.common import (
    config_argument,
    config_options,
    load_config,
    overrides,
    processes_option,
    setting_options,
    store_option,
    trust_options,
)
from rowcall.cli.shared.located_commands import Located
from rowcall.cli.shared.recipe_trust import Trust
from rowcall.cli.shared.stored_config import kept_config, kept_recipe
from rowcall.config import Config
from rowcall.model.errors import NoStore, NothingYet
from rowcall.model.store_location import StoreLocation
from rowcall.progress import counted
from rowcall.run.pipeline import Pipeline
from rowcall.run.recipe import Recipe
from rowcall.store.types import Role

LOOK_AGAIN = 1.0
"""Seconds after which a store that holds nothing is looked at again."""


@click.command(epilog="Example: rowcall enqueue && rowcall work in one terminal, rowcall work in others")
@config_argument
@store_option("The store itself, which knows config and handler too; in the place of CONFIG.")
@click.option("--name", metavar="KIND", help="The batch job, where the store holds several.")
@trust_options
@setting_options
@processes_option
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
def work(config: Path, store: StoreLocation | None, name: str | None, **flags: Any) -> int:
    """Call the API for the records that rowcall enqueue, or a run elsewhere, brings in; no input is read.

    Any number of workers share the work, also on several machines where the store is in PostgreSQL. It ends when
    nothing is left and nobody brings more in. No export is written unless -o asks for it: rowcall export does.

    A worker's config and handler must be those that the records were brought in with. With --store it takes them from
    there. Whoever can write to the store can change them, so they may use only the variables that --env names, and run
    no command and no handler, unless --trust-store says so or you allow it once when you are asked. Keys come from this
    machine's environment, and from .env in this folder.
    """
    if store is None and name is not None:
        raise click.UsageError("--name goes with --store: a config names its batch job")
    named = click.get_current_context().get_parameter_source("config")
    if store is not None and named is ParameterSource.COMMANDLINE:
        raise click.UsageError("--store and CONFIG do not go together: the store knows the config")
    if store is not None and flags["output"]:
        raise click.UsageError("-o needs the input, and so the config: rowcall export -o FILE, where it is")
    with ExitStack() as stack:
        loaded = _from_store(stack, store, name, flags) if store else load_config(config, flags)
        settings = run.make_context("run", []).params | flags | {"role": Role.WORK}
        code = carry_out(_without_export(loaded), settings, _following(config, store, loaded.name).with_flags(flags))
        if flags["output"]:
            _export(loaded, flags["output"])
    return code


def _from_store(stack: ExitStack, place: StoreLocation, wanted: str | None, flags: dict[str, Any]) -> Config:
    """The config that a kind's records were brought in with.

    Raises:
        RowcallError: there is none, or it could not travel.
    """
    recipe = asyncio.run(_recipe(place, wanted, wait=flags["wait"], quiet=flags["quiet"]))
    trust = Trust(flags["trust_store"], flags["env"], asks=True)
    settings = flags["set"] | overrides(flags)
    return kept_config(stack, place, recipe, trust=trust, settings=settings, env_file=flags["env_file"])


async def _recipe(place: StoreLocation, wanted: str | None, *, wait: bool, quiet: bool) -> Recipe:
    """What the store says of the calls; who may ``wait`` is there before anything was brought in."""
    while True:
        try:
            return await kept_recipe(place, wanted)
        except (NoStore, NothingYet) as error:
            if not wait:
                raise
            if not quiet:
                click.echo(f"{error.message}; waiting for rowcall enqueue", err=True)
            quiet = True
        await asyncio.sleep(LOOK_AGAIN)


def _following(config: Path, store: StoreLocation | None, kind: str) -> Following:
    """The commands that come after it; a store that the environment names is named by it to them too."""
    if store is None:
        return Following.of(config, "rowcall work")
    if click.get_current_context().get_parameter_source("store") is ParameterSource.ENVIRONMENT:
        named = f"--name {shlex.quote(kind)}"
        return Following(f"rowcall work {named}", f"rowcall errors {named}", Located())
    located = Located(store=store)
    named = f"--store {shlex.quote(str(store))} --name {shlex.quote(kind)}"
    return Following(f"rowcall work {named}", f"rowcall errors {named}", located)


def _export(config: Config, path: Path) -> None:
    rows = asyncio.run(Pipeline(config).export(path))
    click.echo(f"{shown(path)}: {counted(rows, 'row')}", err=True)


def _without_export(config: Config) -> Config:
    return config.model_copy(update={"output": config.output.model_copy(update={"path": None})})

"""``rowcall set``: change the settings of live runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from rowcall.cli.shared.flags import store_options
from rowcall.cli.shared.job_address import JobAddress
from rowcall.cli.shared.job_lookup import find_store, read_job
from rowcall.config.live_settings import LIVE
from rowcall.model.errors import RowcallError
from rowcall.model.store_location import StoreLocation
from rowcall.progress import counted
from rowcall.store.open_at import open_store

DEFAULT = "default"
"""The value that removes an override, so that the config applies again."""


@click.command("set", epilog="Example: rowcall set concurrency=64 requests=500/min; rowcall set pause=true")
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE ...")
@click.option(
    "--keep",
    is_flag=True,
    help="Apply to later runs too, until the setting is set to default. Without it, only live runs change.",
)
@store_options
def set_(settings: tuple[str, ...], keep: bool, config: Path, store: StoreLocation | None, name: str | None) -> None:
    """Change settings of live runs from another terminal. All runs of the batch job follow within 2 s.

    The settings are concurrency=64, max_cost=20 or off, pause=true or false, requests=500/min (or "10/s, 10000/day", or
    off), and tokens=200k/min (or "input=200k/min, output=20k/min", or off). With the value default, the config applies
    again.
    """
    values = dict(map(_read_setting, settings))
    click.echo(asyncio.run(_set(JobAddress(config, store, name), values, keep=keep)), err=True)


def _read_setting(setting: str) -> tuple[str, str | None]:
    """Split and check ``NAME=VALUE``; the value is None for ``default``."""
    name, equals, value = (part.strip() for part in setting.partition("="))
    if not equals:
        raise RowcallError(f"{setting!r} is not of the form NAME=VALUE", remedy=f"NAME is one of: {', '.join(LIVE)}")
    if name not in LIVE:
        remedy = f"settings of a live run are: {', '.join(LIVE)}"
        raise RowcallError(f"{name!r} is not a setting of a live run", remedy=remedy)
    if value == DEFAULT:
        return name, None
    try:
        LIVE[name](value)
    except ValueError as error:
        raise RowcallError(f"{name} {error}") from None
    return name, value


async def _set(address: JobAddress, values: dict[str, str | None], *, keep: bool) -> str:
    async with read_job(address) as (reader, kind):
        live = len(await reader.live_runs(kind))
    if not live and not keep and any(value is not None for value in values.values()):
        remedy = "--keep applies it to the next runs; to make it permanent, put it into the config"
        raise RowcallError(f"{kind}: there is no live run to change", remedy=remedy)
    async with await open_store(find_store(address)[0]) as store:
        await store.set(kind, values, keep=keep)
    said = ", ".join(f"{name}={DEFAULT if value is None else value}" for name, value in values.items())
    followed = f"{counted(live, 'live run')} follow{'s' if live == 1 else ''} within 2 s" if live else "no run is live"
    return f"{kind}: {said}; {followed}" + ("; kept for later runs" if keep else "")

"""``rowcall set``: what live runs follow."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from rowcall.cli.shared.common import only_kind, store_location, store_options
from rowcall.config.live_settings import LIVE
from rowcall.model.errors import RowcallError
from rowcall.model.store_location import StoreLocation
from rowcall.progress import counted
from rowcall.store.open_at import open_reader, open_store

DEFAULT = "default"
"""The value that takes a setting away."""


@click.command("set", epilog="Example: rowcall set concurrency=64 requests=500/min; rowcall set pause=true")
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE ...")
@click.option("--keep", is_flag=True, help="For later runs too, until it is set to default; else for those alive now.")
@store_options
def set_(settings: tuple[str, ...], keep: bool, config: Path, store: StoreLocation | None, name: str | None) -> None:
    """Steer live runs from another terminal; all of the batch job follow within 2 s.

    concurrency=64, requests=500/min or "10/s, 10000/day" or off, tokens=200k/min or "input=200k/min, output=20k/min"
    or off, max_cost=20 or off, pause=true or false. The value default lets the config hold again.
    """
    values = _read(settings)
    place, named = store_location(config, store)
    click.echo(asyncio.run(_set(place, name or named, values, keep=keep)), err=True)


def _read(settings: Sequence[str]) -> dict[str, str | None]:
    """Settings by name, each checked.

    Raises:
        RowcallError: an unknown name, or a value that means nothing.
    """
    return dict(map(_read_one, settings))


def _read_one(setting: str) -> tuple[str, str | None]:
    name, equals, value = (part.strip() for part in setting.partition("="))
    if not equals or name not in LIVE:
        raise RowcallError(f"{setting!r} is no setting", remedy=f"NAME=VALUE, with one of: {', '.join(LIVE)}")
    if value == DEFAULT:
        return name, None
    try:
        LIVE[name](value)
    except ValueError as error:
        raise RowcallError(f"{name} {error}") from None
    return name, value


async def _set(place: StoreLocation, wanted: str | None, values: dict[str, str | None], *, keep: bool) -> str:
    async with await open_reader(place) as reader:
        kind = only_kind(await reader.kinds(), wanted, place)
        live = len(await reader.live_runs(kind))
    if not live and not keep and any(value is not None for value in values.values()):
        remedy = "--keep lets the next run follow it; for good it belongs in the config"
        raise RowcallError(f"{kind}: no run is alive that could follow", remedy=remedy)
    async with await open_store(place) as store:
        await store.set(kind, values, keep=keep)
    said = ", ".join(f"{name}={DEFAULT if value is None else value}" for name, value in values.items())
    followed = f"{counted(live, 'live run')} follow{'s' if live == 1 else ''} within 2 s" if live else "no run is alive"
    return f"{kind}: {said}; {followed}" + ("; kept for later runs" if keep else "")

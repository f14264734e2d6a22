"""``rowcall mock``: the fake API on a port."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import click

from rowcall.config import parse_duration, parse_share
from rowcall.mock import Faults, MockAPI, serve


def _read_by(parse: Callable[[Any], float]) -> Callable[[click.Context, click.Parameter, Any], float]:
    """A callback that reads an option as the config reads such values."""

    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> float:
        try:
            return parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return callback


_DURATION: dict[str, Any] = {"callback": _read_by(parse_duration), "metavar": "DURATION", "show_default": True}
_SHARE: dict[str, Any] = {"callback": _read_by(parse_share), "metavar": "SHARE", "show_default": True}


@click.command(epilog="Example: rowcall mock --port 8080 --errors 5% --latency 200ms")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 takes any free one.")
@click.option("--latency", default="50ms", **_DURATION, help="From request to answer.")
@click.option("--rate-limit", default="0.3%", **_SHARE, help="Share of 429 with Retry-After.")
@click.option("--retry-after", default="1s", **_DURATION, help="What such a 429 asks for.")
@click.option("--errors", default="1%", **_SHARE, help="Share of 500.")
@click.option("--resets", default="0%", **_SHARE, help="Share of connections reset.")
@click.option("--capacity", type=click.IntRange(1), help="Calls answered at once; more get 429.")
@click.option("--seed", type=int, default=0, help="Another seed, other faults.")
def mock(port: int, latency: float, capacity: int | None, **faults: Any) -> None:
    """A fake API on a port of this machine, OpenAI-shaped, that answers by reading the text; Ctrl+C ends it."""
    drawn = Faults(
        rate_limited=faults["rate_limit"],
        retry_after=faults["retry_after"],
        errors=faults["errors"],
        resets=faults["resets"],
        seed=faults["seed"],
    )
    api = MockAPI(port=port, latency=latency, faults=drawn, capacity=capacity, keep_calls=False)
    asyncio.run(serve(api, announce=_announce))


def _announce(api: MockAPI) -> None:
    click.echo(f'listening: [api] preset = "openai", base_url = "{api.url}"', err=True)

"""``rowcall mock``: serve the fake API on a port."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import click

from rowcall.config import parse_duration, parse_share
from rowcall.mock import Faults, MockAPI, serve


def _read_by(parse: Callable[[Any], float]) -> Callable[[click.Context, click.Parameter, Any], float]:
    """Return a callback that reads an option as the config reads the same value."""

    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> float:
        try:
            return parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return callback


_DURATION: dict[str, Any] = {"callback": _read_by(parse_duration), "metavar": "DURATION", "show_default": True}
_SHARE: dict[str, Any] = {"callback": _read_by(parse_share), "metavar": "SHARE", "show_default": True}


@click.command(epilog="Example: rowcall mock --port 8080 --errors 5% --latency 200ms")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0 picks a free port.")
@click.option("--latency", default="50ms", **_DURATION, help="Time from request to answer.")
@click.option("--rate-limit", default="0.3%", **_SHARE, help="Share of calls answered with 429 and Retry-After.")
@click.option("--retry-after", default="1s", **_DURATION, help="How long such a 429 asks to wait.")
@click.option("--errors", default="1%", **_SHARE, help="Share of calls answered with 500.")
@click.option("--resets", default="0%", **_SHARE, help="Share of calls whose connection is reset.")
@click.option(
    "--capacity", type=click.IntRange(1), metavar="N", help="At most N calls at a time; more are answered with 429."
)
@click.option("--seed", type=int, default=0, show_default=True, help="A different seed gives faults to other calls.")
def mock(port: int, latency: float, capacity: int | None, **faults: Any) -> None:
    """Serve a fake API on a port of this machine, in the shape of OpenAI's. Ctrl+C ends it.

    It answers whether the text of a request is positive, negative or neutral.
    """
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

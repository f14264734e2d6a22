"""``rowcall preview``: what would be sent, what it would take; with ``--send`` a sample of answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from rowcall.cli.setup.forecast import Foresight, Measured, changed_text, foresee
from rowcall.cli.setup.sample_calls import Sample, outcome_text, outcomes
from rowcall.cli.setup.shell_words import shell_word
from rowcall.cli.setup.shown_requests import Preview, ShownRequest
from rowcall.cli.shared.common import config_argument, config_options, load_config, setting_options
from rowcall.cli.shared.config_places import placed
from rowcall.cli.shared.hints import call_hint
from rowcall.config import Config
from rowcall.model.errors import Exit, RowcallError
from rowcall.model.job import Record
from rowcall.model.outcome import Outcome, Success
from rowcall.model.prices import usd
from rowcall.progress import clean, counted, short_number, short_time
from rowcall.run.open_input import open_input
from rowcall.sources.keys import compile_key
from rowcall.templates.check_columns import check_columns

_SHOWN_BODY = 4_000
"""Characters of a request's body that are shown."""


@click.command(epilog="Example: rowcall preview -n 1 --send shows one real answer; rowcall preview --curl | sh")
@config_argument
@setting_options
@config_options
@click.option("-n", "--limit", type=click.IntRange(1), default=3, show_default=True, metavar="N", help="N records.")
@click.option("--curl", is_flag=True, help="As commands for a shell, with $NAME in the place of a secret.")
@click.option("--send", is_flag=True, help="Send them, and show the answers; nothing is stored.")
def preview(config: Path, limit: int, curl: bool, send: bool, **flags: Any) -> int:
    """Show the requests of the first records, and how many tokens and how long all of them would take.

    Keys are never shown. Nothing is sent without --send, and nothing is stored: a run calls for these records again.
    """
    if curl and send:
        raise RowcallError(
            "--curl and --send do not go together", remedy="--curl shows commands, --send makes the calls"
        )
    loaded = load_config(config, flags)
    source = open_input(loaded)
    with placed(loaded):
        requests = None if loaded.handler else Preview(loaded)
        check_columns(requests.provider.trees if requests else (), source.columns())
    first: list[Record] = []
    foresight = foresee(loaded, source, requests, keep=(first, limit))
    if not first:
        raise RowcallError(f"{loaded.input.path}: holds no record")
    if requests:
        _print_requests(_shown(loaded, first, requests), curl=curl)
    elif not send:
        click.echo("the handler makes its requests while it runs; --send shows what it answers")
    if curl:
        return Exit.DONE
    measured = asyncio.run(_send(loaded, _samples(loaded, first))) if send else Measured()
    click.echo("\n".join(_expected(foresight, measured, loaded)))
    return Exit.SOME_FAILED if measured.failed else Exit.DONE


def _samples(config: Config, records: list[Record]) -> list[Sample]:
    key = compile_key(config.input.key)
    return [(key(record.data), record.data) for record in records]


def _shown(config: Config, records: list[Record], requests: Preview) -> Iterator[tuple[str, ShownRequest]]:
    for (key, data), record in zip(_samples(config, records), records, strict=True):
        yield f"{record.where}  key {key}", requests.show(key, data)


def _print_requests(shown: Iterator[tuple[str, ShownRequest]], *, curl: bool) -> None:
    for where, request in shown:
        if curl:
            click.echo(f"# {shell_word(clean(where))}\n{request.curl}\n")  # quoted: an interactive zsh runs comments
            continue
        body = _pretty(request.body)
        cut = body if len(body) <= _SHOWN_BODY else f"{body[:_SHOWN_BODY]}... ({len(body):,} characters)"
        head, *rest = ShownRequest(request.method, request.url, request.headers, "", "").lines()
        lines = [head, *rest, *map(clean, cut.splitlines())]
        click.echo("\n  ".join([clean(where), *lines]) + "\n")


def _pretty(body: str) -> str:
    """JSON with its parts on lines of their own; other text as it is."""
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except ValueError:
        return body


async def _send(config: Config, samples: list[Sample]) -> Measured:
    """Send a sample, and show each answer as it comes."""
    measured, number = Measured(), 0
    async for outcome in outcomes(config, samples):
        click.echo(f"{clean(samples[number][0])}: {outcome_text(outcome)}")
        if not isinstance(outcome, Success):
            click.echo(f"  {call_hint(outcome.reason)}")
        measured, number = _measured(measured, outcome), number + 1
    click.echo()
    return measured


def _measured(before: Measured, outcome: Outcome) -> Measured:
    failed = before.failed + (not isinstance(outcome, Success))
    return Measured(before.calls + 1, failed, before.seconds + (outcome.latency or 0.0), before.usage + outcome.usage)


def _expected(foresight: Foresight, measured: Measured, config: Config) -> Iterator[str]:
    """How many calls, and what they would take."""
    records = foresight.records
    done = f", {foresight.done:,} of them done" if foresight.done else ""
    yield counted(records, "record") + (" or more" if foresight.more else "") + done
    if changed := changed_text(config):
        yield changed
    calls = max(0, records - foresight.done)
    if not calls:
        return
    if config.input.dedupe:
        yield "records that send the same are called once, and counted here each: [input] dedupe"
    if each := foresight.tokens(measured):
        yield f"about {short_number(each)} tokens in for each call, {short_number(each * calls)} in all"
    if (cost := foresight.cost(measured)) is not None:
        assumed = foresight.assumption(measured)
        yield f"about {usd(round(cost))} for each call, {usd(round(cost * calls))} in all{assumed}"
    seconds, how = foresight.time(measured, calls, config)
    noun = "record" if (config.group.size or 1) > 1 else "call"
    yield f"about {short_time(seconds)} for {counted(calls, noun)}: {how}"

"""``rowcall preview``: the requests that would be sent, what they would take, and with ``--send`` some answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from rowcall.cli.setup.forecast import Forecast, SampleTotals, changed_text, make_forecast
from rowcall.cli.setup.request_preview import RequestPreview, ShownRequest
from rowcall.cli.setup.sample_calls import Sample, outcome_text, outcomes
from rowcall.cli.setup.shell_words import shell_word
from rowcall.cli.shared.failure_hints import call_hint
from rowcall.cli.shared.flags import config_argument, config_options, load_config, setting_options
from rowcall.cli.shared.problem_lines import with_config_lines
from rowcall.config import Config
from rowcall.model.errors import Exit, RowcallError
from rowcall.model.job import Record
from rowcall.model.outcome import Outcome, Success
from rowcall.model.prices import usd
from rowcall.progress import clean, counted, short_number, short_time
from rowcall.run.open_input import open_input
from rowcall.sources.keys import compile_key
from rowcall.templates.check_columns import check_columns

_BODY_SHOWN = 4_000
"""At most so many characters of a request's body are shown."""


@click.command(epilog="Example: rowcall preview -n 1 --send shows one real answer; rowcall preview --curl | sh")
@config_argument
@setting_options
@config_options
@click.option(
    "-n", "--limit", type=click.IntRange(1), default=3, show_default=True, metavar="N", help="Show N records."
)
@click.option("--curl", is_flag=True, help="Print curl commands, with $NAME in place of a secret.")
@click.option("--send", is_flag=True, help="Send these requests and show the answers. Nothing is stored.")
def preview(config: Path, limit: int, curl: bool, send: bool, **flags: Any) -> int:
    """Show the requests of the first records, and estimate the tokens, cost and time of a whole run.

    API keys are never shown. Nothing is sent without --send. Nothing is stored either, so that a run calls the API for
    these records again.
    """
    if curl and send:
        raise RowcallError(
            "--curl and --send do not go together", remedy="use --curl to print commands, or --send to make the calls"
        )
    loaded = load_config(config, flags)
    source = open_input(loaded)
    with with_config_lines(loaded):
        requests = None if loaded.handler else RequestPreview(loaded)
        check_columns(requests.provider.trees if requests else (), source.columns())
    forecast, first = make_forecast(loaded, source, requests, keep_first=limit)
    if not first:
        raise RowcallError(f"{loaded.input.path}: the input holds no records", remedy="check [input] path")
    if requests:
        _print_requests(_shown(loaded, first, requests), curl=curl)
    elif not send:
        click.echo("a handler makes its requests while it runs, so there is none to show; --send shows its answers")
    if curl:
        return Exit.DONE
    sample = asyncio.run(_send(loaded, _samples(loaded, first))) if send else SampleTotals()
    click.echo("\n".join(_forecast_lines(forecast, sample, loaded)))
    return Exit.SOME_FAILED if sample.failed else Exit.DONE


def _samples(config: Config, records: list[Record]) -> list[Sample]:
    key = compile_key(config.input.key)
    return [(key(record.data), record.data) for record in records]


def _shown(config: Config, records: list[Record], requests: RequestPreview) -> Iterator[tuple[str, ShownRequest]]:
    for (key, data), record in zip(_samples(config, records), records, strict=True):
        yield f"{record.where}  key {key}", requests.show(key, data)


def _print_requests(shown: Iterator[tuple[str, ShownRequest]], *, curl: bool) -> None:
    for where, request in shown:
        if curl:
            click.echo(f"# {shell_word(clean(where))}\n{request.curl}\n")  # quoted: an interactive zsh runs comments
            continue
        body = _pretty(request.body)
        cut = body if len(body) <= _BODY_SHOWN else f"{body[:_BODY_SHOWN]}... ({len(body):,} characters)"
        head, *rest = ShownRequest(request.method, request.url, request.headers, "", "").lines()
        lines = [head, *rest, *map(clean, cut.splitlines())]
        click.echo("\n  ".join([clean(where), *lines]) + "\n")


def _pretty(body: str) -> str:
    """Return JSON indented, other text as it is."""
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except ValueError:
        return body


async def _send(config: Config, samples: list[Sample]) -> SampleTotals:
    """Send the requests of a few records, and show each answer as it comes."""
    totals, number = SampleTotals(), 0
    async for outcome in outcomes(config, samples):
        click.echo(f"{clean(samples[number][0])}: {outcome_text(outcome)}")
        if not isinstance(outcome, Success):
            click.echo(f"  {call_hint(outcome.reason)}")
        totals, number = _add(totals, outcome), number + 1
    click.echo()
    return totals


def _add(totals: SampleTotals, outcome: Outcome) -> SampleTotals:
    failed = totals.failed + (not isinstance(outcome, Success))
    seconds = totals.seconds + (outcome.latency or 0.0)
    return SampleTotals(totals.calls + 1, failed, seconds, totals.usage + outcome.usage)


def _forecast_lines(forecast: Forecast, sample: SampleTotals, config: Config) -> Iterator[str]:
    """Yield how many calls a run would make, and what they would take."""
    records = forecast.records
    done = f", {forecast.done:,} of them done already" if forecast.done else ""
    yield counted(records, "record") + (" or more" if forecast.more else "") + done
    if changed := changed_text(config):
        yield changed
    calls = max(0, records - forecast.done)
    if not calls:
        return
    if config.input.dedupe:
        yield "this counts every record, although [input] dedupe calls the API once for records that send the same"
    if each := forecast.tokens(sample):
        yield f"about {short_number(each)} tokens in per call, {short_number(each * calls)} in all"
    if (cost := forecast.cost(sample)) is not None:
        yield f"about {usd(round(cost))} per call, {usd(round(cost * calls))} in all{forecast.assumption(sample)}"
    seconds, how = forecast.time(sample, calls, config)
    noun = "record" if (config.group.size or 1) > 1 else "call"
    yield f"about {short_time(seconds)} for {counted(calls, noun)}: {how}"

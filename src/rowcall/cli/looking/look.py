"""Verbs that look and change nothing: status, errors, show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rowcall.cli.looking.why import Standing, held_up_text, why
from rowcall.cli.shared.common import json_option, only_kind, print_json, store_location, store_options, trust_options
from rowcall.cli.shared.hints import hint_for
from rowcall.cli.shared.located_commands import Located
from rowcall.model.errors import RowcallError
from rowcall.model.job import Status
from rowcall.model.prices import dollars, nano, usd
from rowcall.model.store_location import StoreLocation
from rowcall.progress import clean, counted, latency_text, short_time
from rowcall.run.summary import AtWork, Summary, summarise
from rowcall.store.base import Reader
from rowcall.store.open_at import open_reader
from rowcall.store.types import JobRow, Try

if TYPE_CHECKING:  # it brings the whole wire along
    from rowcall.cli.setup.shown_requests import ShownRequest
    from rowcall.cli.shared.recipe_trust import Trust
    from rowcall.config import Config

_SHOWN_BODY = 2_000
"""Characters of a reply without an answer, or of a traceback, that are shown: the last ones."""
_SHOWN_LINES = 20
"""And lines of it."""
_SHOWN_WORKERS = 8
"""Processes at work that are named."""


@click.command(epilog="Example: rowcall status --json | jq .done")
@click.option("--watch", is_flag=True, help="Until the run ends; with --json one line for each change.")
@store_options
@json_option
def status(watch: bool, config: Path, store: StoreLocation | None, name: str | None, as_json: bool) -> None:
    """How a batch job stands, from any terminal, also while it runs elsewhere."""
    if watch:
        from rowcall.cli.looking.watch_status import follow

        asyncio.run(follow(*store_location(config, store), name, status_text, as_json=as_json))
        return
    summary = asyncio.run(_summary(config, store, name))
    if as_json:
        print_json(summary.model_dump(mode="json"))
    else:
        click.echo(status_text(summary))


async def _summary(config: Path, store: StoreLocation | None, name: str | None) -> Summary:
    place, kind = store_location(config, store)
    async with await open_reader(place) as reader:
        return await summarise(reader, only_kind(await reader.kinds(), name or kind, place))


def _state_text(s: Summary) -> str:
    if s.held_up:
        return held_up_text(s.held_up) if s.state == "paused" else f"{s.state}, {held_up_text(s.held_up)}"
    if s.stop_reason == "crashed":
        held = f"; the next run takes back the {s.running:,} records it had" if s.running else ""
        return f"{s.state}: the process of the last run died{held}"
    return f"{s.state} ({s.stop_reason})" if s.stop_reason and s.state == "stopped" else s.state


def status_text(s: Summary) -> str:
    """It as people read it."""
    ended = f"{s.done:,} done, {s.failed:,} failed, {s.cancelled:,} cancelled"
    lines = [
        f"{s.kind}: {_state_text(s)}",
        f"{s.total:,} records: {ended}, {s.pending:,} pending ({s.retrying:,} retrying), {s.running:,} running",
    ]
    if s.started_at:
        rate = f", {s.rate_per_s:.1f} done/s" if s.rate_per_s else ""
        lines.append(f"last run: {s.started_at}, {short_time(s.elapsed_s or 0)}{rate}{_latency_text(s)}")
    if s.in_flight is not None:
        lines.append(f"in flight: {s.in_flight:,}/{s.concurrency:,}")
    if s.at_work:
        lines.append(f"at work: {_workers_text(s.at_work)}")
    if s.tokens.input or s.tokens.output:
        lines.append(f"tokens: {s.tokens.input:,} in ({s.tokens.cached:,} cached), {s.tokens.output:,} out")
    if s.cost_usd is not None:
        lines.append(f"cost: {usd(nano(s.cost_usd))} in all runs")
    lines += [f"{e.count:,} failed: {e.reason}, such as {clean(e.sample_key)}" for e in s.errors]
    return "\n  ".join(lines)


def _workers_text(at_work: list[AtWork]) -> str:
    named = [f"process {each.pid} on {clean(str(each.host))}" for each in at_work[:_SHOWN_WORKERS]]
    more = len(at_work) - len(named)
    return ", ".join(named) + (f" and {more:,} more" if more else "")


def _latency_text(s: Summary) -> str:
    p50, p95 = s.latency_ms.p50, s.latency_ms.p95
    return "" if p50 is None or p95 is None else f", p50 {latency_text(p50 / 1000)}, p95 {latency_text(p95 / 1000)}"


@click.command(epilog="Example: rowcall errors, then rowcall retry http_500")
@store_options
@json_option
def errors(config: Path, store: StoreLocation | None, name: str | None, as_json: bool) -> None:
    """Failures by reason: how many, a key, the message, what to do."""
    failures, located = asyncio.run(_summary(config, store, name)).errors, Located(config, store)
    groups = [e.model_dump() | {"hint": located(hint_for(e.reason))} for e in failures]
    if as_json:
        print_json(groups)
        return
    for g in groups:
        click.echo(
            f"{g['count']:,}  {g['reason']}  such as {clean(g['sample_key'])}: {clean(g['message'])}\n      {g['hint']}"
        )
    if not groups:
        click.echo("nothing has failed", err=True)


@click.command(epilog="Example: rowcall show 1_1; rowcall show 1_1 --curl | sh")
@click.argument("key")
@click.option("--curl", is_flag=True, help="Its request as a command, with $NAME in the place of a secret.")
@store_options
@trust_options
@json_option
def show(
    key: str,
    curl: bool,
    config: Path,
    store: StoreLocation | None,
    name: str | None,
    trust_store: bool,
    env: tuple[str, ...],
    as_json: bool,
) -> None:
    """One record: its payload, its request as it would be sent now, every try, its answer, or why there is none."""
    record = asyncio.run(_record(key, config, store, name))
    from rowcall.cli.shared.recipe_trust import Trust

    request = _request(record, config, store, Trust(trust_store, env if curl else None))
    if curl:
        click.echo(_shown(request).curl)
    elif as_json:
        print_json(record | {"request": None if isinstance(request, RowcallError) else request.as_json()})
    else:
        click.echo(_record_text(record, request, Located(config, store)))


async def _record(key: str, config: Path, store: StoreLocation | None, name: str | None) -> dict[str, Any]:
    place, kind = store_location(config, store)
    async with await open_reader(place) as reader:
        kind = only_kind(await reader.kinds(), name or kind, place)
        job = await reader.job(kind, key)
        if job is None:
            raise RowcallError(f"{place}: no record with the key {key!r}", remedy="keys are written as in the input")
        return await _story(reader, job, Located(config, store))


def _request(
    record: dict[str, Any], config: Path, store: StoreLocation | None, trust: Trust
) -> ShownRequest | RowcallError:
    """The record's request, or why there is none."""
    if record["payload"] is None:
        return RowcallError("its stored input was pruned", remedy="rowcall run, where the input is, reads it again")
    from rowcall.cli.setup.shown_requests import Preview

    try:
        with ExitStack() as stack:
            return Preview(_config(stack, config, store, record["kind"], trust)).show(record["key"], record["payload"])
    except RowcallError as error:
        return error


def _config(stack: ExitStack, config: Path, store: StoreLocation | None, kind: str, trust: Trust) -> Config:
    """The config that was named, or the one that the store keeps."""
    from rowcall.cli.shared.stored_config import kept_config, kept_recipe
    from rowcall.config import load

    if store is None:
        return load(config)
    return kept_config(stack, store, asyncio.run(kept_recipe(store, kind)), trust=trust, settings={})


def _shown(request: ShownRequest | RowcallError) -> ShownRequest:
    if isinstance(request, RowcallError):
        raise request
    return request


async def _story(reader: Reader, job: JobRow, located: Located) -> dict[str, Any]:
    answer = (await reader.answers(job.kind, [job.key]))[job.key]
    payload, tries = await reader.payload(job.row), await reader.tries(job.row)
    standing = Standing(job, payload is not None, tries, await reader.live_runs(job.kind), datetime.now(UTC))
    return {
        "key": job.key,
        "kind": job.kind,
        "batch": job.batch,
        "status": job.status,
        "attempts": job.attempts,
        "payload": payload,
        "result": answer.value,
        "answer_of": await reader.donor(job.row) if job.status is Status.DONE else None,
        "error": job.error,
        "reason": job.reason,
        "cost_usd": dollars(job.cost),
        "tries": [_try(t) for t in tries],
        "why_not_done": why(standing, located),
    }


def _try(t: Try) -> dict[str, Any]:
    return {
        "at": t.at,
        "class": t.cls,
        "reason": t.reason,
        "message": t.message,
        "charged": t.charged,
        "http_status": t.status,
        "request_id": t.request_id,
        "latency_s": t.latency,
        "body": t.body,
        "cost_usd": dollars(t.cost),
    }


def _record_text(record: dict[str, Any], request: ShownRequest | RowcallError, located: Located) -> str:
    tried = counted(record["attempts"], "attempt")
    lines = [f"{clean(record['key'])}: {record['status']}, {tried}, batch {clean(record['batch'])}"]
    lines += [f"{clean(name)}: {clean(_text(value))}" for name, value in (record["payload"] or {}).items()]
    lines += _request_lines(request)
    lines += _try_lines(record["tries"])
    if record["cost_usd"] is not None:
        lines.append(f"cost of its last call: {usd(nano(record['cost_usd']))}")
    if record["status"] == "done":
        whose = f" (that of {clean(record['answer_of'])}, which sends the same)" if record["answer_of"] else ""
        lines.append(f"answer{whose}: {clean(_text(record['result']))}")
    if record["status"] not in ("done", "failed"):
        lines.append(f"not done: {clean(record['why_not_done'])}")
    if record["reason"]:
        said = f"{clean(record['reason'])}: {clean(record['error'] or '')}"
        if record["status"] == "failed":
            lines.append(f"failed: {said}\n    {located(hint_for(record['reason']))}")
        else:
            lines.append(f"its last failure: {said}")
    return "\n  ".join(lines)


def _try_lines(tries: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each try; below the last one the end of what came back, or of the traceback."""
    for number, t in enumerate(tries, 1):
        paid = "charged" if t["charged"] else "not charged"
        yield f"try {t['at']}: {clean(t['reason'])} ({paid}): {clean(t['message'])}"
        if number == len(tries) and t["body"]:
            yield from (f"  {clean(line)}" for line in t["body"][-_SHOWN_BODY:].splitlines()[-_SHOWN_LINES:])


def _text(value: Any) -> str:
    """Text as it is, other values as JSON."""
    from rowcall.model import json_values

    return value if isinstance(value, str) else json_values.dumps(value).decode()


def _request_lines(request: ShownRequest | RowcallError) -> list[str]:
    if isinstance(request, RowcallError):
        return [f"no request: {clean(request.message)}"]
    first, *rest = request.lines()
    return [f"request now: {first}", *(f"  {line}" for line in rest)]

"""``rowcall show``: everything about one record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rowcall.cli.inspecting.why_not_done import JobDetails, why_not_done
from rowcall.cli.shared.console import print_json
from rowcall.cli.shared.failure_hints import hint_for
from rowcall.cli.shared.flags import json_option, store_options, trust_options
from rowcall.cli.shared.job_address import JobAddress
from rowcall.cli.shared.job_lookup import read_job
from rowcall.model import json_values
from rowcall.model.errors import RowcallError
from rowcall.model.job import Status
from rowcall.model.prices import dollars, nano, usd
from rowcall.model.store_location import StoreLocation
from rowcall.progress import clean, counted
from rowcall.store.base import Reader
from rowcall.store.types import JobRow, Try

if TYPE_CHECKING:  # it imports the HTTP client and everything below it
    from rowcall.cli.setup.request_preview import ShownRequest
    from rowcall.cli.shared.recipe_trust import Trust
    from rowcall.config import Config

_BODY_SHOWN = 2_000
"""Characters shown of the end of a rejected reply, or of a traceback."""
_LINES_SHOWN = 20
"""Lines shown of it."""


@click.command(epilog="Example: rowcall show 1_1; rowcall show 1_1 --curl | sh")
@click.argument("key")
@click.option("--curl", is_flag=True, help="Print its request as a curl command, with $NAME in place of a secret.")
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
    """Show one record: its input, its request as it would be sent now, every failed try, and its answer.

    If it is not done, this also says why.
    """
    address = JobAddress(config, store, name)
    record = asyncio.run(_record(key, address))
    from rowcall.cli.shared.recipe_trust import Trust

    request = _request(record, address, Trust(trust_store, env if curl else None))
    if curl:
        if isinstance(request, RowcallError):
            raise request
        click.echo(request.curl)
    elif as_json:
        print_json(record | {"request": None if isinstance(request, RowcallError) else request.as_json()})
    else:
        click.echo(_record_text(record, request, address))


async def _record(key: str, address: JobAddress) -> dict[str, Any]:
    async with read_job(address) as (reader, kind):
        job = await reader.job(kind, key)
        if job is None:
            remedy = "write the key as it is in the input"
            raise RowcallError(f"{kind}: there is no record with the key {key!r}", remedy=remedy)
        return await _job_as_json(reader, job, address)


def _request(record: dict[str, Any], address: JobAddress, trust: Trust) -> ShownRequest | RowcallError:
    """Build the record's request, or return why it cannot be built."""
    if record["payload"] is None:
        return RowcallError(
            "its stored input was pruned", remedy="rowcall run reads it again, on the machine that has the input"
        )
    from rowcall.cli.setup.request_preview import RequestPreview

    try:
        with ExitStack() as stack:
            config = _config(stack, address, record["kind"], trust)
            return RequestPreview(config).show(record["key"], record["payload"])
    except RowcallError as error:
        return error


def _config(stack: ExitStack, address: JobAddress, kind: str, trust: Trust) -> Config:
    """Load the config that was named, or the one that the store holds."""
    from rowcall.cli.shared.stored_config import load_stored_config, read_recipe
    from rowcall.config import load

    if address.store is None:
        return load(address.config)
    recipe = asyncio.run(read_recipe(address.store, kind))
    return load_stored_config(stack, address.store, recipe, trust=trust, settings={})


async def _job_as_json(reader: Reader, job: JobRow, address: JobAddress) -> dict[str, Any]:
    answer = (await reader.answers(job.kind, [job.key]))[job.key]
    payload, tries = await reader.payload(job.row), await reader.tries(job.row)
    details = JobDetails(job, payload is not None, tries, await reader.live_runs(job.kind), datetime.now(UTC))
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
        "tries": [_try_as_json(each) for each in tries],
        "why_not_done": why_not_done(details, address),
    }


def _try_as_json(t: Try) -> dict[str, Any]:
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


def _record_text(record: dict[str, Any], request: ShownRequest | RowcallError, address: JobAddress) -> str:
    attempts = counted(record["attempts"], "attempt")
    lines = [f"{clean(record['key'])}: {record['status']}, {attempts}, batch {clean(record['batch'])}"]
    lines += [f"{clean(name)}: {clean(_text(value))}" for name, value in (record["payload"] or {}).items()]
    lines += _request_lines(request)
    lines += _try_lines(record["tries"])
    if record["cost_usd"] is not None:
        lines.append(f"cost of its last call: {usd(nano(record['cost_usd']))}")
    if record["status"] == "done":
        source = f" (from {clean(record['answer_of'])}, which sends the same)" if record["answer_of"] else ""
        lines.append(f"answer{source}: {clean(_text(record['result']))}")
    if record["status"] not in ("done", "failed"):
        lines.append(f"not done: {clean(record['why_not_done'])}")
    if record["reason"]:
        failure = f"{clean(record['reason'])}: {clean(record['error'] or '')}"
        if record["status"] == "failed":
            lines.append(f"failed: {failure}\n    {address.fill_in(hint_for(record['reason']))}")
        else:
            lines.append(f"its last failure: {failure}")
    return "\n  ".join(lines)


def _try_lines(tries: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each try; below the last one the end of the reply, or of the traceback."""
    for number, each in enumerate(tries, 1):
        charged = "charged" if each["charged"] else "not charged"
        yield f"try {each['at']}: {clean(each['reason'])} ({charged}): {clean(each['message'])}"
        if number == len(tries) and each["body"]:
            yield from (f"  {clean(line)}" for line in each["body"][-_BODY_SHOWN:].splitlines()[-_LINES_SHOWN:])


def _text(value: Any) -> str:
    """Return text as it is, other values as JSON."""
    return value if isinstance(value, str) else json_values.dumps(value).decode()


def _request_lines(request: ShownRequest | RowcallError) -> list[str]:
    if isinstance(request, RowcallError):
        return [f"its request cannot be shown: {clean(request.message)}"]
    first, *rest = request.lines()
    return [f"request now: {first}", *(f"  {line}" for line in rest)]

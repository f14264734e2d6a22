"""``rowcall status``: how a batch job stands."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from rowcall.cli.inspecting.why_not_done import held_up_text
from rowcall.cli.shared.console import print_json
from rowcall.cli.shared.flags import json_option, store_options
from rowcall.cli.shared.job_address import JobAddress
from rowcall.cli.shared.job_lookup import read_job
from rowcall.model.prices import nano, usd
from rowcall.model.store_location import StoreLocation
from rowcall.progress import clean, counted, latency_text, short_time
from rowcall.run.summary import Summary, summarise

_PROCESSES_SHOWN = 8
"""Processes at work that are named."""


@click.command(epilog="Example: rowcall status --json | jq .done")
@click.option("--watch", is_flag=True, help="Keep showing it until the run ends; with --json, one line per change.")
@store_options
@json_option
def status(watch: bool, config: Path, store: StoreLocation | None, name: str | None, as_json: bool) -> None:
    """Show how a batch job stands. Works from any terminal, also while the job runs elsewhere."""
    address = JobAddress(config, store, name)
    if watch:
        from rowcall.cli.inspecting.watch_status import watch_status

        asyncio.run(watch_status(address, status_text, as_json=as_json))
        return
    summary = asyncio.run(read_summary(address))
    if as_json:
        print_json(summary.model_dump(mode="json"))
    else:
        click.echo(status_text(summary))


async def read_summary(address: JobAddress) -> Summary:
    """Read how a batch job stands from its store."""
    async with read_job(address) as (reader, kind):
        return await summarise(reader, kind)


def status_text(s: Summary) -> str:
    """Return a summary as text for people."""
    ended = f"{s.done:,} done, {s.failed:,} failed, {s.cancelled:,} cancelled"
    open_ = f"{s.pending:,} pending ({s.retrying:,} retrying), {s.running:,} running"
    lines = [
        f"{s.kind}: {_state_text(s)}",
        f"{counted(s.total, 'record')}: {ended}, {open_}",
    ]
    if s.started_at:
        rate = f", {s.rate_per_s:.1f} done/s" if s.rate_per_s else ""
        p50, p95 = s.latency_ms.p50, s.latency_ms.p95
        latency = ""
        if p50 is not None and p95 is not None:
            latency = f", p50 {latency_text(p50 / 1000)}, p95 {latency_text(p95 / 1000)}"
        lines.append(f"last run: {s.started_at}, {short_time(s.elapsed_s or 0)}{rate}{latency}")
    if s.in_flight is not None:
        lines.append(f"in flight: {s.in_flight:,}/{s.concurrency:,}")
    if s.at_work:
        named = [f"process {each.pid} on {clean(str(each.host))}" for each in s.at_work[:_PROCESSES_SHOWN]]
        more = len(s.at_work) - len(named)
        lines.append(f"at work: {', '.join(named)}" + (f" and {more:,} more" if more else ""))
    if s.tokens.input or s.tokens.output:
        lines.append(f"tokens: {s.tokens.input:,} in ({s.tokens.cached:,} cached), {s.tokens.output:,} out")
    if s.cost_usd is not None:
        lines.append(f"cost: {usd(nano(s.cost_usd))} in all runs")
    lines += [f"{e.count:,} failed: {e.reason}, for example {clean(e.sample_key)}" for e in s.errors]
    return "\n  ".join(lines)


def _state_text(s: Summary) -> str:
    if s.held_up:
        return held_up_text(s.held_up) if s.state == "paused" else f"{s.state}, {held_up_text(s.held_up)}"
    if s.stop_reason == "crashed":
        released = (
            f"; the next run takes back the {counted(s.running, 'record')} it was working on" if s.running else ""
        )
        return f"{s.state}: the process of the last run died{released}"
    return f"{s.state} ({s.stop_reason})" if s.stop_reason and s.state == "stopped" else s.state

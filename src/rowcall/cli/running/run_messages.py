"""The texts that a run prints: at its start, when the input is read, on Ctrl+C, and at its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rowcall.cli.running.next_commands import NextCommands
from rowcall.cli.running.stop_advice import stop_advice
from rowcall.config import Config
from rowcall.engine.options import Report
from rowcall.model.events import InputRead
from rowcall.model.job import Status
from rowcall.model.prices import NANO, usd
from rowcall.model.run_stats import RunStats
from rowcall.progress import clean, counted, latency_text, short_time
from rowcall.store.types import Role


def start_text(config: Config, concurrency: int, processes: int = 1, role: Role = Role.RUN) -> str:
    """Return the first line of a run: what it reads or works on, and the limits that apply."""
    limits = [f"{concurrency} at a time"]
    if concurrency < config.pace.concurrency:
        limits[0] += f" instead of {config.pace.concurrency} because ulimit -n allows no more open files"
    if processes > 1:
        limits.append(f"{processes} processes")
    if (config.group.size or 1) > 1:
        limits.append(f"groups of {config.group.size}")
    limits += map(str, config.pace.requests or ())
    if config.pace.tokens:
        limits.append(str(config.pace.tokens))
    doing = f"working in {config.store_location}" if role is Role.WORK else f"reading {config.input.path}"
    return f"{config.name}: {doing} ({', '.join(limits)})"


def input_text(read: InputRead) -> str:
    """Return what was in the input: ``10,000 records: 6,576 new, 12 changed, 3,412 done before``."""
    words = {
        "new": read.new,
        "changed": read.changed,
        "with an earlier answer": read.restored,
        "done before": read.done,
        "failed before": read.failed,
        "still to do": read.waiting,
        "cancelled": read.cancelled,
        "repeated in the input": read.repeated,
    }
    said = ", ".join(f"{number:,} {word}" for word, number in words.items() if number)
    return counted(read.total, "record") + (f": {said}" if said else "")


def stopping_text(in_flight: int, grace: float) -> str:
    """Return what is printed on the first Ctrl+C."""
    if not in_flight:
        return "Stopping"
    them = "it" if in_flight == 1 else "them"
    waits = f"waiting up to {short_time(grace)}; press Ctrl+C again to drop {them}"
    return f"Stopping: {counted(in_flight, 'call')} in flight, {waits}"


INTERRUPTED = "Interrupted; nothing is lost. Resume with the same command"
"""Printed on the Ctrl+C that ends a command at once."""


def finish_text(report: Report, config: Config, commands: NextCommands) -> str:
    """Return the text at the end of a run: what it did, how the job stands, and the next command."""
    lines = [_headline(report), *stop_advice(report.ending, config, commands.address), _counts(report)]
    if report.tally.calls:
        lines.append(_calls(report.tally, report.elapsed))
    if report.tally.usage.input or report.tally.usage.output:
        usage = report.tally.usage
        given, made = f"{usage.input:,} in ({usage.cached:,} cached)", f"{usage.output:,} out"
        lines.append(f"tokens: {given}, {made} ({usage.reasoning:,} reasoning)")
    if report.counts.cost is not None:
        lines.append(f"cost: {usd(report.tally.usage.cost or 0)} this run, {usd(report.counts.cost)} in all")
    lines += _failures(report)
    if report.strays:
        lines.append(_strays(report.strays, report.role))
    if report.output:
        lines.append(f"{shown(report.output)}: {counted(report.rows, 'row')}")
    return "\n".join(["\n  ".join(lines), *_next(report, commands)])


def answers_kept_text(report: Report, commands: NextCommands) -> str:
    """Return why ``--if-changed redo`` called nothing again; empty if it called anything."""
    if report.tally.calls or not report.counts.of(Status.DONE) or report.ending.reason != "done":
        return ""
    again = commands.address.fill_in("rowcall retry --done")
    what = "No record was called again: all answers were made with this request, or kept for it."
    return f"{what} To call the API for them again: {again} --batch B"


def shown(path: Path) -> str:
    """Return a path as one would write it in the current folder."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _strays(number: int, role: Role) -> str:
    are, were = ("is", "was") if number == 1 else ("are", "were")
    why = ""
    if role is Role.WORK:
        why = f", or {'its' if number == 1 else 'their'} stored input was pruned (rowcall enqueue stores it again),"
    return f"{counted(number, 'record')} {are} no longer in the input{why} and {were} skipped"


def _headline(report: Report) -> str:
    ending, time = report.ending, short_time(report.elapsed)
    reason = clean(ending.message or ending.reason)
    match ending.reason:
        case "done":
            return f"{report.kind}: finished in {time}"
        case "limit":
            return f"{report.kind}: limit reached in {time}"
        case "interrupted" | "terminated" | "hung_up":
            return f"{report.kind}: paused after {time}"
        case _:
            return f"{report.kind}: stopped after {time}: {reason}"


def _counts(report: Report) -> str:
    counts = report.counts
    left = counts.of(Status.PENDING) + counts.of(Status.RUNNING)
    here = f"this run: {report.tally.done:,} done, {report.tally.failed:,} failed"
    whole = f"in all: {counts.of(Status.DONE):,} done, {counts.of(Status.FAILED):,} failed, {left:,} left"
    return f"{here}; {whole}"


def _calls(tally: RunStats, elapsed: float) -> str:
    by_status = ", ".join(f"{status}: {number:,}" for status, number in sorted(tally.by_status.items()))
    text = f"{counted(tally.calls, 'call')}, {tally.calls / max(elapsed, 1e-9):,.1f}/s"
    for share in (50, 95, 99):
        if (seconds := tally.latencies.percentile(share / 100)) is not None:
            text += f"  p{share} {latency_text(seconds)}"
    return f"{text}  ({by_status})"


def _next_max_cost(spent: int) -> str:
    """Return about twice what was spent, in dollars: a limit to resume with."""
    return f"{2 * spent / NANO:.2g}" if spent < NANO else f"{2 * spent / NANO:.0f}"


def _failures(report: Report) -> Iterator[str]:
    """Yield a line for each reason: how many failed, the key of one, and its message."""
    for group in report.errors[:_REASONS_SHOWN]:
        message = clean(group.message)
        cut = message if len(message) <= _MESSAGE_SHOWN else f"{message[:_MESSAGE_SHOWN]}..."
        yield f"{group.count:,} failed: {clean(group.reason)}, for example {clean(group.sample_key)}: {cut}"
    if more := len(report.errors) - _REASONS_SHOWN:
        yield from [f"... and {counted(more, 'more reason')}"] * (more > 0)


_REASONS_SHOWN = 5
_MESSAGE_SHOWN = 120


def _next(report: Report, commands: NextCommands) -> Iterator[str]:
    if report.counts.of(Status.FAILED):
        yield f"See what failed and what to do with: {commands.errors}"
    if report.left and report.ending.reason != "done":
        spend = _next_max_cost(report.counts.cost or 0) if report.ending.reason == "max_cost" else commands.max_cost
        yield f"Resume with: {commands.resume}{'' if spend is None else f' --max-cost {spend}'}"

"""The words at the start and at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rowcall.cli.running.stop_remedies import what_to_do
from rowcall.cli.shared.common import lasting
from rowcall.cli.shared.located_commands import Located
from rowcall.config import Config
from rowcall.engine.options import Report
from rowcall.model.events import InputRead
from rowcall.model.job import Status
from rowcall.model.prices import NANO, usd
from rowcall.model.run_stats import RunStats
from rowcall.progress import clean, counted, latency_text, short_time
from rowcall.store.types import Role


def start_text(config: Config, concurrency: int, processes: int = 1, role: Role = Role.RUN) -> str:
    """What is read or worked on, and the limits in force."""
    limits = [f"{concurrency} at a time"]
    if concurrency < config.pace.concurrency:
        limits[0] += f" instead of {config.pace.concurrency}: ulimit -n allows no more open files"
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
    """``10,000 records: 6,576 new, 12 changed, 3,412 done before``."""
    words = {
        "new": read.new,
        "changed": read.changed,
        "answered before": read.restored,
        "done before": read.done,
        "failed before": read.failed,
        "still to do": read.waiting,
        "cancelled": read.cancelled,
        "repeated in the input": read.repeated,
    }
    said = ", ".join(f"{number:,} {word}" for word, number in words.items() if number)
    return counted(read.total, "record") + (f": {said}" if said else "")


def stopping_text(in_flight: int, grace: float) -> str:
    """The answer to the first Ctrl+C."""
    if not in_flight:
        return "Stopping"
    waits = f"waiting up to {short_time(grace)}; Ctrl+C again drops {'it' if in_flight == 1 else 'them'}"
    return f"Stopping: {counted(in_flight, 'call')} in flight, {waits}"


LEFT = "Left; nothing is lost. Go on with the same command"
"""What is said to the Ctrl+C that ends a command at once."""


@dataclass(frozen=True, slots=True)
class Following:
    """The commands that may come after a run: to go on, to see what failed, and those of advice.

    Attributes:
        go_on: without the flag of what may be spent, which the end of the run may change.
        errors: what failed.
        located: where the config is.
        max_cost: dollars, where the command line said them.
    """

    go_on: str
    errors: str
    located: Located
    max_cost: float | None = None

    @classmethod
    def of(cls, config: Path, verb: str = "rowcall run") -> Following:
        """Those for a config, with its path as it was written, and as a shell reads it; ``verb`` goes on."""
        located = Located(config)
        return cls(located(verb), located("rowcall errors"), located)

    def with_flags(self, flags: dict[str, Any]) -> Following:
        """The same, where going on takes the flags of this run that hold for all of them."""
        return replace(self, go_on=" ".join([self.go_on, *lasting(flags)]), max_cost=flags["max_cost"])


def finish_text(report: Report, config: Config, commands: Following) -> str:
    """What this run did, how things stand, and the next command."""
    lines = [_headline(report), *what_to_do(report.ending, config, commands.located), _counts(report)]
    if report.tally.calls:
        lines.append(_calls(report.tally, report.elapsed))
    if report.tally.usage.input or report.tally.usage.output:
        lines.append(_tokens(report.tally))
    if report.counts.cost is not None:
        lines.append(f"cost: {usd(report.tally.usage.cost or 0)} this run, {usd(report.counts.cost)} in all")
    lines += _failures(report)
    if report.strays:
        lines.append(_strays(report.strays, report.role))
    if report.output:
        lines.append(f"{shown(report.output)}: {counted(report.rows, 'row')}")
    return "\n".join(["\n  ".join(lines), *_next(report, commands)])


def kept_text(report: Report, commands: Following) -> str:
    """Why a run that was to call done records again called none; empty where it called any."""
    if report.tally.calls or not report.counts.of(Status.DONE) or report.ending.reason != "done":
        return ""
    again = commands.located("rowcall retry --done")
    return f"The answers stand, made with this request or kept for it. To have them made again: {again} --batch B"


def shown(path: Path) -> str:
    """A path as a person here would write it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _strays(number: int, role: Role) -> str:
    are, were = ("is", "was") if number == 1 else ("are", "were")
    why = ""
    if role is Role.WORK:
        why = f", or {'its' if number == 1 else 'their'} stored input was pruned (rowcall enqueue brings it in again),"
    return f"{counted(number, 'record')} {are} no longer in the input{why} and {were} left alone"


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
    text = f"{counted(tally.calls, 'call')}, {tally.calls / max(elapsed, 1e-9):,.1f}/s"
    for share in (50, 95, 99):
        if (seconds := tally.latencies.percentile(share / 100)) is not None:
            text += f"  p{share} {latency_text(seconds)}"
    return f"{text}  ({_by_status(tally.by_status)})"


def _by_status(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{status}: {number:,}" for status, number in sorted(counts.items()))


def _tokens(tally: RunStats) -> str:
    usage = tally.usage
    return f"tokens: {usage.input:,} in ({usage.cached:,} cached), {usage.output:,} out ({usage.reasoning:,} reasoning)"


def _more(spent: int) -> str:
    """About twice what was spent, in dollars."""
    return f"{2 * spent / NANO:.2g}" if spent < NANO else f"{2 * spent / NANO:.0f}"


def _failures(report: Report) -> Iterator[str]:
    """A line for each reason: how many, the key of one, its message."""
    for group in report.errors[:_REASONS_SHOWN]:
        message = clean(group.message)
        cut = message if len(message) <= _MESSAGE_SHOWN else f"{message[:_MESSAGE_SHOWN]}..."
        yield f"{group.count:,} failed: {clean(group.reason)}, such as {clean(group.sample_key)}: {cut}"
    if more := len(report.errors) - _REASONS_SHOWN:
        yield from [f"... and {counted(more, 'more reason')}"] * (more > 0)


_REASONS_SHOWN = 5
_MESSAGE_SHOWN = 120


def _next(report: Report, commands: Following) -> Iterator[str]:
    if report.counts.of(Status.FAILED):
        yield f"What failed and what to do: {commands.errors}"
    if report.left and report.ending.reason != "done":
        spend = _more(report.counts.cost or 0) if report.ending.reason == "max_cost" else commands.max_cost
        yield f"Go on with: {commands.go_on}{'' if spend is None else f' --max-cost {spend}'}"

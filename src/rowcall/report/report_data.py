"""Reads from the store what the report shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from rowcall.model.errors import RowcallError
from rowcall.run.summary import Summary, summarise
from rowcall.store.base import Reader
from rowcall.store.call_history import History, Span
from rowcall.store.types import RunRow

MOST_SLICES = 80
"""The most slices of time in a chart."""
_WIDTHS = (0.25, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
_QUIET_AT_LEAST = 3.0
"""Seconds without the end of a call from which the report lists them."""
_QUIET_TIMES = 3
"""And at least so many times the p95 latency of the last run."""


@dataclass(frozen=True, slots=True)
class ReportData:
    """The contents of the report.

    Attributes:
        summary: the state of the whole kind.
        runs: the runs shown, oldest first.
        earlier: the number of earlier runs, which are not shown.
        span: the time that the charts cover, from the start of the first run to the end of the last one.
        history: what happened to the calls in that time.
        made_at: when it was read.
    """

    summary: Summary
    runs: tuple[RunRow, ...]
    earlier: int
    span: Span
    history: History
    made_at: datetime


async def read_report(reader: Reader, kind: str, *, all_runs: bool = False, now: datetime | None = None) -> ReportData:
    """Read the data of the last run that made calls, or of all runs.

    Raises:
        RowcallError: there has been no run yet.
    """
    made_at = now or datetime.now(UTC)
    runs = await reader.runs(kind)
    if not runs:
        raise RowcallError(f"{kind}: there has been no run yet", remedy="start one with: rowcall run")
    shown = (
        runs if all_runs else [next((run for run in reversed(runs) if run.alive or run.totals.get("calls")), runs[-1])]
    )
    summary = await summarise(reader, kind)
    span = _span(shown, made_at)
    quiet = max(_QUIET_AT_LEAST, _QUIET_TIMES * (summary.latency_ms.p95 or 0.0) / 1000)
    history = _within_runs(await reader.history(kind, span, quiet), shown)
    return ReportData(summary, tuple(shown), 0 if all_runs else runs.index(shown[0]), span, history, made_at)


def _span(runs: list[RunRow], now: datetime) -> Span:
    end = runs[-1].ended_at or stamp(now)
    since, until = moment(runs[0].started_at), moment(end)
    seconds = max(1.0, (until - since).total_seconds())
    width = next((width for width in _WIDTHS if seconds / width <= MOST_SLICES), seconds / MOST_SLICES)
    return Span(stamp(since), stamp(max(until, since + timedelta(seconds=1))), float(width))


def _within_runs(history: History, runs: list[RunRow]) -> History:
    """Remove the quiet periods that contain the end of a run, because no run was at work then."""
    ends = [run.ended_at for run in runs[:-1] if run.ended_at]
    quiet = tuple(q for q in history.quiet if not any(q.since <= end < q.until for end in ends))
    return replace(history, quiet=quiet)


def moment(text: str) -> datetime:
    """Parse a time as the store writes it."""
    return datetime.fromisoformat(text)


def stamp(when: datetime) -> str:
    """Format a time as the store writes it: ISO-8601 UTC with milliseconds."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

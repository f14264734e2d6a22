"""What the page shows, read from the store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from rowcall.model.errors import RowcallError
from rowcall.run.summary import Summary, summarise
from rowcall.store.base import Reader
from rowcall.store.call_history import History, Span
from rowcall.store.types import RunRow

MOST_SLICES = 80
"""Slices of time that a picture has, at most."""
_WIDTHS = (0.25, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
_QUIET_AT_LEAST = 3.0
"""Seconds without the end of a call that are worth naming."""
_QUIET_TIMES = 3
"""And so many times as long as 95 in 100 calls took in the last run."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All of it: how the kind stands, the runs shown, how calls went in them, and when it was read.

    Attributes:
        summary: the kind as a whole.
        runs: the runs shown, oldest first.
        earlier: how many runs there were before.
        span: the time of the pictures, from the begin of the first run to the end of the last one.
    """

    summary: Summary
    runs: tuple[RunRow, ...]
    earlier: int
    span: Span
    history: History
    made_at: datetime


async def gather(reader: Reader, kind: str, *, all_runs: bool = False, now: datetime | None = None) -> Facts:
    """Read what the page shows: the last run that made calls, or all runs.

    Raises:
        RowcallError: there was no run yet.
    """
    made_at = now or datetime.now(UTC)
    runs = await reader.runs(kind)
    if not runs:
        raise RowcallError(f"{kind}: there was no run yet", remedy="rowcall run makes one")
    shown = runs if all_runs else [_worth_showing(runs)]
    summary = await summarise(reader, kind)
    span = _span(shown, made_at)
    quiet = max(_QUIET_AT_LEAST, _QUIET_TIMES * (summary.latency_ms.p95 or 0.0) / 1000)
    history = _within_runs(await reader.history(kind, span, quiet), shown)
    return Facts(summary, tuple(shown), 0 if all_runs else runs.index(shown[0]), span, history, made_at)


def _worth_showing(runs: list[RunRow]) -> RunRow:
    """The newest run that made calls or is still at it; else the newest."""
    return next((run for run in reversed(runs) if run.alive or run.totals.get("calls")), runs[-1])


def _span(runs: list[RunRow], now: datetime) -> Span:
    end = runs[-1].ended_at or stamp(now)
    since, until = moment(runs[0].started_at), moment(end)
    seconds = max(1.0, (until - since).total_seconds())
    width = next((width for width in _WIDTHS if seconds / width <= MOST_SLICES), seconds / MOST_SLICES)
    return Span(stamp(since), stamp(max(until, since + timedelta(seconds=1))), float(width))


def _within_runs(history: History, runs: list[RunRow]) -> History:
    """Without the stretches in which no run was under way."""
    ends = [run.ended_at for run in runs[:-1] if run.ended_at]
    quiet = tuple(q for q in history.quiet if not any(q.since <= end < q.until for end in ends))
    return replace(history, quiet=quiet)


def moment(text: str) -> datetime:
    """A time of the store."""
    return datetime.fromisoformat(text)


def stamp(when: datetime) -> str:
    """A time as the store writes it."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

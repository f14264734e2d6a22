"""What the display shows, as facts: one value, made from a pipeline at work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING

from rowcall.model.outcome import Usage
from rowcall.progress.event_counts import EventCounts
from rowcall.progress.number_text import clean, rate_text, short_time

if TYPE_CHECKING:  # verbs that only look need no wire
    from rowcall.run.pipeline import Pipeline

SLOW_AT_LEAST = 10.0
"""Seconds: no call is called slow before."""
SLOW_TIMES = 3
"""And none before it takes so many times as long as 95 in 100 do."""
SLOW_SHOWN = 3
"""Slow calls that are named."""
PACED_FROM = 0.02
"""Seconds that the pace holds the next call back before it is said."""


@dataclass(frozen=True, slots=True)
class View:
    """How a run stands.

    Attributes:
        total: records to be ended by this run, those done before among them; with a limit, the limit.
        done, failed: of these; of this run alone where there is a limit.
        in_flight, slots: calls under way, and the most there may be now.
        waiting: records that were not called yet.
        retrying: records that wait for another try.
        reading: the input has not been read to its end, so that ``total`` still grows.
        speed: records that ended, a second, in the last half minute.
        left: seconds until the end at that speed; None while nobody knows.
        p50, p95: latencies in seconds.
        usage: tokens and cost of this run.
        expected: cost of this run at its end, in nano-dollars; None while nobody knows.
        held_up: what holds the run up, and until when; empty where nothing does.
        slow: keys of calls that take long, and their age in seconds, oldest first.
    """

    total: int
    done: int
    failed: int
    in_flight: int
    slots: int
    waiting: int
    retrying: int
    reading: bool
    speed: float
    left: float | None
    p50: float | None
    p95: float | None
    usage: Usage = field(default_factory=Usage)
    expected: int | None = None
    held_up: str = ""
    slow: tuple[tuple[str, float], ...] = ()

    @property
    def ended(self) -> int:
        """Done or failed."""
        return self.done + self.failed

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return min(1.0, self.ended / self.total) if self.total else 0.0


def view_of(pipeline: Pipeline, following: EventCounts, speed: float, limit: int | None = None) -> View:
    """A look at a pipeline.

    Args:
        pipeline: at work.
        following: a listener of its events.
        speed: records that ended, a second.
        limit: most records of this run; None: all.
    """
    total, done, failed = _extent(pipeline, limit)
    rest = total - done - failed
    retrying = min(len(following.retrying), rest)
    tally = pipeline.tally
    return View(
        total=total,
        done=done,
        failed=failed,
        in_flight=pipeline.in_flight,
        slots=pipeline.slots,
        waiting=max(0, rest - pipeline.in_flight - retrying),
        retrying=retrying,
        reading=pipeline.reading,
        speed=speed,
        left=rest / speed if speed > 0 and _foreseeable(pipeline, limit) else None,
        p50=tally.latencies.percentile(0.5),
        p95=tally.latencies.percentile(0.95),
        usage=tally.usage,
        expected=_expected(pipeline, rest, limit),
        held_up=next(_held_up(pipeline, following), ""),
        slow=_slow(following, tally.latencies.percentile(0.95)),
    )


def _foreseeable(pipeline: Pipeline, limit: int | None) -> bool:
    """Whether the speed so far says when the end comes."""
    held_up = pipeline.held_up
    return (held_up is None or held_up.by == "rate limit") and _countable(pipeline, limit)


def _countable(pipeline: Pipeline, limit: int | None) -> bool:
    return limit is not None or not pipeline.reading


def _expected(pipeline: Pipeline, rest: int, limit: int | None) -> int | None:
    """What the run costs in the end, where the records left cost as much as those that ended in it."""
    ended, cost = pipeline.tally.done + pipeline.tally.failed, pipeline.tally.usage.cost
    if not ended or cost is None or not _countable(pipeline, limit):
        return None
    return cost + cost * rest // ended


def _extent(pipeline: Pipeline, limit: int | None) -> tuple[int, int, int]:
    """Total, done and failed: of the input without what was cancelled, or of the limit."""
    total, done, failed = pipeline.progress
    total = max(done + failed, total - pipeline.enqueued.cancelled)
    here = pipeline.tally.done + pipeline.tally.failed
    if limit is None:
        return total, done, failed
    most = limit if pipeline.reading else min(limit, total - done - failed + here)
    return max(here, most), pipeline.tally.done, pipeline.tally.failed


def _held_up(pipeline: Pipeline, following: EventCounts) -> Iterator[str]:
    """What holds the run up, the gravest first."""
    if following.stopping:
        yield f"stopping: waiting for calls in flight, up to {short_time(pipeline.config.stop.grace)}"
    if outage := pipeline.outage:
        age, probe = short_time(monotonic() - outage.since), _probe(outage.probe_at)
        yield f"{outage_word(outage.cause.message)} for {age}, {probe}; nothing lost: {clean(outage.cause.message)}"
    if pipeline.paused:
        yield "paused by hand; rowcall set pause=false goes on"
        return
    if resting := pipeline.resting_for:
        until = (datetime.now().astimezone() + timedelta(seconds=resting)).strftime("%H:%M:%S")
        yield f"resting until {until}, as the API asked: {clean(following.resting)}"
    if following.failing:
        yield f"nothing has succeeded yet: {clean(following.failing)}"
    if pipeline.first_alone:
        yield "the first call goes alone; the others follow once it is answered, or after 5s"
    yield from _paced(pipeline)
    if following.slowed and pipeline.slots < pipeline.concurrency:
        yield f"slowed to {pipeline.slots} at a time: {clean(following.slowed)}"


def outage_word(cause: str) -> str:
    """How an outage is called: an API that answers with errors is reached, and yet of no use."""
    return "API down" if cause.startswith("HTTP ") else "offline"


def _paced(pipeline: Pipeline) -> Iterator[str]:
    if spent := pipeline.spent_for:
        until = (datetime.now().astimezone() + timedelta(seconds=spent)).strftime("%H:%M:%S")
        yield f"nothing is left of the API's limit until {until}"
    if pipeline.api_wait > PACED_FROM:
        yield "paced by what the API allows"
    if pipeline.rate_wait > PACED_FROM:
        yield f"paced by the limit: {pipeline.limits}"


def _probe(probe_at: float | None) -> str:
    return "trying now" if probe_at is None else f"next try in {max(0, probe_at - monotonic()):.0f}s"


def _slow(following: EventCounts, p95: float | None) -> tuple[tuple[str, float], ...]:
    """The oldest calls, where they take much longer than others did; ``calls`` is in the order of their begin."""
    long, now = max(SLOW_AT_LEAST, SLOW_TIMES * (p95 or 0.0)), monotonic()
    oldest = list(zip(range(SLOW_SHOWN), following.calls.items(), strict=False))
    return tuple((key, now - began) for _, (key, began) in oldest if now - began > long)


def share_text(view: View) -> str:
    """``63%  6,310/10,000``: never 100 % before the end."""
    return f"{int(100 * view.share)}%  {view.ended:,}/{view.total:,}" if view.total else "reading"


def plain_line(view: View) -> str:
    """All of it on one line, for a log."""
    parts = [
        share_text(view),
        f"done {view.done:,}",
        f"failed {view.failed:,}",
        f"in flight {view.in_flight}/{view.slots}",
    ]
    parts += [f"retrying {view.retrying:,}"] * bool(view.retrying)
    parts += [rate_text(view.speed)] * (view.speed > 0)
    parts += [f"{short_time(view.left)} left"] if view.left is not None else []
    parts += [view.held_up] * bool(view.held_up)
    return "  ".join(parts)

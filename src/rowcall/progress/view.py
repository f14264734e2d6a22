"""What the display shows, as plain facts: one value, made from a pipeline at work."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING

from rowcall.calls.door import DoorAnswer, Reason
from rowcall.engine.live_view import LiveView
from rowcall.model.outcome import Usage
from rowcall.model.run_stats import RunStats
from rowcall.progress.event_counts import EventCounts
from rowcall.progress.number_text import clean, rate_text, short_time

if TYPE_CHECKING:  # verbs that only look need no wire
    from rowcall.run.pipeline import Pipeline

SLOW_AT_LEAST = 10.0
"""Seconds that a call takes at least before it is called slow."""
SLOW_TIMES = 3
"""And at least this many times as long as 95 of 100 calls take."""
SLOW_SHOWN = 3
"""Slow calls that are named, at most."""
PACED_FROM = 0.02
"""Seconds of waiting for a limit from which on the display says so."""


@dataclass(frozen=True, slots=True)
class View:
    """How a run stands.

    Attributes:
        total: records of the input, including those done before; with a limit, the limit.
        done, failed: of these; with a limit, of this run alone.
        in_flight, slots: calls in flight, and how many there may be now.
        waiting: records that were not called yet.
        retrying: records that wait for another try.
        reading: the input is still being read, so that ``total`` grows.
        speed: records that ended per second, over the last half minute.
        left: seconds until the end at that speed; None where it cannot be told.
        p50, p95: latencies in seconds.
        usage: tokens and cost of this run.
        expected: cost of this run at its end, in nano-dollars; None where it cannot be told.
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
        """The share of records that have ended, from 0 to 1."""
        return min(1.0, self.ended / self.total) if self.total else 0.0


def view_of(pipeline: Pipeline, following: EventCounts, speed: float, limit: int | None = None) -> View:
    """Return how a pipeline stands now.

    Args:
        pipeline: at work.
        following: a listener of its events.
        speed: records that end per second.
        limit: records of this run, at most; None: all.
    """
    live, tally = pipeline.view, pipeline.tally
    total, done, failed = _extent(live, tally, limit)
    rest = total - done - failed
    retrying = min(len(following.retrying), rest)
    countable = limit is not None or not live.reading
    foreseeable = countable and (live.held_up is None or live.held_up.by == "rate limit")
    return View(
        total=total,
        done=done,
        failed=failed,
        in_flight=live.in_flight,
        slots=live.slots,
        waiting=max(0, rest - live.in_flight - retrying),
        retrying=retrying,
        reading=live.reading,
        speed=speed,
        left=rest / speed if speed > 0 and foreseeable else None,
        p50=tally.latencies.percentile(0.5),
        p95=tally.latencies.percentile(0.95),
        usage=tally.usage,
        expected=_expected(tally, rest) if countable else None,
        held_up=_held_up(live, following, pipeline.config.stop.grace),
        slow=_slow(following, tally.latencies.percentile(0.95)),
    )


def _expected(tally: RunStats, rest: int) -> int | None:
    """The cost of the run at its end, if the records left cost as much as those that ended in it."""
    ended, cost = tally.done + tally.failed, tally.usage.cost
    return None if not ended or cost is None else cost + cost * rest // ended


def _extent(live: LiveView, tally: RunStats, limit: int | None) -> tuple[int, int, int]:
    """Total, done and failed: of the input without cancelled records, or of the limit."""
    total = max(live.done + live.failed, live.total - live.enqueued.cancelled)
    here = tally.done + tally.failed
    if limit is None:
        return total, live.done, live.failed
    most = limit if live.reading else min(limit, total - live.done - live.failed + here)
    return max(here, most), tally.done, tally.failed


def _held_up(live: LiveView, following: EventCounts, grace: float) -> str:
    """What holds the run up: what the events tell of its end and its beginning, and else the door's reason."""
    if following.stopping:
        return f"stopping: waiting for calls in flight, up to {short_time(grace)}"
    reason = live.answer.reason
    if following.failing and reason not in _BEFORE_FAILING:
        return f"nothing has succeeded yet: {clean(following.failing)}"
    if said := _reason_text(live.answer):
        return said
    if following.slowed and live.slots < live.concurrency:
        return f"slowed to {live.slots} at a time: {clean(following.slowed)}"
    return ""


_BEFORE_FAILING = (Reason.PAUSED, Reason.OFFLINE, Reason.RESTING)
"""Reasons that are said even if nothing has succeeded yet."""


def _reason_text(answer: DoorAnswer) -> str:
    now = monotonic()
    match answer.reason:
        case Reason.PAUSED:
            return "paused by hand. Resume with: rowcall set pause=false"
        case Reason.OFFLINE:
            probe = "trying now" if answer.at == math.inf else f"next try in {max(0, answer.at - now):.0f}s"
            age, cause = short_time(now - (answer.since or now)), clean(answer.cause)
            return f"{outage_word(answer.cause)} for {age}, {probe}; nothing lost: {cause}"
        case Reason.RESTING:
            return f"resting until {_time_of_day(answer.at - now)}, as the API asked: {clean(answer.cause)}"
        case Reason.FIRST_CALL:
            return "the first call goes alone; the others follow once it is answered, or after 5s"
        case _:
            return _pace_text(answer) if answer.at - now > PACED_FROM else ""


def _pace_text(answer: DoorAnswer) -> str:
    match answer.reason:
        case Reason.API_USED_UP:
            return f"nothing is left of the API's limit until {_time_of_day(answer.at - monotonic())}"
        case Reason.API_LIMIT:
            return "paced by what the API allows"
        case Reason.RATE_LIMIT:
            return f"paced by the limit: {answer.cause}"
        case _:
            return ""


def outage_word(cause: str) -> str:
    """Return the word for an outage: an API that answers with errors is down, one that does not answer is offline."""
    return "API down" if cause.startswith("HTTP ") else "offline"


def _time_of_day(seconds: float) -> str:
    return (datetime.now().astimezone() + timedelta(seconds=seconds)).strftime("%H:%M:%S")


def _slow(following: EventCounts, p95: float | None) -> tuple[tuple[str, float], ...]:
    """The oldest calls, where they take much longer than others did. ``following.calls`` is in order of age."""
    long, now = max(SLOW_AT_LEAST, SLOW_TIMES * (p95 or 0.0)), monotonic()
    oldest = list(zip(range(SLOW_SHOWN), following.calls.items(), strict=False))
    return tuple((key, now - began) for _, (key, began) in oldest if now - began > long)


def share_text(view: View) -> str:
    """Return ``63%  6,310/10,000``; 100 % is never shown before the end."""
    return f"{int(100 * view.share)}%  {view.ended:,}/{view.total:,}" if view.total else "reading"


def plain_line(view: View) -> str:
    """Return a view as one line, for a log."""
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

"""How a run stands at one moment: one frozen value for the display, the messages and the status in the store."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rowcall.calls.door import Door, DoorAnswer, Reason
from rowcall.store.types import Enqueued

WORTH_SAYING = 1.0
"""Seconds of waiting for a rate limit from which on it holds a run up."""


@dataclass(frozen=True, slots=True)
class Delay:
    """What keeps calls from leaving, as the status shows it.

    Attributes:
        by: ``paused``, ``offline``, ``resting`` (as the API asked) or ``rate limit`` (as the config says).
        cause: one line; empty where there is nothing to add.
        since: when it began, ISO-8601 UTC; None where that is not known.
        until: when the next call or probe leaves; None where that is not known.
    """

    by: str
    cause: str = ""
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class LiveView:
    """How a run stands.

    Attributes:
        concurrency: calls in flight that the run allows, all its processes counted.
        slots: calls that may be in flight now; fewer where the API takes no more.
        in_flight: calls in flight.
        total, done, failed: records of the input so far. Where this process reads no input: of the kind, whoever works
            on it. ``done`` and ``failed`` never exceed ``total``.
        ended: records that were done or failed in this run.
        enqueued: what became of the input so far.
        reading: more records may come.
        answer: whether a call may leave now, and if not, why.
        held_up: the same as the status shows it; None where calls leave.
    """

    concurrency: int
    slots: int
    in_flight: int = 0
    total: int = 0
    done: int = 0
    failed: int = 0
    ended: int = 0
    enqueued: Enqueued = field(default_factory=Enqueued)
    reading: bool = True
    answer: DoorAnswer = field(default_factory=lambda: DoorAnswer(1, 0.0))
    held_up: Delay | None = None


def held_up(door: Door, answer: DoorAnswer, now: float) -> Delay | None:
    """Return what holds a run up, by the door's answer at that monotonic time."""
    match answer.reason:
        case Reason.PAUSED:
            return Delay("paused")
        case Reason.OFFLINE:
            since = None if answer.since is None else moment(answer.since - now)
            until = None if answer.at == math.inf else moment(answer.at - now)
            return Delay("offline", answer.cause, since, until)
        case Reason.RESTING:
            return Delay("resting", answer.cause, until=moment(answer.at - now))
        case Reason.STOPPING:
            return None
        case _:
            wait = door.limits.free_at - now
            return Delay("rate limit", until=moment(wait)) if wait > WORTH_SAYING else None


def moment(seconds: float) -> str:
    """Return the time of day in so many seconds, ISO-8601 UTC with milliseconds."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def view_before(concurrency: int) -> LiveView:
    """Return how a run stands before it has begun."""
    return LiveView(concurrency, concurrency)

"""The state of a batch job as one object: for the text on the terminal, for ``--json`` and for its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

from rowcall.model.job import Status
from rowcall.model.prices import dollars
from rowcall.store.base import Reader
from rowcall.store.types import Counts, ErrorGroup, Role, RunRow


class _JsonPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Latency(_JsonPart):
    """Percentiles of the latency of answered calls in the last run, in milliseconds; null without answered calls."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class Tokens(_JsonPart):
    """Tokens of all calls ever made for the kind, including failed calls."""

    input: int
    cached: int
    output: int
    reasoning: int


class ErrorLine(_JsonPart):
    """The failed records that share one reason."""

    reason: str
    count: int
    sample_key: str
    message: str


class HeldUp(_JsonPart):
    """What keeps the calls of a live run from leaving. Times are ISO-8601 UTC, null if they are not known."""

    by: Literal["paused", "offline", "resting", "rate limit"]
    cause: str
    since: str | None
    until: str | None


class AtWork(_JsonPart):
    """A live run: its role and its process; null if the process has not reported it."""

    role: Role
    host: str | None
    pid: int | None
    started_at: str
    in_flight: int | None
    concurrency: int | None


class _Records(_JsonPart):
    """The state of the kind and the counts of its records."""

    version: Literal[1] = 1
    kind: str
    state: Literal["running", "paused", "stopped", "done"]
    stop_reason: str | None
    total: int
    pending: int
    running: int
    done: int
    failed: int
    cancelled: int
    retrying: int
    attempts: int


class _LastRun(_JsonPart):
    """The figures of the last run, with the tokens, the cost and the errors of the whole kind."""

    rate_per_s: float | None
    latency_ms: Latency
    tokens: Tokens
    cost_usd: float | None
    errors: list[ErrorLine]
    by_status: dict[str, int]
    started_at: str | None
    elapsed_s: float | None

    @classmethod
    def of_run(
        cls, run: RunRow | None, counts: Counts, errors: Sequence[ErrorGroup], live_rate: float | None, *, live: bool
    ) -> Self:
        """Read the figures from a run; with live runs, the rate is what they report."""
        totals, elapsed = (run.totals, _elapsed(run)) if run else ({}, None)
        seconds: Mapping[str, float | None] = totals.get("latency_s", {})
        mean_rate = round(totals.get("done", 0) / elapsed, 3) if elapsed and totals else None
        return cls(
            rate_per_s=live_rate if live else mean_rate,
            latency_ms=Latency(**{name: None if s is None else round(s * 1000, 1) for name, s in seconds.items()}),
            tokens=Tokens(
                input=counts.input_tokens,
                cached=counts.cached_tokens,
                output=counts.output_tokens,
                reasoning=counts.reasoning_tokens,
            ),
            cost_usd=dollars(counts.cost),
            errors=[
                ErrorLine(reason=e.reason, count=e.count, sample_key=e.sample_key, message=e.message) for e in errors
            ],
            by_status=totals.get("by_status", {}),
            started_at=run.started_at if run else None,
            elapsed_s=elapsed,
        )


class _LiveRuns(_JsonPart):
    """What the live runs are doing now; null without one."""

    in_flight: int | None = None
    concurrency: int | None = None
    held_up: HeldUp | None = None
    at_work: list[AtWork] = []

    @classmethod
    def of_runs(cls, live: Sequence[RunRow]) -> Self:
        """Add up what the live runs report."""
        reports = _reports(live)
        return cls(
            in_flight=_sum(reports, "in_flight"),
            concurrency=_sum(reports, "concurrency"),
            held_up=next((HeldUp(**each["held_up"]) for each in reports if each["held_up"]), None),
            at_work=[_at_work(each) for each in live],
        )


class Summary(_LiveRuns, _LastRun, _Records):
    """The state of a kind. Counts are of the whole kind; rate, latency and time are of its last run.

    While a run is live, the rate is that of the last ten seconds. With several live runs, rates and calls in flight
    are added up. ``in_flight``, ``concurrency`` and ``held_up`` are null without a live run. ``stop_reason`` is
    ``crashed`` if the process of the last run died.
    """  # JSON keys come in the order of the bases from right to left


async def summarise(reader: Reader, kind: str) -> Summary:
    """Read the state of a kind from the store."""
    counts, live = await reader.counts(kind), await reader.live_runs(kind)
    calling = [run for run in live if run.role is not Role.ENQUEUE]
    run = next(iter([*calling, *live]), None) or await reader.last_run(kind)
    now = _LiveRuns.of_runs(live)
    last = _LastRun.of_run(run, counts, await reader.errors(kind), _sum(_reports(live), "rate_per_s"), live=bool(live))
    records = _Records(
        kind=kind,
        state="paused" if now.held_up and now.held_up.by == "paused" else _state(counts, run),
        stop_reason=(run.stop_reason if run.alive or run.ended_at else "crashed") if run else None,
        total=counts.total,
        pending=counts.of(Status.PENDING),
        running=counts.of(Status.RUNNING),
        done=counts.of(Status.DONE),
        failed=counts.of(Status.FAILED),
        cancelled=counts.of(Status.CANCELLED),
        retrying=counts.retrying,
        attempts=counts.attempts,
    )
    return Summary(**dict(records), **dict(last), **dict(now))


def _reports(live: Sequence[RunRow]) -> list[Mapping[str, Any]]:
    """Return what the live runs last wrote into the store about themselves; a new run has not written anything."""
    return [run.totals["live"] for run in live if "live" in run.totals]


def _at_work(run: RunRow) -> AtWork:
    report = run.totals.get("live", {})
    return AtWork(
        role=run.role,
        host=run.host,
        pid=run.pid,
        started_at=run.started_at,
        in_flight=report.get("in_flight"),
        concurrency=report.get("concurrency"),
    )


def _sum(reports: Sequence[Mapping[str, Any]], name: str) -> Any:
    return sum(each[name] for each in reports) if reports else None


def _state(counts: Counts, run: RunRow | None) -> Literal["running", "stopped", "done"]:
    if run and run.alive:
        return "running"
    left = counts.of(Status.PENDING) + counts.of(Status.RUNNING)
    return "stopped" if left or not counts.total else "done"


def _elapsed(run: RunRow) -> float:
    """Return the seconds from a run's start to its end, to now, or, if it crashed, to its last report."""
    end = datetime.now(UTC) if run.alive else datetime.fromisoformat(_last_sign_of_life(run))
    return round((end - datetime.fromisoformat(run.started_at)).total_seconds(), 3)


def _last_sign_of_life(run: RunRow) -> str:
    if run.ended_at and run.stop_reason != "crashed":
        return run.ended_at
    last: str = run.totals.get("live", {}).get("at", run.started_at)
    return max(last, run.started_at)

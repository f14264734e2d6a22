"""How a batch job stands: one object, for the text on the terminal, for ``--json`` and for its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from rowcall.model.job import Status
from rowcall.model.prices import dollars
from rowcall.store.base import Reader
from rowcall.store.types import Counts, Role, RunRow


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Latency(_Part):
    """Percentiles of answered calls in the last run, in milliseconds; null without any."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class Tokens(_Part):
    """Tokens of all calls ever made for the kind, failed ones too."""

    input: int
    cached: int
    output: int
    reasoning: int


class ErrorLine(_Part):
    """Failed records with one reason."""

    reason: str
    count: int
    sample_key: str
    message: str


class HeldUp(_Part):
    """What keeps the calls of a live run from leaving; times are ISO-8601 UTC, null where they are not known."""

    by: Literal["paused", "offline", "resting", "rate limit"]
    cause: str
    since: str | None
    until: str | None


class AtWork(_Part):
    """A live run: what it is for, and where its process is; null where it has not said."""

    role: Role
    host: str | None
    pid: int | None
    started_at: str
    in_flight: int | None
    concurrency: int | None


class Summary(_Part):
    """How a kind stands. Counts are of the whole kind; rate, latency and time are of its last run.

    Of a live run the rate is that of the last ten seconds; with several, rate and calls in flight are summed up.
    ``in_flight``, ``concurrency`` and ``held_up`` are null without a live run; ``stop_reason`` is ``crashed`` where
    the last run's process died.
    """

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
    rate_per_s: float | None
    latency_ms: Latency
    tokens: Tokens
    cost_usd: float | None
    errors: list[ErrorLine]
    by_status: dict[str, int]
    started_at: str | None
    elapsed_s: float | None
    in_flight: int | None = None
    concurrency: int | None = None
    held_up: HeldUp | None = None
    at_work: list[AtWork] = []


async def summarise(reader: Reader, kind: str) -> Summary:
    """Read how a kind stands."""
    counts, live = await reader.counts(kind), await reader.live_runs(kind)
    run = _that_calls(live) or await reader.last_run(kind)
    totals = run.totals if run else {}
    elapsed = _elapsed(run) if run else None
    vitals = [each.totals["live"] for each in live if "live" in each.totals]
    held_up = next((HeldUp(**each["held_up"]) for each in vitals if each["held_up"]), None)
    return Summary(
        kind=kind,
        state="paused" if held_up and held_up.by == "paused" else _state(counts, run),
        stop_reason=_stop_reason(run) if run else None,
        total=counts.total,
        pending=counts.of(Status.PENDING),
        running=counts.of(Status.RUNNING),
        done=counts.of(Status.DONE),
        failed=counts.of(Status.FAILED),
        cancelled=counts.of(Status.CANCELLED),
        retrying=counts.retrying,
        attempts=counts.attempts,
        rate_per_s=_sum(vitals, "rate_per_s") if live else _mean_rate(totals, elapsed),
        latency_ms=_latency(totals.get("latency_s", {})),
        tokens=Tokens(
            input=counts.input_tokens,
            cached=counts.cached_tokens,
            output=counts.output_tokens,
            reasoning=counts.reasoning_tokens,
        ),
        cost_usd=dollars(counts.cost),
        errors=[
            ErrorLine(reason=e.reason, count=e.count, sample_key=e.sample_key, message=e.message)
            for e in await reader.errors(kind)
        ],
        by_status=totals.get("by_status", {}),
        started_at=run.started_at if run else None,
        elapsed_s=elapsed,
        in_flight=_sum(vitals, "in_flight"),
        concurrency=_sum(vitals, "concurrency"),
        held_up=held_up,
        at_work=[_at_work(each) for each in live],
    )


def _that_calls(live: Sequence[RunRow]) -> RunRow | None:
    """The newest live run that calls; where there is none, the newest."""
    return next((run for run in live if run.role is not Role.ENQUEUE), live[0] if live else None)


def _at_work(run: RunRow) -> AtWork:
    told = run.totals.get("live", {})
    return AtWork(
        role=run.role,
        host=run.host,
        pid=run.pid,
        started_at=run.started_at,
        in_flight=told.get("in_flight"),
        concurrency=told.get("concurrency"),
    )


def _sum(vitals: Sequence[Mapping[str, Any]], name: str) -> Any:
    return sum(each[name] for each in vitals) if vitals else None


def _mean_rate(totals: Mapping[str, Any], elapsed: float | None) -> float | None:
    return round(totals.get("done", 0) / elapsed, 3) if elapsed and totals else None


def _state(counts: Counts, run: RunRow | None) -> Literal["running", "stopped", "done"]:
    if run and run.alive:
        return "running"
    left = counts.of(Status.PENDING) + counts.of(Status.RUNNING)
    return "stopped" if left or not counts.total else "done"


def _stop_reason(run: RunRow) -> str | None:
    return run.stop_reason if run.alive or run.ended_at else "crashed"


def _elapsed(run: RunRow) -> float:
    """Seconds to its end, or to now; of one that crashed, to the last that was heard of it."""
    end = datetime.now(UTC) if run.alive else datetime.fromisoformat(_last_heard(run))
    return round((end - datetime.fromisoformat(run.started_at)).total_seconds(), 3)


def _last_heard(run: RunRow) -> str:
    if run.ended_at and run.stop_reason != "crashed":
        return run.ended_at
    last: str = run.totals.get("live", {}).get("at", run.started_at)
    return max(last, run.started_at)


def _latency(seconds: dict[str, float | None]) -> Latency:
    return Latency(**{name: None if s is None else round(s * 1000, 1) for name, s in seconds.items()})

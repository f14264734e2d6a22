"""How a batch job stands: one object, for the text on the terminal, for ``--json`` and for its schema."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from rowcall.job import Status
from rowcall.price import dollars
from rowcall.store.base import Counts, Reader, RunRow


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


class Summary(_Part):
    """How a kind stands. Counts are of the whole kind; rate, latency and time are of its last run."""

    version: Literal[1] = 1
    kind: str
    state: Literal["running", "stopped", "done"]
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


async def summarise(reader: Reader, kind: str) -> Summary:
    """Read how a kind stands."""
    counts, run = await reader.counts(kind), await reader.last_run(kind)
    totals = run.totals if run else {}
    elapsed = _elapsed(run) if run else None
    return Summary(
        kind=kind,
        state=_state(counts, run),
        stop_reason=run.stop_reason if run else None,
        total=counts.total,
        pending=counts.of(Status.PENDING),
        running=counts.of(Status.RUNNING),
        done=counts.of(Status.DONE),
        failed=counts.of(Status.FAILED),
        cancelled=counts.of(Status.CANCELLED),
        retrying=counts.retrying,
        attempts=counts.attempts,
        rate_per_s=round(totals.get("done", 0) / elapsed, 3) if elapsed and totals else None,
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
    )


def _state(counts: Counts, run: RunRow | None) -> Literal["running", "stopped", "done"]:
    if run and run.alive:
        return "running"
    left = counts.of(Status.PENDING) + counts.of(Status.RUNNING)
    return "stopped" if left or not counts.total else "done"


def _elapsed(run: RunRow) -> float:
    end = datetime.fromisoformat(run.ended_at) if run.ended_at else datetime.now(UTC)
    return round((end - datetime.fromisoformat(run.started_at)).total_seconds(), 3)


def _latency(seconds: dict[str, float | None]) -> Latency:
    return Latency(**{name: None if s is None else round(s * 1000, 1) for name, s in seconds.items()})

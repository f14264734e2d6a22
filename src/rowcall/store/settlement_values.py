"""Settlements on their way into a store, as the values of its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rowcall.model import json_values
from rowcall.model.errors import StoreError
from rowcall.model.job import Job
from rowcall.model.outcome import Action, Failure, Settlement, Success, Usage

_STATUS = {Action.DONE: "done", Action.FAIL: "failed", Action.RETRY: "pending", Action.RELEASE: "pending"}
_CHARGED = frozenset({Action.DONE, Action.FAIL, Action.RETRY})
_ERROR_LENGTH = 500
_BODY_LENGTH = 20_000


@dataclass(frozen=True, slots=True)
class Decided:
    """A settlement with its parameters, ready to be written."""

    settlement: Settlement
    parameters: dict[str, Any]


def ready(settlements: Iterable[Settlement]) -> list[Decided]:
    """Turn settlements into parameters, outside of any transaction.

    Raises:
        StoreError: an answer is not valid JSON; nothing of the group is written.
    """
    return [Decided(each, _parameters(each)) for each in settlements]


@dataclass(slots=True)
class Used:
    """What a group of settlements adds to the totals, by kind."""

    usage: dict[str, Usage] = field(default_factory=dict)
    attempts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, usage: Usage, attempts: int) -> None:
        """Count one call."""
        before = self.usage.get(kind)
        self.usage[kind] = before + usage if before else usage
        self.attempts[kind] += attempts

    def parameters(self) -> list[dict[str, Any]]:
        """A row of the totals for each kind, in the order of names, so that two transactions never deadlock on them."""
        return [
            {"kind": kind, "attempts": self.attempts[kind], **_tokens(self.usage[kind])} for kind in sorted(self.usage)
        ]


def wait(settlement: Settlement) -> float | None:
    """Seconds that a job has to wait; None if it need not wait or has ended."""
    if settlement.action in (Action.DONE, Action.FAIL):
        return None
    if settlement.wait is None and settlement.action is Action.RELEASE and settlement.job.fresh:
        return None
    return settlement.wait or 0.0


def _parameters(settlement: Settlement) -> dict[str, Any]:
    job, outcome = settlement.job, settlement.outcome
    claimed = {"row": job.row, "epoch": job.epoch, "request": job.request, "hash": job.input_hash}
    if outcome is None:
        return claimed
    return claimed | {
        "status": _STATUS[settlement.action],
        "charged": int(settlement.action in _CHARGED),
        "superseded": 0,
        "http_status": outcome.status,
        "request_id": _clean(outcome.request_id, _ERROR_LENGTH),
        "latency_ms": None if outcome.latency is None else round(outcome.latency * 1000, 1),
        **_tokens(outcome.usage),
        **(_failed(outcome) if isinstance(outcome, Failure) else _answered(outcome, job)),
    }


def _tokens(usage: Usage) -> dict[str, int | None]:
    return {
        "input": usage.input,
        "output": usage.output,
        "cached": usage.cached,
        "reasoning": usage.reasoning,
        "cost": usage.cost,
    }


def _answered(success: Success, job: Job) -> dict[str, Any]:
    try:
        return {"value": json_values.dumps(success.value).decode(), "error": None, "reason": None}
    except TypeError as error:
        raise StoreError(f"the answer of {job.key!r} cannot be stored: {error}") from error


def _failed(failure: Failure) -> dict[str, Any]:
    return {
        "class": failure.cls.value,
        "reason": _clean(failure.reason, _ERROR_LENGTH),
        "error": _clean(failure.message, _ERROR_LENGTH),
        "body": _clean(failure.body, _BODY_LENGTH),
    }


def _clean(text: str | None, longest: int) -> str | None:
    """Text from outside, cut, with characters that no store can hold replaced, so that it never stops a settle."""
    if text is None:
        return None
    return text[:longest].replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()

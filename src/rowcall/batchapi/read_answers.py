"""Answers that a provider's batch API made: read from its output file, judged as replies are, stored by key.

Sources: the Batch API's output file of OpenAI (``response`` or ``error``), and the results of Anthropic's Message
Batches (``result`` of type succeeded, errored, canceled or expired).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from rowcall.config import Config
from rowcall.model import json_values
from rowcall.model.errors import InputError
from rowcall.model.job import Record
from rowcall.model.outcome import Action, Failure, FailureClass, Outcome, Reply, Success
from rowcall.model.prices import Prices, priced
from rowcall.providers.base import Provider
from rowcall.run.call_prices import make_prices
from rowcall.run.job_store import open_store
from rowcall.run.make_calls import provider_of
from rowcall.sources import open_source
from rowcall.store.types import Arrived, Fate

GROUP = 500
"""Answers of one transaction."""
NAMED = 5
"""Keys that are named of each fate."""


@dataclass(slots=True)
class Intake:
    """What became of the answers of a file: how many by fate, and a few keys of each."""

    counts: dict[Fate, int] = field(default_factory=dict)
    sample: dict[Fate, list[str]] = field(default_factory=dict)

    def add(self, key: str, fate: Fate) -> None:
        """Count one."""
        self.counts[fate] = self.counts.get(fate, 0) + 1
        keys = self.sample.setdefault(fate, [])
        if len(keys) < NAMED:
            keys.append(key)

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts.values())


async def take_in(config: Config, path: Path, *, waits: Callable[[str], None]) -> Intake:
    """Store the answers of an output file, each under the key that its ``custom_id`` is.

    Safe to repeat. What would fail a record in a run fails it here; expired and cancelled lines, and errors that are
    not the record's, leave it to be called. With ``[price]`` an answer costs half, as both providers have it.

    Args:
        config: of the batch job.
        path: the output file.
        waits: told who is in the way, where a wait for the store gets long.

    Raises:
        InputError: a line that is none of an output file; those of the groups before it are stored.
        StoreError: the store cannot be used.
    """
    reading = _Reading(provider_of(config.masked(lambda reference: "unknown")), _halved(make_prices(config)))
    records, intake = iter(open_source(path, format="jsonl")), Intake()
    async with await open_store(config, waits) as store:
        while group := await asyncio.to_thread(reading.read, records):
            for arrived, fate in zip(group, await store.arrive(config.name, group), strict=True):
                intake.add(arrived.key, fate)
    return intake


@dataclass(frozen=True, slots=True)
class _Reading:
    """How lines become answers."""

    provider: Provider
    prices: Prices | None

    def read(self, records: Iterator[Record]) -> list[Arrived]:
        """The answers in the next lines."""
        return [self._arrived(record) for record in islice(records, GROUP)]

    def _arrived(self, record: Record) -> Arrived:
        key = record.data.get("custom_id")
        if not isinstance(key, str):
            raise _no_output(record)
        outcome = priced(_outcome(record, self.provider), self.prices)
        return Arrived(key, _action(outcome), outcome)


def _halved(prices: Prices | None) -> Prices | None:
    return prices and Prices(*(price and price // 2 for price in astuple(prices)))


def _action(outcome: Outcome) -> Action:
    if isinstance(outcome, Success):
        return Action.DONE
    return Action.FAIL if outcome.cls in (FailureClass.RECORD, FailureClass.ANSWER) else Action.RELEASE


def _outcome(record: Record, provider: Provider) -> Outcome:
    """What a line says, as the provider reads replies."""
    line = record.data
    if isinstance(result := line.get("result"), dict):
        return _of_anthropic(record, result, provider)
    if isinstance(response := line.get("response"), dict):
        if not isinstance(status := response.get("status_code"), int):
            raise _no_output(record)
        return _as_reply(provider, status, response.get("body"), response.get("request_id"))
    if isinstance(error := line.get("error"), dict):
        return _not_called(str(error.get("code") or "error"), str(error.get("message") or ""))
    raise _no_output(record)


_STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status with which Anthropic sends an error of each type; its own page of errors."""


def _of_anthropic(record: Record, result: Mapping[str, Any], provider: Provider) -> Outcome:
    match result.get("type"):
        case "succeeded":
            return _as_reply(provider, 200, result.get("message"))
        case "errored":
            document = result.get("error")
            inner = document.get("error") if isinstance(document, dict) else None
            kind = inner.get("type") if isinstance(inner, dict) else None
            return _as_reply(provider, _STATUS_OF.get(str(kind), 500), document)
        case "canceled" | "expired" as kind:
            return _not_called(f"batch_{kind}", f"the batch is {kind}; this request was not carried out")
        case _:
            raise _no_output(record)


def _as_reply(provider: Provider, status: int, body: Any, request_id: Any = None) -> Outcome:
    headers = {"content-type": "application/json"} | ({"x-request-id": str(request_id)} if request_id else {})
    return replace(provider.read(Reply(status, headers, json_values.dumps(body), 0.0)), latency=None)


def _not_called(reason: str, message: str) -> Failure:
    return Failure(FailureClass.NOT_SENT, reason, message)


def _no_output(record: Record) -> InputError:
    remedy = "a line has custom_id and response or error (OpenAI), or custom_id and result (Anthropic)"
    return InputError(record.where, "is no line of a batch's output file", remedy=remedy)

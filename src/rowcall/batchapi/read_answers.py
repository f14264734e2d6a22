"""Imports the output file of a provider's batch API: reads each answer as a reply and stores it by its key.

Sources: the output file of OpenAI's Batch API (``response`` or ``error``) and the results file of Anthropic's Message
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
from rowcall.store.types import ImportedAnswer, ImportResult

GROUP = 500
"""Answers stored in one transaction."""
NAMED = 5
"""Keys kept as examples of each fate."""


@dataclass(slots=True)
class ImportedAnswers:
    """What happened to the answers of a file: a count and a few keys for each fate."""

    counts: dict[ImportResult, int] = field(default_factory=dict)
    sample: dict[ImportResult, list[str]] = field(default_factory=dict)

    def add(self, key: str, fate: ImportResult) -> None:
        """Count one answer."""
        self.counts[fate] = self.counts.get(fate, 0) + 1
        keys = self.sample.setdefault(fate, [])
        if len(keys) < NAMED:
            keys.append(key)

    @property
    def total(self) -> int:
        """The number of answers."""
        return sum(self.counts.values())


async def import_answers(config: Config, path: Path, *, waits: Callable[[str], None]) -> ImportedAnswers:
    """Store the answers of an output file; the ``custom_id`` of each answer is the record's key.

    Safe to repeat. An answer that would fail a record in a run also fails it here. Expired and cancelled lines, and
    errors that are not the record's fault, leave the record pending. With ``[price]`` an answer costs half the price,
    because both providers give a discount of 50 % on batches.

    Args:
        config: the config of the batch job.
        path: the output file.
        waits: called with a message for the user when the store has to wait long for another process.

    Raises:
        InputError: a line is not one of an output file. Answers in earlier groups of 500 lines are stored.
        StoreError: the store cannot be used.
    """
    reader = _AnswerReader(provider_of(config.masked(lambda reference: "unknown")), _halved(make_prices(config)))
    records, imported = iter(open_source(path, format="jsonl")), ImportedAnswers()
    async with await open_store(config, waits) as store:
        while group := await asyncio.to_thread(reader.read, records):
            for arrived, fate in zip(group, await store.import_answers(config.name, group), strict=True):
                imported.add(arrived.key, fate)
    return imported


@dataclass(frozen=True, slots=True)
class _AnswerReader:
    """Turns the lines of an output file into answers."""

    provider: Provider
    prices: Prices | None

    def read(self, records: Iterator[Record]) -> list[ImportedAnswer]:
        """Return the answers in the next group of lines; an empty list at the end."""
        return [self._answer(record) for record in islice(records, GROUP)]

    def _answer(self, record: Record) -> ImportedAnswer:
        key = record.data.get("custom_id")
        if not isinstance(key, str):
            raise _not_an_output_line(record)
        outcome = priced(_outcome(record, self.provider), self.prices)
        return ImportedAnswer(key, _action(outcome), outcome)


def _halved(prices: Prices | None) -> Prices | None:
    return prices and Prices(*(price and price // 2 for price in astuple(prices)))


def _action(outcome: Outcome) -> Action:
    if isinstance(outcome, Success):
        return Action.DONE
    return Action.FAIL if outcome.cls in (FailureClass.RECORD, FailureClass.ANSWER) else Action.RELEASE


def _outcome(record: Record, provider: Provider) -> Outcome:
    """Read a line as the provider reads a reply."""
    line = record.data
    if isinstance(result := line.get("result"), dict):
        return _of_anthropic(record, result, provider)
    if isinstance(response := line.get("response"), dict):
        if not isinstance(status := response.get("status_code"), int):
            raise _not_an_output_line(record)
        return _as_reply(provider, status, response.get("body"), response.get("request_id"))
    if isinstance(error := line.get("error"), dict):
        return _not_made(str(error.get("code") or "error"), str(error.get("message") or ""))
    raise _not_an_output_line(record)


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
"""The HTTP status that Anthropic sends with each type of error, from the errors page of its API reference."""


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
            return _not_made(f"batch_{kind}", f"the batch is {kind}; this request was not made")
        case _:
            raise _not_an_output_line(record)


def _as_reply(provider: Provider, status: int, body: Any, request_id: Any = None) -> Outcome:
    headers = {"content-type": "application/json"} | ({"x-request-id": str(request_id)} if request_id else {})
    return replace(provider.read(Reply(status, headers, json_values.dumps(body), 0.0)), latency=None)


def _not_made(reason: str, message: str) -> Failure:
    return Failure(FailureClass.NOT_SENT, reason, message)


def _not_an_output_line(record: Record) -> InputError:
    remedy = "a line has custom_id and response or error (OpenAI), or custom_id and result (Anthropic)"
    return InputError(record.where, "is not a line of a batch's output file", remedy=remedy)

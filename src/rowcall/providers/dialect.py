"""Describes an API as data: where its replies state token counts, how an answer ended, and errors."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rowcall.config.preset_defaults import PresetDefaults
from rowcall.model.outcome import Failure, Reply, Usage
from rowcall.model.prices import nano
from rowcall.providers.classify_error_reply import answer_failure, embedded, failure
from rowcall.providers.parse_error_reply import one_line
from rowcall.providers.read_reply import Extract, compile_path

_MOST_TOKENS = 2**53  # a larger count is nonsense, and would not fit the store
_MOST_DOLLARS = 10**6


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where the document of a reply states what. Each place is a JMESPath such as ``choices[0].finish_reason``.

    Attributes:
        input: counts whose sum is all input tokens, cached ones included.
        output: counts whose sum is all output tokens, reasoning included.
        cached: counts whose sum is the input tokens read from a cache.
        reasoning: counts whose sum is the reasoning tokens.
        cost: the price of the call in dollars.
        errors: where an error object may be inside a 2xx.
        ends: why the answer ended.
        meanings: the failure reason for such an end. An end that is not listed is a normal one.
        refusal: the model's words when it refuses.
        id: the id of the call, for replies without one in their headers.
        limits: keys of the request body that limit the answer's tokens, with dots between levels. The last one is
            used if a body has none of them.
        text: the answer is text, so that an answer of white space counts as empty.
    """

    input: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    cached: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    cost: str | None = None
    errors: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    meanings: Mapping[str, str] = field(default_factory=dict)
    refusal: str | None = None
    id: str | None = None
    limits: tuple[str, ...] = ()
    text: bool = False

    def usage(self, document: Any) -> Usage:
        """Return the tokens billed by a document; 0 for what it does not state."""
        return Usage(
            input=_sum(document, self.input),
            output=_sum(document, self.output),
            cached=_sum(document, self.cached),
            reasoning=_sum(document, self.reasoning),
            cost=_cost(document, self.cost),
        )

    def fault(self, document: Any, reply: Reply) -> Failure | None:
        """Return the failure that a 2xx reports: an error object, or an abnormal end."""
        for place in self.errors:
            if error := value_at(document, place):
                return _error_inside(error, reply)
        return self._ended_badly(document, reply) or self._refused(document, reply)

    def request_id(self, document: Any) -> str | None:
        """Return the id of the call in a document."""
        number = value_at(document, self.id)
        return number[:200] if isinstance(number, str) else None

    def _ended_badly(self, document: Any, reply: Reply) -> Failure | None:
        for place in self.ends:
            end = value_at(document, place)
            reason = self.meanings.get(end) if isinstance(end, str) else None
            if reason:
                return answer_failure(reply, reason, _WORDS[reason].format(one_line(end)))
        return None

    def _refused(self, document: Any, reply: Reply) -> Failure | None:
        words = value_at(document, self.refusal)
        return answer_failure(reply, "filtered", f"the model refused: {words}") if words else None


@dataclass(frozen=True, slots=True)
class GroupFormat:
    """How one request asks about many records.

    Attributes:
        input: the key of the body that takes a list of texts instead of one.
        answers: the key of the reply that lists the answers.
        index: the key of an answer with the number of its text, from 0.
        most: the most texts in one request.
    """

    input: str
    answers: str
    index: str
    most: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an API, such as chat completions or embeddings.

    Attributes:
        extract: JMESPath of the answer.
        dialect: where its replies state what.
        needs_body: a request without a body makes no sense.
        group: how one request asks about many records; None if that is not possible.
    """

    extract: str | None = None
    dialect: Dialect = field(default_factory=Dialect)
    needs_body: bool = True
    group: GroupFormat | None = None


PLAIN_OPERATION = Operation(needs_body=False)
"""A call of an unknown API: nothing is known about its replies."""


@dataclass(frozen=True, slots=True)
class Preset:
    """What a preset fills in where the config says nothing.

    Attributes:
        defaults: the base URL and path of calls where the config names none.
        operations: by the end of their path; the first is the default.
        other: the operation at any other path; None: the default.
        key_header: the header for the API key, and the text before the key in it.
        headers: more headers.
    """

    defaults: PresetDefaults
    operations: Mapping[str, Operation]
    other: Operation | None = None
    key_header: tuple[str, str] = ("authorization", "Bearer ")
    headers: Mapping[str, str] = field(default_factory=dict)

    def operation_at(self, path: str | None) -> Operation:
        """Return the operation at a path; without a path the default one."""
        default, *_ = self.operations.values()
        asked = (path or "").partition("?")[0].rstrip("/")
        if not asked:
            return default
        found = (operation for end, operation in self.operations.items() if asked.endswith(end))
        return next(found, self.other or default)


def value_at(document: Any, place: str | None) -> Any:
    """Return the value at a place of a document; None if there is none."""
    return None if place is None else _lookup(place)(document)


@functools.cache
def _lookup(place: str) -> Extract:
    return compile_path(place)


def _sum(document: Any, places: tuple[str, ...]) -> int:
    total = 0
    for place in places:
        count = _lookup(place)(document)
        if isinstance(count, int) and 0 < count < _MOST_TOKENS:
            total += count
    return total


def _cost(document: Any, place: str | None) -> int | None:
    dollars = value_at(document, place)
    known = isinstance(dollars, int | float) and not isinstance(dollars, bool) and 0 <= dollars < _MOST_DOLLARS
    return nano(dollars) if known else None


def _error_inside(error: Any, reply: Reply) -> Failure:
    found = embedded(error, reply)
    if found:
        return failure(reply, found)
    words = error.get("message") if isinstance(error, dict) else error
    return answer_failure(reply, "error_reply", f"an error inside HTTP 200: {one_line(str(words or 'no message'))}")


_WORDS = {
    "truncated": "the answer was cut off at its token limit ({})",
    "filtered": "the content filter stopped the answer ({})",
    "error_reply": "the API ended the answer with an error ({})",
}

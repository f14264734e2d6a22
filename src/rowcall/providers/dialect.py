"""What an API means beyond HTTP, as a table: where its documents say what was used, how a text ended, what failed."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rowcall.config.preset_defaults import PresetDefaults
from rowcall.model.outcome import Failure, Reply, Usage
from rowcall.model.prices import nano
from rowcall.providers.error_replies import answer_failure, embedded, failure, one_line
from rowcall.providers.read_reply import Extract, compile_path

_MOST = 2**53
_MOST_DOLLARS = 10**6


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where a document says what. A place is names and indexes, ``choices[0].finish_reason``.

    Attributes:
        input: counts that add up to all tokens that were read, cached ones too.
        output: counts that add up to all tokens that were written, reasoning too.
        cached: counts that add up to the tokens read from a cache.
        reasoning: counts that add up to the tokens that the model thought in.
        cost: where the price in dollars stands.
        errors: where an error may stand inside a 2xx.
        ends: where it says how the text ended.
        meanings: the reason of the failure that an end means; an end that is not here is the model's own.
        refusal: where the model's words stand when it refuses.
        id: where the call's own number stands, for replies whose headers have none.
        limits: where a request limits the tokens of its answer, by dots; the last one is what a request gets
            that has none of them.
        text: the answer is text, and text without a letter is no answer.
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
        """The tokens that a document says it was billed for; 0 for what it does not say."""
        return Usage(
            input=_sum(document, self.input),
            output=_sum(document, self.output),
            cached=_sum(document, self.cached),
            reasoning=_sum(document, self.reasoning),
            cost=_cost(document, self.cost),
        )

    def fault(self, document: Any, reply: Reply) -> Failure | None:
        """The failure that a 2xx reports: an error object, or an end that is not the model's own."""
        for place in self.errors:
            if error := value_at(document, place):
                return _reported(error, reply)
        return self._ended_badly(document, reply) or self._refused(document, reply)

    def request_id(self, document: Any) -> str | None:
        """The call's own number in a document."""
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
    """How one request asks for many records.

    Attributes:
        input: the key of the body that takes a list of texts in the place of one.
        answers: where the reply lists the answers.
        index: the key of an answer that says which text it is for, from 0.
        most: texts in one request.
    """

    input: str
    answers: str
    index: str
    most: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of call of an API.

    Attributes:
        extract: JMESPath to the answer.
        dialect: what the documents mean.
        needs_body: nothing can be asked without one.
        group: how many records are asked for at once; None: each by itself.
    """

    extract: str | None = None
    dialect: Dialect = field(default_factory=Dialect)
    needs_body: bool = True
    group: GroupFormat | None = None


PLAIN_OPERATION = Operation(needs_body=False)
"""A call of any API: nothing is known about its documents."""


@dataclass(frozen=True, slots=True)
class Preset:
    """What fills in where the config is silent.

    Attributes:
        defaults: the base URL and path of calls where the config names none.
        operations: the kinds of calls, by the end of their path; the first is the usual one.
        other: the kind of a call whose path is none of them; None: the usual one.
        key_header: the header that brings the key, and what stands before it there.
        headers: further headers.
    """

    defaults: PresetDefaults
    operations: Mapping[str, Operation]
    other: Operation | None = None
    key_header: tuple[str, str] = ("authorization", "Bearer ")
    headers: Mapping[str, str] = field(default_factory=dict)

    def operation_at(self, path: str | None) -> Operation:
        """The kind of call that is made at a path; without one the usual kind."""
        usual, *_ = self.operations.values()
        asked = (path or "").partition("?")[0].rstrip("/")
        if not asked:
            return usual
        return next((form for end, form in self.operations.items() if asked.endswith(end)), self.other or usual)


def value_at(document: Any, place: str | None) -> Any:
    """What stands at a place of a document; None where there is nothing."""
    return None if place is None else _lookup(place)(document)


@functools.cache
def _lookup(place: str) -> Extract:
    return compile_path(place)


def _sum(document: Any, places: tuple[str, ...]) -> int:
    total = 0
    for place in places:
        count = _lookup(place)(document)
        if isinstance(count, int) and 0 < count < _MOST:
            total += count
    return total


def _cost(document: Any, place: str | None) -> int | None:
    dollars = value_at(document, place)
    known = isinstance(dollars, int | float) and not isinstance(dollars, bool) and 0 <= dollars < _MOST_DOLLARS
    return nano(dollars) if known else None


def _reported(error: Any, reply: Reply) -> Failure:
    found = embedded(error, reply)
    if found:
        return failure(reply, found)
    words = error.get("message") if isinstance(error, dict) else error
    return answer_failure(reply, "error_reply", f"an error inside HTTP 200: {one_line(str(words or 'no message'))}")


_WORDS = {
    "truncated": "the answer was cut at its limit of tokens ({})",
    "filtered": "the content filter stopped the answer ({})",
    "error_reply": "the API ended the answer with an error ({})",
}

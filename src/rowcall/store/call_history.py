"""How calls went over time, as far as a store knows it; for the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

STEP = 1.05
"""The ratio of two neighbouring classes of latency: class ``n`` is around ``STEP ** n`` seconds."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time, from ``since`` to ``until`` (ISO-8601 UTC text), cut into slices of ``width`` seconds."""

    since: str
    until: str
    width: float


@dataclass(frozen=True, slots=True)
class Slice:
    """What ended in a slice of time: answers, failed calls by reason, and what both used (cost in nano-dollars)."""

    answered: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Quiet:
    """A stretch without the end of any call."""

    since: str
    until: str
    seconds: float


@dataclass(frozen=True, slots=True)
class SlowCall:
    """The last call of a record: its key, seconds, the record's status, the reply's, when it was written."""

    key: str
    latency: float
    status: str
    http_status: int | None
    at: str


@dataclass(frozen=True, slots=True)
class History:
    """How calls went in a span.

    Attributes:
        slices: by their number in the span; slices in which nothing ended are left out.
        latencies: the number of calls by class of latency (see ``STEP``).
        quiet: the longest stretches in which nothing ended, in the order of time.
        slowest: records whose last call took longest.
    """

    slices: Mapping[int, Slice]
    latencies: Mapping[int, int]
    quiet: tuple[Quiet, ...]
    slowest: tuple[SlowCall, ...]


def sliced(answered: Iterable[Sequence[Any]], failed: Iterable[Sequence[Any]]) -> dict[int, Slice]:
    """Slices by their number.

    Args:
        answered: rows of number, answers, input tokens, output tokens, cost.
        failed: rows of number, reason, calls, input tokens, output tokens, cost.
    """
    slices = {number: Slice(count, {}, *used) for number, count, *used in answered}
    for number, reason, count, tokens_in, tokens_out, cost in failed:
        before = slices.get(number, Slice())
        slices[number] = Slice(
            before.answered,
            {**before.failed, reason: count},
            before.input_tokens + tokens_in,
            before.output_tokens + tokens_out,
            before.cost if cost is None else cost + (before.cost or 0),
        )
    return slices


def latency_class(milliseconds: float) -> int:
    """The class of a latency (see ``STEP``)."""
    return round(math.log(milliseconds / 1000, STEP))

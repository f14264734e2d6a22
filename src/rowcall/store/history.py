"""What a store knows about how calls went over time: for the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STEP = 1.05
"""Latencies are counted in classes that grow by so much: class ``n`` is around ``STEP ** n`` seconds."""


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
        latencies: how many calls took so long, by class (see ``STEP``).
        quiet: the longest stretches in which nothing ended, in the order of time.
        slowest: records whose last call took longest.
    """

    slices: Mapping[int, Slice]
    latencies: Mapping[int, int]
    quiet: tuple[Quiet, ...]
    slowest: tuple[SlowCall, ...]

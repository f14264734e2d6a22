"""The outcome of a call and the decision about it: small frozen values, created before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rowcall.model.job import Job


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that one call was billed for; ``input`` includes ``cached``, ``output`` includes ``reasoning``.

    ``cost`` is a whole number of nano-dollars (10^-9 $), so that sums are exact; None if no price is known.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    cost: int | None = None

    def __add__(self, other: Usage) -> Usage:
        cost = self.cost if other.cost is None else other.cost + (self.cost or 0)
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.reasoning + other.reasoning,
            cost,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP reply read to its end. Header names are lower case; ``latency`` is in seconds."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    latency: float


class FailureClass(StrEnum):
    """Decides who pays for a failure; the table is in failures/retries.py."""

    NOT_SENT = "not sent"  # the request did not leave: refused, DNS, connect timeout, no route
    REUSED = "reused"  # a kept connection was closed before the first byte of the reply
    MAYBE_SENT = "maybe sent"  # the request may have been carried out: reset, timeout, garbled reply
    SERVER = "server"  # the API reports a fault of its own
    PACE = "pace"  # calls come too fast
    MONEY = "money"  # no credit, quota used up
    SETUP = "setup"  # key, URL or certificate
    RECORD = "record"  # the API refuses this record, or it cannot be rendered
    ANSWER = "answer"  # a 2xx that breaks the acceptance contract
    LATER = "later"  # the handler asked to try this record later


@dataclass(frozen=True, slots=True)
class Success:
    """The record has its answer. ``value`` is JSON."""

    value: Any
    status: int | None = None
    request_id: str | None = None
    latency: float | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Failure:
    """A call without an answer.

    Attributes:
        cls: who pays for it.
        reason: a stable code, such as ``refused``, ``http_500``, ``rate_limited``, ``truncated``.
        message: one line for a person, never with a secret in it.
        retry_after: seconds that the server asked to wait; None if it did not ask.
        retry: False if the server or the kind of failure says that another try is useless.
        final: the handler itself gave the record up, so no evidence is needed.
        body: the start of the reply, for the record's history (at most 2,000 characters).
    """

    cls: FailureClass
    reason: str
    message: str
    status: int | None = None
    request_id: str | None = None
    latency: float | None = None
    retry_after: float | None = None
    retry: bool = True
    final: bool = False
    body: str | None = None
    usage: Usage = field(default_factory=Usage)


Outcome = Success | Failure


class Classed(Exception):
    """An exception that knows its failure class, even if other exceptions were raised from it."""

    @property
    def failure(self) -> Failure:
        """The failure that this exception stands for."""
        raise NotImplementedError


class Action(StrEnum):
    """What is written for a job after a call (``HOLD``: nothing yet)."""

    DONE = "done"
    RETRY = "retry"  # pending again after ``wait``, one attempt charged
    FAIL = "fail"  # failed, one attempt charged
    RELEASE = "release"  # pending again after ``wait``, nothing charged
    HOLD = "hold"  # wait for evidence


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about one outcome.

    Attributes:
        action: what is written for the job.
        wait: seconds until the job may be claimed again (retry, release).
        rest: seconds during which no call is sent to the target; None if only this job waits.
        stop: the failure ends the run.
    """

    action: Action
    wait: float = 0.0
    rest: float | None = None
    stop: bool = False


@dataclass(frozen=True, slots=True)
class Settlement:
    """One decision to be written to the store. ``outcome`` is None if no call was made.

    ``wait`` is in seconds; None puts a job back as if it had never been claimed (a release only).
    """

    job: Job
    action: Action
    wait: float | None = None
    outcome: Outcome | None = None


def put_back(job: Job) -> Settlement:
    """Return the settlement that puts a claimed job back as if it had never been claimed."""
    return Settlement(job, Action.RELEASE)

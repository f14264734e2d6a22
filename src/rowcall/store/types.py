"""What goes into a store and comes out of it, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from rowcall.model import json_values
from rowcall.model.job import Status
from rowcall.model.outcome import Action, Outcome

Claim = tuple[int, int]
"""One claim of one job: its row and the epoch."""


class Entry(NamedTuple):
    """A record on its way into the store. Its payload is JSON text; ``where`` says where in the input it was read."""

    key: str
    input_hash: str
    payload: str
    where: str


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What became of the entries of one or more ``enqueue`` calls.

    Attributes:
        new: keys seen for the first time.
        changed: records whose input or request has changed, so that they are to be called again.
        restored: records whose new input or request already has an answer from earlier.
        done: unchanged and done.
        failed: unchanged and failed.
        waiting: unchanged, pending or running.
        cancelled: unchanged and cancelled.
        repeated: the same record a second time within this pass.
    """

    new: int = 0
    changed: int = 0
    restored: int = 0
    done: int = 0
    failed: int = 0
    waiting: int = 0
    cancelled: int = 0
    repeated: int = 0

    @property
    def total(self) -> int:
        """Distinct records read."""
        return self.new + self.changed + self.restored + self.done + self.failed + self.waiting + self.cancelled

    def __add__(self, other: Enqueued) -> Enqueued:
        return Enqueued(*(getattr(self, f) + getattr(other, f) for f in self.__slots__))


@dataclass(frozen=True, slots=True)
class RequestStanding:
    """How a request relates to what is in the store, before any input is read.

    Attributes:
        number: its number in the store; None if it was never used.
        latest: it was used last, or no request was used before.
        done: done jobs whose answer counts for it (made with it, or adopted by it).
        done_under_others: done jobs whose answer does not count for it.
    """

    number: int | None
    latest: bool
    done: int
    done_under_others: int


class Role(StrEnum):
    """What a run is for."""

    RUN = "run"
    """It reads an input and makes the calls."""
    ENQUEUE = "enqueue"
    """It reads an input and makes no calls."""
    WORK = "work"
    """It makes the calls of what others enqueued."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run in the store. ``joined``: it has the pass of another live run of the kind."""

    id: int
    pass_: int
    joined: bool


@dataclass(frozen=True, slots=True)
class Left:
    """What a pass still has to do: whether a job is running anywhere, and the seconds until one can be claimed.

    ``due_in`` is 0.0 if one can be claimed now, and None if none is pending.
    """

    running: bool
    due_in: float | None

    @property
    def nothing(self) -> bool:
        """The pass is over."""
        return not self.running and self.due_in is None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which jobs a person means. All conditions must hold; an empty one holds for every job.

    Each of ``reasons_or_keys`` is compared with both; ``Selected.unmatched`` names those that match neither. ``where``
    has columns of the record and their values as text: numbers as written in the JSON, true, false, and "" for null.
    """

    reasons_or_keys: tuple[str, ...] = ()
    statuses: tuple[Status, ...] = ()
    batch: str | None = None
    where: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Selected:
    """How many jobs a selection holds, by status; the keys of a few; and the words that match nothing."""

    by_status: dict[Status, int]
    sample: tuple[str, ...]
    unmatched: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.by_status.values())


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback does: how many jobs get their previous answer, how many are pending again, and a few keys."""

    restored: int
    pending: int
    sample: tuple[str, ...]

    @property
    def count(self) -> int:
        """All of them."""
        return self.restored + self.pending


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune did: how many payloads were dropped, and by how many bytes the file became smaller."""

    payloads: int
    gained: int


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A pending job that a later pass did not bring; its payload is JSON text."""

    row: int
    key: str
    payload: str


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something that rowcall itself never writes: what it is, how often it occurs, and the key of one job."""

    what: str
    count: int
    sample_key: str


@dataclass(frozen=True, slots=True)
class Counts:
    """A kind at a glance.

    ``attempts`` is the sum of charged calls. Tokens include those of failed calls. ``retrying`` counts pending jobs
    that were called before, ``by_http_status`` the last call of each job. ``cost`` is in nano-dollars, None if no price
    was ever known.
    """

    by_status: dict[Status, int]
    retrying: int = 0
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: int | None = None
    by_http_status: dict[int, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All jobs of the kind."""
        return sum(self.by_status.values())

    def of(self, status: Status) -> int:
        """How many jobs have that status."""
        return self.by_status.get(status, 0)


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Failed jobs with one reason."""

    reason: str
    count: int
    sample_key: str
    message: str


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as people see it. Times are ISO-8601 UTC text, latency is in seconds, cost in nano-dollars."""

    row: int
    key: str
    kind: str
    batch: str
    status: Status
    attempts: int
    crashes: int
    error: str | None
    reason: str | None
    run_after: str | None
    created_at: str
    updated_at: str
    http_status: int | None
    request_id: str | None
    latency: float | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    cost: int | None


class Answer(NamedTuple):
    """What an export needs of a job. ``value`` is the current answer; None unless the job is done."""

    key: str
    status: Status
    input_hash: str
    value: Any
    reason: str | None
    error: str | None


def read_answer(row: tuple[str, str, str, str | None, str | None, str | None]) -> Answer:
    """Make an ``Answer`` of key, status, input_hash, reason, error and the value as JSON."""
    key, status, input_hash, reason, error, value = row
    return Answer(
        key, _STATUSES[status], input_hash, None if value is None else json_values.read_back(value), reason, error
    )


_STATUSES = {status.value: status for status in Status}


@dataclass(frozen=True, slots=True)
class LastCall:
    """What a job's last call gave. ``at`` is ISO-8601 UTC text, ``body`` the start of a reply that had no answer."""

    at: str
    status: int | None
    request_id: str | None
    body: str | None


@dataclass(frozen=True, slots=True)
class Try:
    """One unsuccessful call in a record's history."""

    at: str
    epoch: int
    cls: str
    reason: str
    message: str
    charged: bool
    status: int | None
    request_id: str | None
    latency: float | None
    body: str | None
    cost: int | None


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as people see it. ``ended_at`` is None while it is alive; ``alive`` says whether its session is.

    ``host`` and ``pid`` are those of its process, None if the store no longer knows them.
    """

    id: int
    kind: str
    pass_: int
    started_at: str
    ended_at: str | None
    stop_reason: str | None
    settings: dict[str, Any]
    totals: dict[str, Any]
    alive: bool
    role: Role = Role.RUN
    host: str | None = None
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Reserved:
    """What a reservation gave; all times are seconds from now.

    Attributes:
        leaves: when each call may leave, in order; fewer than were asked for if the limits allow no more.
        next_in: when the next call may leave.
        rest: how long the target still rests; ``leaves`` and ``next_in`` take it into account.
    """

    leaves: tuple[float, ...]
    next_in: float
    rest: float


@dataclass(frozen=True, slots=True)
class LiveOrders:
    """What a live run follows: settings by name, as they were written, and the seconds for which its target rests."""

    settings: Mapping[str, str]
    rest: float


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """An answer that was made elsewhere. The action is DONE, FAIL, or RELEASE if the record is not to blame."""

    key: str
    action: Action
    outcome: Outcome


class ImportResult(StrEnum):
    """What became of an answer that was made elsewhere."""

    DONE = "done"
    FAILED = "failed"
    AGAIN = "to be called again"
    BEFORE = "known before"
    RUNNING = "being called now"
    CHANGED = "changed since"  # kept, but it is not the current answer
    UNKNOWN = "unknown"

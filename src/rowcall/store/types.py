"""What goes into a store and comes out of it: small frozen values."""

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
    """A record on its way into the store: its payload is JSON text, ``where`` its place in the input."""

    key: str
    input_hash: str
    payload: str
    where: str


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What became of the entries of one or more ``enqueue`` calls.

    Attributes:
        new: keys seen for the first time.
        changed: records whose input or request is another than before, now to be called (again).
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
    """How a request stands to what is in the store, before a row is read.

    Attributes:
        number: the store's number of it; None where it was never used.
        latest: it is the one used last, or none was used before.
        done: done jobs whose answer counts for it (made with it, or adopted by it).
        done_under_others: done jobs whose answer does not.
    """

    number: int | None
    latest: bool
    done: int
    done_under_others: int


class Role(StrEnum):
    """What a run is for."""

    RUN = "run"
    """It brings an input in and works on it."""
    ENQUEUE = "enqueue"
    """It brings an input in and calls nothing."""
    WORK = "work"
    """It works on what others brought in."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run in the store; ``joined`` where another live run of the kind lent its pass."""

    id: int
    pass_: int
    joined: bool


@dataclass(frozen=True, slots=True)
class Left:
    """What a pass still has: a job running anywhere, and the seconds until one can be claimed (0.0 = now)."""

    running: bool
    due_in: float | None

    @property
    def nothing(self) -> bool:
        """The pass is over."""
        return not self.running and self.due_in is None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which jobs a person means: all conditions hold together, an empty one holds for every job.

    ``reasons_or_keys`` are matched against both; a word that matches neither is reported by ``unmatched``. ``where``
    are columns of the record and the text of their values: numbers as they stand in JSON, true, false, null as "".
    """

    reasons_or_keys: tuple[str, ...] = ()
    statuses: tuple[Status, ...] = ()
    batch: str | None = None
    where: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Selected:
    """How many jobs a selection holds, by status, a few of their keys, and words that match nothing."""

    by_status: dict[Status, int]
    sample: tuple[str, ...]
    unmatched: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.by_status.values())


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback does: jobs that get their previous answer, those that are pending again, a few keys."""

    restored: int
    pending: int
    sample: tuple[str, ...]

    @property
    def count(self) -> int:
        """All of them."""
        return self.restored + self.pending


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune did: payloads dropped, and the bytes by which the file got smaller."""

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
    """Something in a kind that rowcall never writes: what, how often, the key of one."""

    what: str
    count: int
    sample_key: str


@dataclass(frozen=True, slots=True)
class Counts:
    """A kind at a glance.

    ``attempts`` sums charged calls; tokens count failed tries too; ``retrying`` are pending jobs that were called
    before; ``by_http_status`` counts the last call of each job; ``cost`` is in nano-dollars, None where no price was
    ever known.
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
    """What an export needs of a job. ``value`` is the current answer, present only where the job is done."""

    key: str
    status: Status
    input_hash: str
    value: Any
    reason: str | None
    error: str | None


def read_answer(row: tuple[str, str, str, str | None, str | None, str | None]) -> Answer:
    """The answer that a store gives: key, status, input_hash, reason, error, and the value as JSON."""
    key, status, input_hash, reason, error, value = row
    return Answer(
        key, _STATUSES[status], input_hash, None if value is None else json_values.read_back(value), reason, error
    )


_STATUSES = {status.value: status for status in Status}


@dataclass(frozen=True, slots=True)
class LastCall:
    """What a job's last call came to: ``at`` is ISO-8601 UTC text, ``body`` the start of a reply without an answer."""

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

    ``host`` and ``pid`` are those of its process, None where the store no longer knows.
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
    """Places that a reservation gave; all in seconds from now.

    Attributes:
        leaves: when the calls asked for may leave, in their order; fewer than asked where there are no more places.
        next_in: when the next call may leave.
        rest: how long the target still rests; ``leaves`` and ``next_in`` keep to it.
    """

    leaves: tuple[float, ...]
    next_in: float
    rest: float


@dataclass(frozen=True, slots=True)
class LiveOrders:
    """What a live run follows: settings by name, as they were written, and the seconds that its target rests."""

    settings: Mapping[str, str]
    rest: float


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """An answer that was made elsewhere: DONE, FAIL, or RELEASE where the record was not its cause."""

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

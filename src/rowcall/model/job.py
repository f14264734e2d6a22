"""A record of the input, and the job that it becomes in the store."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class Status(StrEnum):
    """The state of a job."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Record(NamedTuple):
    """One input item: its values by column, where it was read (``reviews.csv:17``), and its key if it has one."""

    data: dict[str, Any]
    where: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed job. ``(row, epoch)`` refers to this claim and to no other.

    Attributes:
        row: the job's number in the store.
        key: the record's business id, unique within its kind.
        epoch: the number of this claim; it only grows.
        attempts: calls charged to the record so far.
        crashes: how many processes died while they held it, since the last settle.
        rejected: the reasons of the answers among ``attempts`` that broke the acceptance contract.
        fresh: it was never called and never put back with a delay.
        request: the store's number of the request it was enqueued under.
        input_hash: the hash of the values that its request uses.
        data: the record.
    """

    row: int
    key: str
    epoch: int
    attempts: int
    crashes: int
    rejected: tuple[str, ...]
    fresh: bool
    request: int
    input_hash: str
    data: dict[str, Any]

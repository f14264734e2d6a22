"""Checks of records before they are enqueued: keys that no store can hold, and duplicate keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rowcall.model.errors import DuplicateKey, InputError
from rowcall.model.job import Status
from rowcall.store.types import Entry

CHUNK = 1000
"""Entries of one transaction."""

UNCHANGED: dict[str, str] = {
    Status.PENDING: "waiting",
    Status.RUNNING: "waiting",
    Status.DONE: "done",
    Status.FAILED: "failed",
    Status.CANCELLED: "cancelled",
}
"""What an unchanged record counts as, by the status of its job."""


@dataclass(frozen=True, slots=True)
class EnqueueTarget:
    """What all entries of one ``enqueue`` share."""

    kind: str
    pass_: int
    request: int
    batch: str


def require_keys(entries: Sequence[Entry]) -> None:
    """Refuse keys that no store can hold or compare.

    Raises:
        InputError: a NUL character or a lone surrogate in a key.
    """
    keys = "".join([entry.key for entry in entries])
    if keys.isascii() and "\0" not in keys:
        return
    for entry in entries:
        if "\0" in entry.key:
            raise InputError(entry.where, "the key contains a NUL character", remedy="Remove it, or use another key.")
        try:
            entry.key.encode()
        except UnicodeEncodeError:
            raise InputError(entry.where, "the key is not valid text (a lone surrogate)", remedy="Clean it.") from None


def digest(entry: Entry) -> int:
    """64 bits that differ between two contents, with near certainty; they mean nothing to other processes."""
    return hash(entry.payload)


def clash(entry: Entry, place: str) -> DuplicateKey:
    """What to raise for a key that is already that of a different record."""
    return DuplicateKey(
        entry.where,
        f"the key {entry.key!r} is already that of a different record, at {place}",
        remedy="Make the keys unique, or remove one of the two records.",
    )

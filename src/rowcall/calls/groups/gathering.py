"""Records on their way into one request."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from rowcall.calls.requests import Departure
from rowcall.model.job import Job
from rowcall.model.outcome import Outcome
from rowcall.providers.base import Request

WINDOW = 0.05
"""Seconds that a group which is not full is open for more records, at least."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large groups are.

    Attributes:
        records: most of them in one request.
        characters: of their texts together, most; None: any number. A longer text goes by itself.
    """

    records: int
    characters: int | None = None


def _outcome() -> asyncio.Future[Outcome | None]:
    return asyncio.get_running_loop().create_future()


@dataclass(frozen=True, slots=True, eq=False)
class GroupMember:
    """One record of a group.

    Attributes:
        job: the record.
        departure: of its call.
        request: what is sent where it goes by itself.
        text: what it asks about.
        outcome: what its call gives; None: it is put back.
    """

    job: Job
    departure: Departure
    request: Request
    text: str
    outcome: asyncio.Future[Outcome | None] = field(default_factory=_outcome)

    @property
    def waits(self) -> bool:
        """Its call has come to nothing yet, and was not dropped."""
        return not self.outcome.done()

    @property
    def weight(self) -> int:
        """Its share of what a request is billed for, by its characters."""
        return len(self.text) + 1

    def give(self, outcome: Outcome | None) -> None:
        """Its call has come to this."""
        if self.waits:
            self.outcome.set_result(outcome)


class Gathering:
    """A group that takes records until it is full, or closed.

    Args:
        size: how many.

    Attributes:
        members: the records in it, in the order in which they came.
    """

    def __init__(self, size: Size) -> None:
        self._size = size
        self._characters = 0
        self._closed = asyncio.Event()
        self.members: list[GroupMember] = []

    def has_room_for(self, member: GroupMember) -> bool:
        """Whether one more may come in; the first one always may."""
        if self._closed.is_set():
            return False
        most = self._size.characters
        return not self.members or most is None or self._characters + len(member.text) <= most

    def add(self, member: GroupMember) -> None:
        """Take a record in; the last that there is room for closes the group."""
        self.members.append(member)
        self._characters += len(member.text)
        if len(self.members) >= self._size.records:
            self.close()

    def close(self) -> None:
        """Take no more."""
        self._closed.set()

    async def gathered(self) -> None:
        """Wait until it is closed, for 50 ms at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(WINDOW):
                await self._closed.wait()

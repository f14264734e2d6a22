"""Gathers records into one request."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from rowcall.calls.door import Departure
from rowcall.model.job import Job
from rowcall.model.outcome import Outcome
from rowcall.providers.base import Request

WINDOW = 0.05
"""Seconds for which a group that is not full stays open for more records."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a group may be.

    Attributes:
        records: records in one request, at most.
        characters: characters of all their texts, at most; None: any number. A longer text is sent alone.
    """

    records: int
    characters: int | None = None


def _outcome() -> asyncio.Future[Outcome | None]:
    return asyncio.get_running_loop().create_future()


@dataclass(frozen=True, slots=True, eq=False)
class GroupMember:
    """One record of a group.

    Attributes:
        job: the record's job.
        departure: of its call.
        request: its own request, for when it is sent alone.
        text: what its request asks about.
        outcome: becomes the outcome of its call; None: the job is put back.
    """

    job: Job
    departure: Departure
    request: Request
    text: str
    outcome: asyncio.Future[Outcome | None] = field(default_factory=_outcome)

    @property
    def waits(self) -> bool:
        """It has no outcome yet, and was not dropped."""
        return not self.outcome.done()

    @property
    def weight(self) -> int:
        """Its share of a request's bill, by its characters."""
        return len(self.text) + 1

    def give(self, outcome: Outcome | None) -> None:
        """Set the outcome of its call, if it has none yet."""
        if self.waits:
            self.outcome.set_result(outcome)


class Gathering:
    """A group that takes records until it is full or closed.

    Args:
        size: how many it takes.

    Attributes:
        members: the records in it, in the order of their arrival.
    """

    def __init__(self, size: Size) -> None:
        self._size = size
        self._characters = 0
        self._closed = asyncio.Event()
        self.members: list[GroupMember] = []

    @property
    def waiting(self) -> list[GroupMember]:
        """Members without an outcome."""
        return [member for member in self.members if member.waits]

    def has_room_for(self, member: GroupMember) -> bool:
        """Whether this record may be added; the first one always may."""
        if self._closed.is_set():
            return False
        most = self._size.characters
        return not self.members or most is None or self._characters + len(member.text) <= most

    def add(self, member: GroupMember) -> None:
        """Add a record; a group that is full then is closed."""
        self.members.append(member)
        self._characters += len(member.text)
        if len(self.members) >= self._size.records:
            self.close()

    def close(self) -> None:
        """Take no more records."""
        self._closed.set()

    async def gathered(self) -> None:
        """Wait until it is closed, for 50 ms at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(WINDOW):
                await self._closed.wait()

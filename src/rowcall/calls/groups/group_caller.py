"""The third kind of call: one request for many records.

What a reply says is each record's own outcome. Where a group of several comes to nothing, a failure is never laid at
the door of records that may have nothing to do with it:

    refused, or no answer for each    halves, each sent again, down to the one that is refused alone
    server, maybe sent                one record of it is asked for alone: if that fails too, it keeps that failure, as
                                      any single call would, and the others are put back as if never claimed; if it
                                      has an answer, the trouble is in the group: halves
    anything else                     one record has the failure, and the others are put back

So the gate sees one departure and at most one failure for each request, an outage costs two requests a group, and
a record that always fails is found by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic

from rowcall.calls.groups.gathering import Gathering, GroupMember, Size
from rowcall.calls.groups.split_usage import divided
from rowcall.calls.requests import CallResources, Departure, exchange, request_of
from rowcall.limits.room import Room
from rowcall.limits.slots import Slots
from rowcall.model.job import Job
from rowcall.model.outcome import Failure, FailureClass, Outcome, Reply, Success, Usage
from rowcall.model.prices import guess
from rowcall.providers.base import CallContext, Request
from rowcall.providers.group_requests import Grouping

_REFUSED = (FailureClass.RECORD, FailureClass.ANSWER)
_TROUBLE = (FailureClass.SERVER, FailureClass.MAYBE_SENT)


class GroupCaller:
    """Gathers the jobs that it is given into requests, and gives each its own outcome.

    The first job of a run, a probe, a job that failed before, and one that asks about no text, go by themselves.

    Args:
        grouping: puts requests together.
        size: of the groups.
        wire: what the run lends.
    """

    takes_places = True

    def __init__(self, grouping: Grouping, size: Size, wire: CallResources) -> None:
        self._grouping = grouping
        self._provider = grouping.provider
        self._size = size
        self.together = size.records
        self._wire = wire
        self._slots = Slots(wire.concurrency)
        self._room = Room(wire.adaptive)
        self._open: Gathering | None = None
        self._on_the_way: dict[Gathering, asyncio.Task[None]] = {}
        self._paid: dict[int, Usage] = {}

    async def call(self, job: Job, departure: Departure) -> Outcome | None:
        """Make the job's call, with others where it may."""
        request = self._request(job)
        if isinstance(request, Failure):
            return request
        text = self._grouping.text_of(request)
        if text is None or job.attempts or departure.alone or departure.fresh:
            outcome = await self._by_itself(job, departure, request)
        else:
            outcome = await self._in_group(GroupMember(job, departure, request, text))
        return outcome and replace(outcome, usage=outcome.usage + self._paid.pop(job.row, Usage()))

    def resize(self, concurrency: int) -> None:
        """Let so many requests be in flight."""
        self._slots.resize(concurrency)

    def guess(self, job: Job) -> int:
        """By the characters of its own request; where each reply costs, by its share of a full group's."""
        request, prices = self._request(job), self._wire.prices
        if prices is None or isinstance(request, Failure):
            return 0
        return prices.cost(guess(request.content)) + prices.per_call // self._size.records

    def close(self) -> None:
        """Nothing to let go: groups end with their last record."""

    def _request(self, job: Job) -> Request | Failure:
        return request_of(self._provider, job, CallContext(self._wire.call_key(job)))

    async def _by_itself(self, job: Job, departure: Departure, request: Request) -> Outcome | None:
        async with self._slots:
            return await self._exchange(request, job, departure, self._provider.read)

    # Gathering

    async def _in_group(self, member: GroupMember) -> Outcome | None:
        group = self._group_for(member)
        group.add(member)
        try:
            return await member.outcome
        except asyncio.CancelledError:
            self._forsake(group)
            raise

    def _group_for(self, member: GroupMember) -> Gathering:
        if self._open is None or not self._open.has_room_for(member):
            if self._open:
                self._open.close()
            self._open = Gathering(self._size)
            self._on_the_way[self._open] = asyncio.create_task(self._carry(self._open))
        return self._open

    def _forsake(self, group: Gathering) -> None:
        """A call was dropped; with the last of its group the request is dropped, too."""
        task = self._on_the_way.get(group)
        if task and not task.cancelling() and not any(member.waits for member in group.members):
            group.close()  # whoever comes next begins another
            task.cancel()

    async def _carry(self, group: Gathering) -> None:
        """Take a group through to the outcomes of all its members."""
        try:
            await group.gathered()
            async with self._slots:
                group.close()
                await self._resolve(group.members)
        except Exception as error:  # noqa: BLE001  a bug is for those who wait to raise, and not for this task alone
            for member in filter(_waits, group.members):
                member.outcome.set_exception(error)
        finally:
            del self._on_the_way[group]

    # Asking and splitting

    async def _resolve(self, members: Sequence[GroupMember], *, part: bool = False) -> None:
        """Ask for several records until each has its outcome; ``part``: of a group that came to nothing."""
        members = list(filter(_waits, members))
        if not members:
            return
        outcome = await self._ask(members, patient=part)
        if outcome is None:
            _put_back(members)
        elif len(members) == 1:
            members[0].give(outcome)
        elif isinstance(outcome, Success):
            self._hand_out(members, outcome)
        else:
            await self._split(members, self._billed(members, outcome), part=part)

    async def _ask(self, members: Sequence[GroupMember], *, patient: bool) -> Outcome | None:
        """One request, whose departure is its own: a member may be dropped meanwhile."""
        first, departure = members[0], members[0].departure.another()
        try:
            outcome = await self._exchange(
                self._joined(members), first.job, departure, self._reader(members), patient=patient
            )
        finally:
            departure.arrive()
        for member in members:
            member.departure.follow(departure)
        return outcome

    async def _exchange(
        self,
        request: Request,
        job: Job,
        departure: Departure,
        read: Callable[[Reply], Outcome],
        *,
        patient: bool = False,
    ) -> Outcome | None:
        """Send a request at its place in the pace."""
        if departure.held:
            return None
        try:
            await self._turn()
            outcome = await exchange(self._wire, request, job, departure, read, patient=patient)
        finally:
            if departure.number is None:
                self._wire.rate.give_back()
            self._room.wake()
        return outcome

    async def _turn(self) -> None:
        """Wait until the rate lets the next request leave, and until there is room for it."""
        leaves = self._wire.rate.take(monotonic())
        await asyncio.sleep(leaves - monotonic())
        while not self._room.is_free:
            await self._room.more()

    def _joined(self, members: Sequence[GroupMember]) -> Request:
        if len(members) == 1:
            return members[0].request
        keys = [self._wire.call_key(member.job) for member in members]
        return self._grouping.build(members[0].job.data, [member.text for member in members], keys)

    def _reader(self, members: Sequence[GroupMember]) -> Callable[[Reply], Outcome]:
        if len(members) == 1:
            return self._provider.read
        return partial(self._grouping.read, count=len(members))

    def _hand_out(self, members: Sequence[GroupMember], reply: Success) -> None:
        """To each its own outcome, with its share of what the reply was billed for."""
        for member, outcome, usage in zip(members, reply.value, _shares(members, reply.usage), strict=True):
            member.give(replace(outcome, usage=usage))

    def _billed(self, members: Sequence[GroupMember], failure: Failure) -> Failure:
        """The failure of a reply, whose bill all of them share."""
        for member, usage in zip(members, _shares(members, failure.usage), strict=True):
            self._paid[member.job.row] = self._paid.get(member.job.row, Usage()) + usage
        return replace(failure, usage=Usage())

    async def _split(self, members: Sequence[GroupMember], failure: Failure, *, part: bool) -> None:
        if failure.cls in _REFUSED or (part and failure.cls in _TROUBLE):
            await self._halve(members)
        elif failure.cls in _TROUBLE:
            await self._try_one(members)
        else:
            members[0].give(failure)
            _put_back(members[1:])

    async def _try_one(self, members: Sequence[GroupMember]) -> None:
        """Find out whether the trouble is the API's or the group's."""
        one, *others = members
        await self._resolve([one], part=True)
        if _has_answer(one):
            await self._halve(others)
        else:
            _put_back(others)

    async def _halve(self, members: Sequence[GroupMember]) -> None:
        middle = len(members) // 2
        await self._resolve(members[:middle], part=True)
        await self._resolve(members[middle:], part=True)


def _waits(member: GroupMember) -> bool:
    return member.waits


def _shares(members: Sequence[GroupMember], usage: Usage) -> list[Usage]:
    return divided(usage, [member.weight for member in members])


def _put_back(members: Sequence[GroupMember]) -> None:
    for member in members:
        member.give(None)


def _has_answer(member: GroupMember) -> bool:
    """Whether the API had something to say about this record."""
    outcome = None if member.outcome.cancelled() else member.outcome.result()
    return isinstance(outcome, Success) or (outcome is not None and outcome.cls in _REFUSED)

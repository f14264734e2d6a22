"""The third kind of call: one request for a group of records.

A reply holds each record's own outcome. When a request for several records fails, the failure is never charged to
records that may have nothing to do with it:

    refused, or not one answer        the group is halved and each half sent again, down to the one record that is
    for each record                   refused by itself
    server error, maybe sent          one record of the group is sent alone. If that fails too, it keeps the failure, as
                                      any single call would, and the others are put back as if never claimed. If it is
                                      answered, the trouble is in the group, which is halved
    anything else                     one record gets the failure, and the others are put back

So the gate sees one departure and at most one failure for each request, an outage costs two requests for each group,
and a record that always fails is found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic

from rowcall.calls.door import Departure
from rowcall.calls.groups.gathering import Gathering, GroupMember, Size
from rowcall.calls.groups.split_usage import divided
from rowcall.calls.requests import CallResources, exchange, request_of
from rowcall.limits.concurrency import RequestSlots
from rowcall.model.job import Job
from rowcall.model.outcome import Failure, FailureClass, Outcome, Reply, Success, Usage
from rowcall.model.prices import guess
from rowcall.providers.base import CallContext, Request
from rowcall.providers.group_requests import Grouping

_REFUSED = (FailureClass.RECORD, FailureClass.ANSWER)
_TROUBLE = (FailureClass.SERVER, FailureClass.MAYBE_SENT)


class GroupCaller:
    """Gathers jobs into shared requests and gives each job its own outcome.

    Sent alone are the first job of a run, a probe, a job that failed before, and a job without a text to group by.

    Args:
        grouping: joins several requests into one.
        size: the largest group.
        resources: what the run shares with all calls.
    """

    waits_by_request = True

    def __init__(self, grouping: Grouping, size: Size, resources: CallResources) -> None:
        self._grouping = grouping
        self._provider = grouping.provider
        self._size = size
        self.records_per_request = size.records
        self._resources = resources
        self._door = resources.door
        self._slots = RequestSlots(resources.door.concurrency)
        self._open: Gathering | None = None
        self._tasks: dict[Gathering, asyncio.Task[None]] = {}
        self._billed: dict[int, Usage] = {}

    async def call(self, job: Job, departure: Departure) -> Outcome | None:
        """Make the job's call, together with others where that is possible."""
        request = self._request(job)
        if isinstance(request, Failure):
            return request
        text = self._grouping.text_of(request)
        if text is None or job.attempts or departure.alone or departure.fresh:
            outcome = await self._send_alone(job, departure, request)
        else:
            outcome = await self._send_in_group(GroupMember(job, departure, request, text))
        return outcome and replace(outcome, usage=outcome.usage + self._billed.pop(job.row, Usage()))

    def guess(self, job: Job) -> int:
        """Estimate the cost by the characters of the job's own request; a price per call is shared by a full group."""
        request, prices = self._request(job), self._resources.prices
        if prices is None or isinstance(request, Failure):
            return 0
        return prices.cost(guess(request.content)) + prices.per_call // self._size.records

    def close(self) -> None:
        """There is nothing to free: a group ends with its last record."""

    def _request(self, job: Job) -> Request | Failure:
        return request_of(self._provider, job, CallContext(self._resources.call_key(job)))

    async def _send_alone(self, job: Job, departure: Departure, request: Request) -> Outcome | None:
        async with self._slots:
            return await self._exchange(request, job, departure, self._provider.read)

    # Gathering

    async def _send_in_group(self, member: GroupMember) -> Outcome | None:
        group = self._group_for(member)
        group.add(member)
        try:
            return await member.outcome
        except asyncio.CancelledError:
            self._drop_if_unwanted(group)
            raise

    def _group_for(self, member: GroupMember) -> Gathering:
        if self._open is None or not self._open.has_room_for(member):
            if self._open:
                self._open.close()
            self._open = Gathering(self._size)
            self._tasks[self._open] = asyncio.create_task(self._carry(self._open))
        return self._open

    def _drop_if_unwanted(self, group: Gathering) -> None:
        """Drop a group's request once the calls of all its members were dropped."""
        task = self._tasks.get(group)
        if task and not task.cancelling() and not group.waiting:
            group.close()  # the next record begins another group
            task.cancel()

    async def _carry(self, group: Gathering) -> None:
        """See a group through until each member has its outcome."""
        try:
            await group.gathered()
            async with self._slots:
                group.close()
                await self._resolve(group.members)
        except Exception as error:  # noqa: BLE001  a bug is raised where the members wait, not in this task alone
            for member in group.waiting:
                member.outcome.set_exception(error)
        finally:
            del self._tasks[group]

    # Sending and splitting

    async def _resolve(self, members: Sequence[GroupMember], *, part: bool = False) -> None:
        """Send requests for several records until each has its outcome; ``part``: their group has failed."""
        members = [member for member in members if member.waits]
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
            await self._split(members, self._bill(members, outcome), part=part)

    async def _ask(self, members: Sequence[GroupMember], *, patient: bool) -> Outcome | None:
        """Send one request, with a departure of its own, since any member may be dropped meanwhile."""
        first, departure = members[0], members[0].departure.for_group()
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
        """Send a request as soon as the limits allow."""
        if departure.held:
            return None
        try:
            await asyncio.sleep(self._door.take(monotonic()) - monotonic())
            await self._slots.room()
            outcome = await exchange(self._resources, request, job, departure, read, patient=patient)
        finally:
            if departure.number is None:
                self._door.give_back()
            self._slots.wake()
        return outcome

    def _joined(self, members: Sequence[GroupMember]) -> Request:
        if len(members) == 1:
            return members[0].request
        keys = [self._resources.call_key(member.job) for member in members]
        return self._grouping.build(members[0].job.data, [member.text for member in members], keys)

    def _reader(self, members: Sequence[GroupMember]) -> Callable[[Reply], Outcome]:
        if len(members) == 1:
            return self._provider.read
        return partial(self._grouping.read, count=len(members))

    def _hand_out(self, members: Sequence[GroupMember], reply: Success) -> None:
        """Give each member its own outcome, with its share of what the reply was billed for."""
        for member, outcome, usage in zip(members, reply.value, _shares(members, reply.usage), strict=True):
            member.give(replace(outcome, usage=usage))

    def _bill(self, members: Sequence[GroupMember], failure: Failure) -> Failure:
        """Divide what a failed request was billed for among its members; returns the failure without that bill."""
        for member, usage in zip(members, _shares(members, failure.usage), strict=True):
            self._billed[member.job.row] = self._billed.get(member.job.row, Usage()) + usage
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
        """Send one member alone, to find out whether the trouble is the API's or the group's."""
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


def _shares(members: Sequence[GroupMember], usage: Usage) -> list[Usage]:
    return divided(usage, [member.weight for member in members])


def _put_back(members: Sequence[GroupMember]) -> None:
    for member in members:
        member.give(None)


def _has_answer(member: GroupMember) -> bool:
    """Whether the API answered for this record, be it with a refusal."""
    outcome = None if member.outcome.cancelled() else member.outcome.result()
    return isinstance(outcome, Success) or (outcome is not None and outcome.cls in _REFUSED)

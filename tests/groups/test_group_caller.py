"""Calls that share a request, one by one."""

from __future__ import annotations

import asyncio

import pytest
from providerkit import make_provider

from rowcall.calls.door import Departure, Door
from rowcall.calls.groups import GroupCaller, Size
from rowcall.calls.groups.gathering import WINDOW
from rowcall.calls.requests import CallResources
from rowcall.client import Client
from rowcall.failures.gate import Gate
from rowcall.limits.concurrency import Concurrency
from rowcall.limits.server_limits import ServerLimits
from rowcall.mock.embedding import embedding
from rowcall.model.job import Job
from rowcall.model.outcome import Failure, FailureClass, Success
from rowcall.providers.group_requests import Grouping

BODY = {"model": "m", "input": "{{ row.text }}"}


def job(number, attempts=0, **data):
    return Job(number, f"{number}", 1, attempts, 0, (), True, 1, "h", data)


class Calls:
    """A caller in front of a server, with a gate that has seen a first answer; ``start`` begins a job's call."""

    def __init__(self, api, client, *, concurrency=2, narrowed=None):
        self.gate, self.numbers = Gate(), []
        self.gate.arrive(self.gate.depart(0.0), 0.0)
        self.provider = make_provider("openai", base_url=api.url, path="/embeddings", body=BODY)
        server = ServerLimits(Concurrency(concurrency), learns=False)
        if narrowed:
            server.concurrency.narrow(narrowed)
        self.door = Door(self.gate, server)
        wire = CallResources(client, self.door, lambda job: job.key, lambda event: None)
        self.caller = GroupCaller(Grouping(self.provider, BODY), Size(3), wire)

    def start(self, number, *, attempts=0):
        return asyncio.create_task(self.make(job(number, attempts, text=f"text {number}")))

    async def make(self, job):
        departure = Departure(self.door)
        try:
            return await self.caller.call(job, departure)
        finally:
            self.numbers.append(departure.number)


@pytest.fixture
async def calls(api):
    async with Client(concurrency=10, timeout=5) as client:
        yield Calls(api, client)


async def test_one_departure_for_all(calls, api):
    """The gate sees one call where one request leaves, and it has arrived when they have their answers."""
    outcomes = await asyncio.gather(*map(calls.start, range(3)))
    assert [outcome.value for outcome in outcomes] == [embedding(f"text {n}") for n in range(3)]
    assert calls.gate.sent == 2
    assert calls.numbers == [2, 2, 2]
    assert not calls.gate._in_flight
    assert len(api.calls) == 1


async def test_a_group_grows_until_it_can_leave(api):
    """While no more requests may be in flight the next group takes records in, however long that is."""
    api.latency = 0.3
    async with Client(concurrency=10, timeout=5) as client:
        calls = Calls(api, client, concurrency=1)
        tasks = [calls.start(n) for n in range(4)]
        await api.wait_in_flight(1)
        await asyncio.sleep(2 * WINDOW)
        await asyncio.gather(*tasks, calls.start(4), calls.start(5))
    assert [call.text for call in api.calls] == ["text 0\ntext 1\ntext 2", "text 3\ntext 4\ntext 5"]


async def test_where_the_api_takes_fewer_at_a_time(api):
    """Groups wait for room, which can be less than the concurrency."""
    async with Client(concurrency=10, timeout=5) as client:
        calls = Calls(api, client, concurrency=4, narrowed=1)
        await asyncio.gather(*map(calls.start, range(12)))
    assert (len(api.calls), api.max_in_flight) == (4, 1)


async def test_a_call_that_is_dropped(calls, api):
    """The others have their answers; where the first of a group is dropped, too."""
    api.latency = 0.1
    first, *others = map(calls.start, range(3))
    await api.wait_in_flight(1)
    first.cancel()
    assert [outcome.value for outcome in await asyncio.gather(*others)] == [embedding("text 1"), embedding("text 2")]
    assert first.cancelled()
    assert calls.numbers == [None, 2, 2]


async def test_all_calls_are_dropped(calls, api):
    """With the last of them the request is dropped, and the gate does not wait for it."""
    api.latency = 60
    tasks = [calls.start(n) for n in range(3)]
    await api.wait_in_flight(1)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await asyncio.wait_for(api.wait_in_flight(0), 2)
    assert api.calls[0].status == "dropped"
    assert not calls.gate._in_flight


async def test_dropped_before_they_leave(calls, api):
    """Nothing is sent for a group that nobody waits for, nor for the one of it that was dropped."""
    calls.start(1).cancel()
    lone, *both = map(calls.start, range(2, 5))
    await asyncio.sleep(0)
    lone.cancel()
    await asyncio.gather(*both)
    assert [call.text for call in api.calls] == ["text 3\ntext 4"]


async def test_a_bug_reaches_everybody(calls, monkeypatch):
    """An exception of our own is raised where the calls are awaited, so that the run ends by it."""
    monkeypatch.setattr(calls.caller._grouping, "read", None)
    raised = await asyncio.gather(*map(calls.start, range(3)), return_exceptions=True)
    assert {type(error) for error in raised} == {TypeError}


async def test_the_server_fails_on_a_group_and_on_one_of_it(calls, api):
    """That one keeps the failure, and the others are put back as if never claimed."""
    api.outage = "503"
    first, *others = await asyncio.gather(*map(calls.start, range(3)))
    assert isinstance(first, Failure)
    assert first.status == 503
    assert others == [None, None]
    assert [call.text for call in api.calls] == ["text 0\ntext 1\ntext 2", "text 0"]


async def test_too_fast(calls, api):
    """One record has the refusal, with its wait; the others are put back, and nothing is sent again."""
    api.capacity = 0
    first, *others = await asyncio.gather(*map(calls.start, range(3)))
    assert (first.reason, first.retry_after) == ("rate_limited", 1.0)
    assert others == [None, None]
    assert len(api.calls) == 1


async def test_a_group_while_the_api_is_offline(calls, api):
    """Whoever gathers when the gate closes is put back, and nothing leaves."""
    tasks = [calls.start(n) for n in range(2)]
    await asyncio.sleep(0)
    for number in range(7, 10):
        failure = Failure(FailureClass.SERVER, "http_503", "no", 503)
        calls.gate.hold(job(number, text="a"), failure, probe=False, now=0.0)
    assert await asyncio.gather(*tasks) == [None, None]
    assert not api.calls


async def test_those_that_failed_before_go_alone(calls, api):
    """A charged attempt was made: the next one disturbs nobody."""
    outcomes = await asyncio.gather(calls.start(1, attempts=1), calls.start(2), calls.start(3))
    assert all(isinstance(outcome, Success) for outcome in outcomes)
    assert sorted(call.text for call in api.calls) == ["text 1", "text 2\ntext 3"]


async def test_a_record_that_does_not_fit_the_template(calls, api):
    """It fails by itself, and nothing waits for it."""
    assert (await calls.make(job(1))).reason == "template_error"
    assert not api.calls


async def test_a_dropped_group_takes_nobody_in(calls):
    """A call that comes after the only member of a group was dropped begins another group."""
    dropped = calls.start(1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    dropped.cancel()
    await asyncio.wait([dropped])
    assert (await asyncio.wait_for(calls.start(2), 4)).value == embedding("text 2")

"""Tokens, cost, limits and crashes of runs in groups."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from aiohttp import web
from groupkit import holding, texts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.calls.groups.split_usage import shares
from rowcall.mock.embedding import embedding

PRICE = 1234.567  # dollars for a million tokens: nothing divides evenly
PRICES = f"[price]\ninput = {PRICE}\nper_call = 0.0000017\n"


@given(total=st.integers(0, 10**15), weights=st.lists(st.integers(1, 10**6), min_size=1, max_size=50))
@settings(max_examples=60, deadline=None)
def test_shares(total, weights):
    """They add up, and none is further than one from its exact part."""
    given = shares(total, weights)
    assert sum(given) == total
    assert all(
        abs(share * sum(weights) - total * weight) < sum(weights) for share, weight in zip(given, weights, strict=True)
    )


class Till:
    """Answers by hand, and bills; ``broken`` are groups whose reply is not what it should be."""

    def __init__(self):
        self.broken = lambda texts: False
        self.break_ = lambda data: data[1:]
        self.tokens = self.calls = 0

    def __call__(self, call):
        texts = texts_of(call)
        used = sum(map(len, texts)) // 3
        self.tokens, self.calls = self.tokens + used, self.calls + 1
        data = [{"index": n, "embedding": embedding(text)} for n, text in enumerate(texts)][::-1]
        if self.broken(texts):
            data = self.break_(data)
        usage = {"prompt_tokens": used, "total_tokens": used}
        return web.Response(body=orjson.dumps({"data": data, "usage": usage}), content_type="application/json")


@pytest.fixture
def till(api):
    api.respond = Till()
    return api.respond


def spent(project):
    return project.sql("SELECT input_tokens, cost FROM totals")[0]


def billed(till, api):
    """What the server billed, in nano-dollars: each call rounded once."""
    return sum(map(billed_for, api.calls))


def billed_for(call):
    return round(sum(map(len, texts_of(call))) // 3 * PRICE * 1000) + 1700


async def test_sums_are_exact(project, api, till):
    """The tokens and the cost of the records add up to what the server billed; answers in any order find their rows."""
    project.write(333, more=PRICES)
    await project.go()
    assert spent(project) == (till.tokens, billed(till, api))
    assert project.sql("SELECT sum(input_tokens), sum(cost) FROM jobs") == [(till.tokens, billed(till, api))]
    assert project.answers() == {f"k{n}": embedding(f"text number {n}") for n in range(333)}


def other_indexes(data):
    return [answer | {"index": answer["index"] + 1} for answer in data]


def twice_the_same(data):
    return [*data[:-1], data[0]]


@pytest.mark.parametrize("break_", [lambda data: data[1:], lambda data: data + data[:1], other_indexes, twice_the_same])
async def test_an_answer_that_does_not_fit(project, api, till, break_):
    """Fewer, more or other answers than records are none; halves are asked, and what was billed is counted."""
    project.write(41, more=PRICES)
    till.broken, till.break_ = (lambda texts: len(texts) > 10), break_
    report = await project.read_first()
    assert (report.done, set(project.outcomes("done").values())) == (41, {1})
    assert project.sizes == [1, 40, 20, 10, 10, 20, 10, 10]
    assert spent(project) == (till.tokens, billed(till, api))
    assert project.answers() == {f"k{n}": embedding(f"text number {n}") for n in range(41)}


async def test_one_answer_that_is_none(project, api, till):
    """A record whose own answer is null is asked again alone; its neighbours have theirs."""
    project.write(30)
    till.broken = lambda texts: len(texts) > 1
    till.break_ = lambda data: [
        answer | {"embedding": answer["embedding"] if answer["index"] else None} for answer in data
    ]
    report = await project.read_first()
    assert report.done == 30
    assert project.sizes == [1, 29, 1]
    assert project.sql("SELECT reason, count(*) FROM tries") == [("empty", 1)]


async def test_max_cost(project, api, till):
    """A run stops before the next call would pass the limit, and goes on with another."""
    project.write(300, size=20, concurrency=1, more=PRICES)
    report = await project.go(stop__max_cost=0.9)
    assert report.ending.reason == "max_cost"
    assert 0 < report.done < 300
    assert spent(project)[1] < 0.9e9 + max(billed_for(call) for call in api.calls)
    assert (await project.go(stop__max_cost=100)).done == 300


async def test_a_limit_of_requests(project, api):
    """A group takes one place: 301 records in groups of 100 need four of them, whatever a second allows."""
    project.write(301)
    report = await project.read_first(pace__requests="5/s")
    assert report.done == 301
    assert project.sizes == [1, 100, 100, 100]


async def test_a_limit_of_tokens(project, api):
    """All texts of a group count, so that groups wait for their tokens."""
    project.write(61, size=20)
    report = await project.read_first(pace__tokens="200/s")
    assert report.done == 61
    arrived = [call.arrived for call in api.calls]
    assert project.sizes[:2] == [1, 20]
    assert arrived[-1] - arrived[0] >= 0.5


async def test_idempotency_keys(project, api):
    """A group has a key of its own, the same for the same records in another run and another for others."""
    project.write(201)
    await project.read_first()
    keys = [call.headers["Idempotency-Key"] for call in api.calls]
    assert len(set(keys)) == len(keys) == 3
    (project.folder / "t.db").unlink()
    api.calls.clear()
    await project.read_first()
    assert sorted(call.headers["Idempotency-Key"] for call in api.calls) == sorted(keys)


async def test_an_outage_costs_few_requests(project, api):
    """Each group asks twice, and the records that were put back go on until three have failed."""
    project.write(600, size=20, concurrency=4)
    closed = asyncio.Event()

    def hear(event):
        if type(event).__name__ == "GateClosed" and not closed.is_set():
            closed.arrived = api.arrived
            closed.set()

    run = asyncio.create_task(project.go(emit=hear))
    await asyncio.wait_for(api.wait_for_calls(4), 5)
    api.outage, before = "503", api.arrived
    await asyncio.wait_for(closed.wait(), 5)
    api.outage = None
    assert closed.arrived - before <= 4 * 2 + 2 * 3
    assert (await run).done == 600


async def test_kill_and_go_on(project, api):
    """A killed process repeats at most the groups in flight and those not yet written."""
    api.latency = 0.03
    project.write(400, size=20, concurrency=2)
    process = await project.start("run")
    await asyncio.wait_for(api.wait_for_calls(8), 20)
    await project.kill(process)
    await asyncio.wait_for(api.wait_in_flight(0), 5)
    report = await project.go()
    assert report.done == 400
    assert sum(project.sizes) - 400 <= 2 * 20 + 2 * 40
    assert set(project.outcomes("done").values()) == {1}


async def test_a_stop_in_the_middle_of_a_split(project, api):
    """Whatever was not yet asked again goes back uncharged."""
    project.write(100, size=100)
    api.poison = holding("text number 50", 400)
    api.latency = 0.05
    process = await project.start("run")
    await asyncio.wait_for(api.wait_for_calls(4), 20)
    process.terminate()
    await process.communicate()
    assert project.sql("SELECT max(attempts) FROM jobs WHERE status = 'pending'") == [(0,)]
    report = await project.go()
    assert (report.done, report.failed) == (99, 1)

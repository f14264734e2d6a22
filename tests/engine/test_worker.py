"""The worker over a real store and real sockets."""

from __future__ import annotations

import asyncio
from itertools import count
from time import monotonic
from types import SimpleNamespace

import pytest

from rowcall.config.units import FailureLimit
from rowcall.engine.stop_reasons import Ending, StopLimits
from rowcall.failures.retries import RetryPolicy
from rowcall.mock.injected_faults import Faults
from rowcall.model.errors import Busy
from rowcall.model.job import Status
from rowcall.store.types import Selection


async def test_all_records_end(engine):
    """Every record is called once and done."""
    run = await engine(200)
    ending = await run.worker.run()
    assert ending == Ending("done")
    assert await run.counts() == {Status.DONE: 200}
    assert len(run.api.calls) == 200


async def test_concurrency_is_kept_and_reached(engine):
    """As many calls are in flight as allowed, and never one more."""
    run = await engine(120, concurrency=20)
    run.api.latency = 0.05
    await run.worker.run()
    assert run.api.max_in_flight == 20


async def test_three_hundred_in_flight(engine):
    """Three hundred slots against a slow server really are three hundred calls at once."""
    run = await engine(400, concurrency=300)
    run.api.latency = 1.0
    working = asyncio.create_task(run.worker.run())
    await asyncio.wait_for(run.api.wait_in_flight(300), 4)
    run.state.stop(Ending("interrupted"))
    run.worker.drop()
    await working


async def test_the_first_call_goes_alone(engine):
    """Until the first call is answered, no other leaves."""
    run = await engine(30)
    run.api.latency = 0.1
    working = asyncio.create_task(run.worker.run())
    await run.api.wait_for_calls(1)
    first = run.api.calls[0]
    await working
    assert min(call.arrived for call in run.api.calls[1:]) >= first.ended


@pytest.mark.parametrize("verb", ["claim", "left", "settle", "reap", "beat"])
async def test_a_store_that_cannot_be_asked(engine, monkeypatch, verb):
    """A store that is held at every third question of a kind, for longer than it waits, only delays the run."""
    run = await engine(40, beat=0.01)
    ask, asked = getattr(run.store, verb), count()

    async def held_at_times(*args, **kwargs):
        if next(asked) % 3 == 0:
            raise Busy("held")
        return await ask(*args, **kwargs)

    monkeypatch.setattr(run.store, verb, held_at_times)
    assert await run.worker.run() == Ending("done")
    assert await run.counts() == {Status.DONE: 40}
    assert len(run.api.calls) == 40


async def test_a_closed_port_costs_nothing(engine):
    """The port is closed in the middle for a while: all are done, each charged once."""
    run = await engine(150)
    working = asyncio.create_task(run.worker.run())
    await run.api.wait_for_calls(40)
    await run.api.close_port()
    await run.gate_closed()
    await run.api.open_port()
    await working
    assert await run.counts() == {Status.DONE: 150}
    assert set((await run.attempts()).values()) == {1}


@pytest.mark.parametrize("outage", ["503", "reset"])
async def test_trouble_for_all_costs_nothing(engine, outage):
    """Every call fails for a while: all are done afterwards, each charged once."""
    run = await engine(150)
    working = asyncio.create_task(run.worker.run())
    await run.api.wait_for_calls(40)
    run.api.outage = outage
    await run.gate_closed()
    run.api.outage = None
    await working
    assert await run.counts() == {Status.DONE: 150}
    assert set((await run.attempts()).values()) == {1}


async def test_poison_at_the_tail(engine):
    """Three records that always get 500 come last: the run ends and exactly they are failed."""
    run = await engine(60)
    run.api.poison = {"text 57", "text 58", "text 59"}
    assert (await run.worker.run()).reason == "done"
    assert await run.counts() == {Status.DONE: 57, Status.FAILED: 3}
    attempts = await run.attempts()
    assert {attempts[k] for k in ("57", "58", "59")} == {3}


async def test_retry_after_is_kept(engine):
    """No record is called again before its Retry-After, and none is failed or charged for it."""
    run = await engine(80)
    run.api.faults = Faults(rate_limited=0.1, retry_after=0.3)
    await run.worker.run()
    assert run.api.early == 0
    assert run.api.served[429] > 0
    assert set((await run.attempts()).values()) == {1}


async def test_a_limited_run_does_its_number(engine):
    """With a limit of 7, seven records are done and the others are left as they were."""
    run = await engine(50, limit=7)
    ending = await run.worker.run()
    assert ending.reason == "limit"
    assert await run.counts() == {Status.DONE: 7, Status.PENDING: 43}


async def test_a_limited_run_retries_its_own(engine):
    """A limited run sees its failing records to their end, and begins no others for them."""
    run = await engine(50, limit=5)
    run.api.poison = {"text 1", "text 3"}
    await run.worker.run()
    assert await run.counts() == {Status.DONE: 3, Status.FAILED: 2, Status.PENDING: 45}


async def test_stopping_lets_calls_end_and_charges_nothing(engine):
    """A stopped run waits for the calls in flight, keeps their answers and puts the rest back untouched."""
    run = await engine(100, concurrency=10)
    run.api.latency = 0.1
    working = asyncio.create_task(run.worker.run())
    await run.api.wait_in_flight(10)
    run.state.stop(Ending("interrupted"))
    assert (await working).reason == "interrupted"
    await run.store.end_session(run.session)
    counts, attempts = await run.counts(), await run.attempts()
    assert counts[Status.DONE] == len(run.api.calls)
    assert sum(attempts.values()) == counts[Status.DONE]
    assert Status.RUNNING not in counts


async def test_dropping_calls_puts_them_back(engine):
    """Calls that are dropped are charged to nobody; their records are pending again."""
    run = await engine(40, concurrency=10)
    run.api.latency = 0.02
    working = asyncio.create_task(run.worker.run())
    await run.api.wait_for_calls(12)
    run.api.latency = 30
    await run.api.wait_in_flight(10)
    run.state.stop(Ending("interrupted"))
    run.worker.drop()
    await asyncio.wait_for(working, 2)
    await run.store.end_session(run.session)
    counts = await run.counts()
    assert counts[Status.DONE] + counts[Status.PENDING] == 40


async def test_nothing_ever_reached_stops_the_run(engine):
    """When nothing can be reached for as long as the run may try, it stops, and nothing is charged."""
    run = await engine(20, stop_limits=StopLimits(first_success=0.4))
    await run.api.close_port()
    ending = await run.worker.run()
    assert ending.reason == "unreachable"
    assert set((await run.attempts()).values()) == {0}


async def test_an_outage_may_be_given_an_end(engine):
    """With `offline_for` an outage that lasts longer stops the run, uncharged, and the run goes on when asked to."""
    run = await engine(60, stop_limits=StopLimits(offline_for=0.3))
    working = asyncio.create_task(run.worker.run())
    await run.api.wait_for_calls(20)
    await run.api.close_port()
    ending = await working
    assert (ending.reason, "[stop] offline_for" in ending.message) == ("offline", True)
    counts, attempts = await run.counts(), await run.attempts()
    assert sum(attempts.values()) == counts[Status.DONE] == run.api.served[200]
    assert Status.FAILED not in counts


async def test_a_run_may_fail_only_so_many(engine):
    """The record that is one failure too many stops the run; the others stay pending."""
    run = await engine(300, concurrency=2, stop_limits=StopLimits(max_failures=FailureLimit(count=2)))
    run.api.poison = {f"text {n}" for n in range(20, 300, 20)}
    ending = await run.worker.run()
    assert ending.reason == "max_failures"
    assert "more than [stop] max_failures allows (2)" in ending.message
    counts = await run.counts()
    assert counts[Status.FAILED] in (3, 4)
    assert counts[Status.PENDING] > 200


async def test_a_limited_run_ends_when_its_last_record_is_cancelled(engine):
    """A record that a limited run began and that somebody cancels while it waits holds the run up no longer."""
    run = await engine(20, limit=3, policy=RetryPolicy(first=30.0, longest=60.0))
    run.api.poison = {"text 1"}
    working = asyncio.create_task(run.worker.run())
    while (await run.store.job("k", "1")).attempts == 0:
        await run.heard.wait()
        run.heard.clear()
    await run.store.cancel("k", Selection(("1",)))
    assert (await asyncio.wait_for(working, 4)).reason == "limit"
    assert await run.counts() == {Status.DONE: 2, Status.CANCELLED: 1, Status.PENDING: 17}


async def test_a_rest_is_waited_out_without_a_claim(engine):
    """A run that starts while the target rests claims nothing until the rest is over, and then goes on at once."""
    run = await engine(20)
    run.state.door.rest(0.6, "", monotonic())
    working = asyncio.create_task(run.worker.run())
    await asyncio.sleep(0.4)
    assert {job.epoch for job in await run.store._read(_epochs)} == {0}
    await asyncio.wait_for(working, 4)
    assert await run.counts() == {Status.DONE: 20}
    assert {job.epoch for job in await run.store._read(_epochs)} == {1}


def _epochs(connection):
    return [SimpleNamespace(epoch=epoch) for (epoch,) in connection.execute("SELECT epoch FROM jobs")]


async def test_settings_back_by_hand_are_seen(engine):
    """A job that another process sets back while the run waits for its last call is called in this run."""
    run = await engine(20, concurrency=5)
    run.api.latency = 0.05
    working = asyncio.create_task(run.worker.run())
    await run.api.wait_for_calls(19)
    await run.store.retry("k", Selection(("0",), (Status.DONE,)))
    await working
    assert await run.counts() == {Status.DONE: 20}
    assert len(run.api.calls) == 21

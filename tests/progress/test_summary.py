"""The one object behind ``status``, ``--json`` and the finish text."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from rowcall.model.job import Status
from rowcall.model.outcome import Action, Failure, FailureClass, Settlement, Success, Usage
from rowcall.run.summary import summarise
from rowcall.store.sqlite import SQLiteStore
from rowcall.store.types import Entry, Role


@pytest.fixture
async def store(tmp_path):
    async with await SQLiteStore.open(tmp_path / "s.db", durability="normal") as store:
        yield store


async def begun(store, keys):
    session = await store.begin_session()
    request = await store.request("k", "ask")
    run = await store.begin_run(session, "k", {})
    entries = [Entry(key, "hash", "{}", "in.csv:1") for key in keys]
    await store.enqueue("k", entries, pass_=run.pass_, request=request, batch="b")
    return session, run


async def test_a_store_without_a_run(store):
    """Nothing has happened: no time, no rate, no percentiles, and it is not done."""
    summary = await summarise(store, "k")
    assert (summary.state, summary.total, summary.rate_per_s, summary.started_at) == ("stopped", 0, None, None)
    assert summary.latency_ms.p50 is None


async def test_counts_of_every_status(store):
    """Done, failed, waiting and retrying add up, tokens are those of failed calls too, errors have a sample."""
    session, run = await begun(store, "abcd")
    jobs = await store.claim(session, "k", run.pass_, 3)
    bad = Failure(FailureClass.SERVER, "http_500", "HTTP 500: no", usage=Usage(input=1))
    await store.settle(
        [
            Settlement(jobs[0], Action.DONE, None, Success("yes", 200, usage=Usage(10, 5))),
            Settlement(jobs[1], Action.FAIL, None, bad),
            Settlement(jobs[2], Action.RETRY, 60.0, bad),
        ]
    )
    summary = await summarise(store, "k")
    assert summary.state == "running"
    assert (summary.total, summary.done, summary.failed, summary.pending) == (4, 1, 1, 2)
    assert (summary.retrying, summary.attempts, summary.tokens.input) == (1, 3, 12)
    [error] = summary.errors
    assert (error.reason, error.count, error.sample_key, error.message) == ("http_500", 1, "b", "HTTP 500: no")


async def test_of_the_last_run(store):
    """Rate, latency, statuses, reason of the end are those of the last run; what has something left is stopped."""
    session, run = await begun(store, "ab")
    [job] = await store.claim(session, "k", run.pass_, 1)
    await store.settle([Settlement(job, Action.DONE, None, Success("yes", 200))])
    totals = {"done": 1, "by_status": {"200": 1}, "latency_s": {"p50": 0.05, "p95": 0.0512, "p99": None}}
    await store.end_run(run, "interrupted", totals)
    summary = await summarise(store, "k")
    assert (summary.state, summary.stop_reason, summary.by_status) == ("stopped", "interrupted", {"200": 1})
    assert (summary.latency_ms.p50, summary.latency_ms.p95, summary.latency_ms.p99) == (50.0, 51.2, None)
    assert summary.elapsed_s is not None


async def test_of_the_run_that_calls(store):
    """An enqueue beside a worker, or ended before it, is not taken for it; all that live are named with their place."""
    session, run = await begun(store, "ab")
    enqueue = await store.begin_run(session, "k", {}, role=Role.ENQUEUE)
    summary = await summarise(store, "k")
    assert [(each.role, each.host, each.pid) for each in summary.at_work] == [
        (role, socket.gethostname(), os.getpid()) for role in (Role.ENQUEUE, Role.RUN)
    ]
    [of_run] = [each.started_at for each in summary.at_work if each.role is Role.RUN]
    assert summary.started_at == of_run
    await store.end_run(enqueue, "enqueued", {})
    await asyncio.sleep(0.005)  # ends are told apart by their milliseconds
    await store.end_run(run, "interrupted", {})
    assert (await summarise(store, "k")).stop_reason == "interrupted"
    assert (await summarise(store, "k")).at_work == []


async def test_done_when_nothing_is_left(store):
    """It is done once every record is, whatever became of it."""
    session, run = await begun(store, "ab")
    jobs = await store.claim(session, "k", run.pass_, 2)
    await store.settle([Settlement(job, Action.DONE, None, Success(1)) for job in jobs])
    await store.end_run(run, "done", {})
    summary = await summarise(store, "k")
    assert (summary.state, summary.done, summary.total) == ("done", 2, 2)
    assert (await store.counts("k")).of(Status.DONE) == 2

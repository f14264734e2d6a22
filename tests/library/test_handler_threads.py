"""Plain functions as handlers: each in a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading

import pytest

import rowcall


def sentiment(row, call):
    return call.get("/sentiment", params={"text": row["text"]}).json()["label"]


def handler_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("handler")]


async def test_a_plain_handler_answers_each_record(done, rows, store, api):
    """A plain function is given a call that waits for its replies, and all of its requests are counted."""

    def twice(row, call):
        assert call.number == 1
        call.post("/chat/completions", json={"messages": [{"role": "user", "content": row["text"]}], "model": call.key})
        return sentiment(row, call)

    report = await done(twice, rows(20))
    assert (report.done, report.tally.calls, len(api.calls)) == (20, 40, 40)
    assert set(store.attempts().values()) == {1}


async def test_twenty_plain_handlers_run_at_once(done, rows):
    """With a concurrency of 20, twenty handlers meet in the middle of their work."""
    meeting = threading.Barrier(20)

    def meet(row, call):
        if row["id"]:  # the first record goes alone
            meeting.wait(timeout=10)
        return threading.current_thread().name

    report = await done(meet, rows(21), concurrency=20)
    assert (report.done, report.failed) == (21, 0)


async def test_twenty_plain_handlers_call_at_once(done, rows, api):
    """With a concurrency of 20, as many requests of plain handlers are in flight, and never one more."""
    api.latency = 0.05
    await done(sentiment, rows(100), concurrency=20)
    assert api.max_in_flight == 20


async def test_the_loop_is_not_blocked(done, rows):
    """While plain handlers sleep, the loop goes on."""
    beats = 0

    async def beat():
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    beating = asyncio.create_task(beat())
    asleep = threading.Event()
    await done(lambda row, call: asleep.wait(0.3), rows(2))
    beating.cancel()
    assert beats >= 10


async def test_no_thread_is_left(done, rows):
    """When the run has ended, so have the threads of its handlers."""
    await done(sentiment, rows(20))
    for thread in handler_threads():
        thread.join(2)
    assert handler_threads() == []


async def test_failures_keep_their_class(opened, rows, api, store, gate):
    """A port that is closed for a while costs plain handlers nothing either, whatever they raise on top."""

    def label(row, call):
        try:
            return sentiment(row, call)
        except rowcall.CallFailed as failed:
            raise RuntimeError("on top") from failed

    async with opened(on_event=gate) as job:
        await job.add(rows(60), key="id")
        running = asyncio.create_task(job.run(label))
        await api.wait_for_calls(20)
        await api.close_port()
        await gate.closed()
        await api.open_port()
        report = await running
    assert (report.done, set(store.attempts().values())) == (60, {1})


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(2), StopIteration()], ids=repr)
async def test_an_exception_in_a_thread_fails_its_record_alone(done, rows, store, error):
    """What a plain handler raises is its record's, as in an async one."""

    def broken(row, call):
        label = sentiment(row, call)
        if row["id"] == 2:
            raise error
        return label

    report = await done(broken, rows(5))
    assert (report.done, report.failed, store.job(2)["reason"]) == (4, 1, "handler_error")


async def test_a_blocked_handler_does_not_hold_the_end(opened, rows, store):
    """A run that is cancelled returns though a handler is blocked; its record is pending again, uncharged."""
    blocked, released = threading.Event(), threading.Event()

    def block(row, call):
        blocked.set()
        released.wait(30)

    async with opened() as job:
        await job.add(rows(3), key="id")
        running = asyncio.create_task(job.run(block))
        await asyncio.to_thread(blocked.wait, 10)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, 5)
    assert store.statuses() == {"pending": 3}
    assert set(store.attempts().values()) == {0}
    released.set()


async def test_a_dropped_handler_cannot_call_any_more(opened, rows, api):
    """A plain handler whose run was cancelled while it waited for a reply is woken, and refused further calls."""
    api.latency, errors, ended = 30, [], threading.Event()

    def stubborn(row, call):
        for _ in range(2):
            try:
                sentiment(row, call)
            except (concurrent.futures.CancelledError, RuntimeError) as error:
                errors.append(type(error).__name__)
        ended.set()

    async with opened() as job:
        await job.add(rows(1), key="id")
        running = asyncio.create_task(job.run(stubborn))
        await api.wait_in_flight(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.to_thread(ended.wait, 5)
    assert errors == ["CancelledError", "RuntimeError"]
    assert len(api.calls) == 1


async def test_handlers_that_never_call_run_at_once(done, rows, api):
    """A handler with a client of its own, which rowcall does not see, gets all of the slots after its first record."""
    meeting = asyncio.Barrier(8)

    async def own_client(row, call):
        if row["id"]:
            await asyncio.wait_for(meeting.wait(), 5)
        return row["id"]

    report = await done(own_client, rows(9), concurrency=8)
    assert (report.done, report.failed, len(api.calls)) == (9, 0, 0)


async def test_late_failures_of_handlers_that_never_call_do_not_stop_the_run(done, rows):
    """Once a handler has answered without a call, five broken records are failed, and the run goes on."""

    async def own_client(row, call):
        if 3 <= row["id"] < 13:
            raise ValueError("bad row")
        return row["id"]

    report = await done(own_client, rows(30), concurrency=2)
    assert (report.ending.reason, report.done, report.failed) == ("done", 20, 10)


def test_threads_are_started_as_they_are_needed():
    """One plain handler after the other needs no more than one thread."""
    from rowcall.system.threads import Threads

    async def one_by_one():
        threads = Threads(50, "t")
        names = {await threads.run(lambda: threading.current_thread().name) for _ in range(20)}
        threads.close()
        return names

    assert len(asyncio.run(one_by_one())) == 1

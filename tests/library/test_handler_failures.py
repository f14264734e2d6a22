"""What a handler raises or returns, and what becomes of its record."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
from collections import Counter
from itertools import pairwise

import pytest

import rowcall


async def sentiment(row, call):
    return (await call.get("/sentiment", params={"text": row["text"]})).json()["label"]


def failing(error, *ids):
    """A handler that raises for some records and answers the others."""

    async def handler(row, call):
        label = await sentiment(row, call)
        if row["id"] in ids:
            raise error
        return label

    return handler


async def test_an_exception_fails_its_record_alone(done, rows, store):
    """The record is failed at once; the history has the traceback from the handler on, without rowcall's own frames."""

    async def broken(row, call):
        label = await sentiment(row, call)
        return label if row["id"] != 3 else {}["missing\nsecond line"]

    report = await done(broken, rows(6))
    assert (report.done, report.failed) == (5, 1)
    assert store.job(3) == {
        "status": "failed",
        "reason": "handler_error",
        "error": r"KeyError: 'missing\nsecond line'",
        "attempts": 1,
    }
    ((cls, reason, _, charged, body),) = store.tries()
    assert (cls, reason, charged) == ("record", "handler_error", 1)
    assert body.startswith("Traceback")
    assert "in broken" in body
    assert "rowcall/calls/handlers" not in body


async def test_no_secret_and_no_local_value_is_kept(done, rows, store):
    """The key that was sent is blotted out of message and traceback, and values of variables are never in it."""

    async def leaky(row, call):
        private = "value-of-a-local"
        await sentiment(row, call)
        raise RuntimeError(f"key s3cret-key-1234 and {len(private)}")

    await done(leaky, rows(1), api_key="s3cret-key-1234")
    assert store.job(0)["error"] == "RuntimeError: key *** and 16"
    assert b"s3cret-key-1234" not in store.path.read_bytes()
    ((*_, body),) = store.tries()
    assert "16" in body
    assert "'value-of-a-local'" not in body


@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError(), StopAsyncIteration()], ids=repr)
async def test_what_would_end_the_program_fails_the_record(done, rows, store, error):
    """A handler that exits, or cancels something of its own, ends nothing but its record."""
    report = await done(failing(error, 2), rows(6))
    assert (report.ending.reason, report.done, report.failed) == ("done", 5, 1)
    assert store.job(2)["reason"] == "handler_error"


async def test_a_handler_that_fails_from_the_start_stops_the_run(done, rows, store, api):
    """Five records whose handler breaks in the same way before any success stop the run, and none is failed."""

    async def broken(row, call):
        raise NameError("no such name")

    report = await done(broken, rows(50), concurrency=2)
    assert (report.ending.reason, report.failed) == ("handler_error", 0)
    assert store.statuses() == {"pending": 50}


async def test_fail_fails_the_record_under_its_reason(done, rows, store):
    """A record that its handler gives up is failed at once, however many come first."""

    async def picky(row, call):
        if row["id"] < 8:
            raise rowcall.Fail("no text\nat all", **({} if row["id"] == 7 else {"reason": "no_text"}))
        return await sentiment(row, call)

    report = await done(picky, rows(10))
    assert (report.ending.reason, report.done, report.failed) == ("done", 2, 8)
    assert store.job(7) == {
        "status": "failed",
        "reason": "failed_by_handler",
        "error": "no text at all",
        "attempts": 1,
    }
    assert store.job(0)["reason"] == "no_text"


async def test_retry_later_costs_nothing(done, rows, store):
    """A record that is put off comes again after its wait, and is charged for its answer alone."""
    loop, seen = asyncio.get_running_loop(), []

    async def later(row, call):
        if row["id"] == 1:
            seen.append(loop.time())
            if len(seen) < 3:
                raise rowcall.RetryLater(0.2, "not ready")
        return await sentiment(row, call)

    report = await done(later, rows(4))
    assert (report.done, store.attempts()) == (4, {"0": 1, "1": 1, "2": 1, "3": 1})
    assert len(seen) == 3
    assert min(second - first for first, second in pairwise(seen)) >= 0.2
    assert [(cls, charged) for cls, _, _, charged, _ in store.tries()] == [("later", 0)] * 2


async def test_retry_later_has_an_end(done, rows, store):
    """A record that is put off for ever is failed after a hundred times."""
    runs = Counter()

    async def never(row, call):
        runs[row["id"]] += 1
        raise rowcall.RetryLater(0)

    report = await done(never, rows(1))
    assert (report.ending.reason, runs[0]) == ("done", 101)
    assert store.job(0)["reason"] == "put_off"


@pytest.mark.parametrize("wait", [-1, math.nan, "soon"])
def test_retry_later_needs_a_wait(wait):
    """What is no wait is refused where it is written."""
    with pytest.raises(ValueError, match=r"0 seconds or more|could not convert"):
        rowcall.RetryLater(wait)


async def test_stop_run_stops_the_run(done, rows, store):
    """The run stops for the handler's reason; its record and the rest go back, uncharged."""

    async def poor(row, call):
        if row["id"] == 5:
            raise rowcall.StopRun("no credit")
        return await sentiment(row, call)

    report = await done(poor, rows(40), concurrency=2)
    assert (report.ending.reason, report.ending.message) == ("stopped_by_handler", "no credit")
    assert (report.failed, store.job(5)["status"], store.job(5)["attempts"]) == (0, "pending", 0)


async def test_what_is_raised_on_top_does_not_hide_it(done, rows, store):
    """Fail counts also where the handler's own code raised something else because of it."""

    async def wrapped(row, call):
        await sentiment(row, call)
        try:
            raise rowcall.Fail("bad row")
        except rowcall.Fail as error:
            raise RuntimeError("wrapped") from error

    await done(wrapped, rows(1))
    assert store.job(0)["error"] == "bad row"


CYCLE = {"a": []}
CYCLE["a"].append(CYCLE)
DEEP = []
for _ in range(300):
    DEEP = [DEEP]

NO_JSON = {
    "a date": ({"when": [dt.date(2026, 1, 1)]}, "result.when[0] is a date, which JSON cannot represent"),
    "a set": ({1, 2}, "result is a set, which JSON cannot represent"),
    "NaN": ({"a": {"b": math.nan}}, "result.a.b is nan, which JSON cannot represent"),
    "infinity": ([1.0, -math.inf], "result[1] is -inf, which JSON cannot represent"),
    "a cycle": (CYCLE, "result.a[0] contains itself"),
    "a lone surrogate": ({"a": "x\ud800"}, "result.a is not valid text (a lone surrogate)"),
    "a surrogate in a key": ({"\ud800": 1}, "is not valid text (a lone surrogate)"),
    "a key that is no text": ({"a": {1: 2}}, "result.a has the key 1, which is not text"),
    "bytes": (b"x", "result is a bytes, which JSON cannot represent"),
    "an object": (object(), "result is a object, which JSON cannot represent"),
    "too deep": (DEEP, "is nested too deeply"),
}


@pytest.mark.parametrize("case", NO_JSON)
async def test_a_result_that_is_no_json_fails_its_record_alone(done, rows, store, case):
    """The record is failed, and the message says where in the result it stands; its neighbours are done."""
    result, message = NO_JSON[case]

    async def handler(row, call):
        label = await sentiment(row, call)
        return result if row["id"] == 2 else label

    report = await done(handler, rows(5))
    assert (report.done, report.failed) == (4, 1)
    job = store.job(2)
    assert (job["reason"], job["attempts"]) == ("result_not_json", 1)
    assert message in job["error"]


async def test_results_come_back_as_they_were(opened, rows, store):
    """Null, long integers, text with a NUL, nested values: what the handler returned is what is read, and written."""
    values = [None, 2**70, "a\0b", {"a": [1, 2.5, True, {"ü": "\N{SNOWMAN}"}]}, (1, 2), 0, ""]

    async def handler(row, call):
        return values[row["id"]]

    async with opened() as job:
        await job.add(rows(len(values)), key="id")
        await job.run(handler)
        read = [result.value async for result in job.results()]
    assert [str(value) for value in read[1:2]] == [str(2**70)]
    assert [*read[:1], *read[2:]] == [None, "a\0b", {"a": [1, 2.5, True, {"ü": "\N{SNOWMAN}"}]}, [1, 2], 0, ""]


async def test_a_result_is_taken_when_it_is_returned(opened, rows):
    """A handler that goes on changing what it returned changes no record's answer."""
    shared = []

    async def handler(row, call):
        shared.append(row["id"])
        return shared

    async with opened(concurrency=1) as job:
        await job.add(rows(5), key="id")
        await job.run(handler)
        assert sorted(len(result.value) for result in [r async for r in job.results()]) == [1, 2, 3, 4, 5]

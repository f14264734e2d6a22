"""Answers that were made elsewhere, as every store takes them in."""

from __future__ import annotations

from storekit import USAGE, entry, failure, success

from rowcall.model.outcome import Action, FailureClass
from rowcall.store.types import ImportedAnswer, ImportResult


def arrived(key, value="there", **more):
    return ImportedAnswer(key, Action.DONE, success(value, **more))


async def test_an_answer_is_as_one_of_a_call(desk):
    """A pending job is done with it; attempt and tokens are counted, once however often it comes."""
    await desk.bring("a", "b")
    await desk.store.hand_out(desk.kind, ["a", "b"])
    for expected in (ImportResult.DONE, ImportResult.BEFORE):
        assert await desk.store.import_answers(desk.kind, [arrived("a", usage=USAGE)]) == [expected]
    assert await desk.answer("a") == "there"
    assert (await desk.row("a")).attempts == 1
    counts = await desk.store.counts(desk.kind)
    assert (counts.attempts, counts.input_tokens, counts.output_tokens) == (1, USAGE.input, USAGE.output)
    assert await desk.keys() == ["b"]


async def test_a_running_job_is_left_to_its_run(desk):
    """What is being called now keeps its claim, and its own answer counts."""
    await desk.bring("a")
    job = await desk.one()
    assert await desk.store.import_answers(desk.kind, [arrived("a")]) == [ImportResult.RUNNING]
    assert await desk.done(job, value="here") == []
    assert await desk.answer("a") == "here"


async def test_a_failed_job_takes_a_late_answer_but_no_second_failure(desk):
    """An answer mends a failed job; another failure changes nothing."""
    await desk.bring("a")
    await desk.fail(await desk.one())
    again = ImportedAnswer("a", Action.FAIL, failure(cls=FailureClass.RECORD))
    assert await desk.store.import_answers(desk.kind, [again]) == [ImportResult.BEFORE]
    assert (await desk.row("a")).attempts == 1
    assert await desk.store.import_answers(desk.kind, [arrived("a")]) == [ImportResult.DONE]
    assert await desk.answer("a") == "there"


async def test_an_adopted_request_still_has_its_answers(desk):
    """Where the new request adopts the old one's answers, those that come later count too."""
    await desk.bring("a", "b")
    await desk.store.hand_out(desk.kind, ["a", "b"])
    desk.request = await desk.store.adopt(desk.kind, "ask otherwise")
    await desk.next_pass()
    await desk.bring("a", "b")
    assert await desk.store.import_answers(desk.kind, [arrived("a")]) == [ImportResult.DONE]
    desk.request = await desk.store.request(desk.kind, "ask for something else")
    await desk.next_pass()
    await desk.bring(entry("b"))
    assert await desk.store.import_answers(desk.kind, [arrived("b")]) == [ImportResult.CHANGED]


async def test_what_is_kept_aside_takes_no_later_claim(desk):
    """An answer to what is no longer asked is kept, and the next call of that job settles as ever."""
    await desk.bring(entry("a", "one"))
    await desk.store.hand_out(desk.kind, ["a"])
    await desk.next_pass()
    await desk.bring(entry("a", "two"))
    assert await desk.store.import_answers(desk.kind, [arrived("a", "to one")]) == [ImportResult.CHANGED]
    assert await desk.done(await desk.one(), value="to two") == []
    assert await desk.answer("a") == "to two"
    await desk.next_pass()
    assert (await desk.bring(entry("a", "one"))).restored == 1
    assert await desk.answer("a") == "to one"


async def test_unknown_keys_and_others_in_their_order(desk):
    """Each answer has its fate, in the order in which they came; another kind's keys are unknown."""
    await desk.bring("a")
    later = ImportedAnswer("a", Action.RELEASE, failure("batch_expired", FailureClass.NOT_SENT))
    assert await desk.store.import_answers(desk.kind, [arrived("x"), later, arrived("a")]) == [
        ImportResult.UNKNOWN,
        ImportResult.AGAIN,
        ImportResult.DONE,
    ]
    assert await desk.store.import_answers("other", [arrived("a")]) == [ImportResult.UNKNOWN]


async def test_last_calls(desk):
    """What the last call came to is known by key, with the start of a reply that was no answer."""
    await desk.bring("a", "b", "c")
    one, two = await desk.claim(2)
    await desk.done(one)
    await desk.fail(two, outcome=failure(status=500, request_id="req-9", body="oh"))
    calls = await desk.store.last_calls(desk.kind, ["a", "b", "c", "x"])
    assert {key: (call.status, call.request_id, call.body) for key, call in calls.items()} == {
        "a": (200, "req-1", None),
        "b": (500, "req-9", "oh"),
        "c": (None, None, None),
    }

"""Records with the same request and input: one answer for all of them, on every store."""

from __future__ import annotations

from storekit import USAGE, entry

from rowcall.store.types import Selection


async def bring(desk, *keys, text="same"):
    await desk.bring(*(entry(key, text) for key in keys))


async def test_pending_duplicates_get_the_answer(desk):
    """With no tokens, cost or attempt of their own; others are left alone."""
    await bring(desk, "a", "b", "c")
    await bring(desk, "d", text="other")
    a = await desk.one()
    await desk.done(a, value={"x": 1}, usage=USAGE)
    assert await desk.store.answer_pending([a]) == 2
    assert await desk.statuses() == {"a": "done", "b": "done", "c": "done", "d": "pending"}
    assert await desk.answer("c") == {"x": 1}
    counts = await desk.store.counts("k")
    assert (counts.attempts, counts.input_tokens) == (1, USAGE.input)
    assert (await desk.row("b")).attempts == 0
    assert await desk.store.donor((await desk.row("b")).row) == "a"
    assert await desk.store.donor(a.row) is None
    assert await desk.store.answer_pending([a]) == 0


async def test_claimed_duplicates_get_the_answer(desk):
    """Only those whose claim still holds."""
    await bring(desk, "a", "b", "c")
    a, b, c = await desk.claim()
    await desk.done(a)
    await desk.release(c)
    assert await desk.store.answer_claimed([b, c]) == [b]
    assert await desk.statuses() == {"a": "done", "b": "done", "c": "pending"}
    assert await desk.store.answer_claimed([b]) == []


async def test_an_answer_to_another_request_is_none(desk):
    """Unless the new request adopted the old one's answers."""
    await bring(desk, "a")
    await desk.done(await desk.one())
    desk.request = await desk.store.request("k", "other")
    await bring(desk, "b")
    b = await desk.one()
    assert await desk.store.answer_claimed([b]) == []
    await desk.store.adopt("k", "other")
    assert await desk.store.answer_claimed([b]) == [b]


async def test_an_answer_that_was_taken_back_is_given_to_no_other(desk):
    """Neither the one it was called for nor a copy of it."""
    await bring(desk, "a", "b", "c")
    a = await desk.one()
    await desk.done(a)
    await desk.store.answer_pending([a])
    await desk.store.retry("k", Selection(("b",)))
    b = await desk.one()
    assert await desk.store.answer_claimed([b]) == []
    await desk.done(b, value="new")
    await bring(desk, "d")
    (d,) = await desk.claim()
    assert await desk.store.answer_claimed([d]) == [d]
    assert await desk.answer("d") == "new"
    assert await desk.answer("c") == "yes"


async def test_duplicates_of_another_pass(desk):
    """What is no longer in the input is left alone."""
    await bring(desk, "old")
    await desk.next_pass()
    await bring(desk, "a")
    a = await desk.one()
    await desk.done(a)
    assert await desk.store.answer_pending([a]) == 0
    assert await desk.statuses() == {"old": "pending", "a": "done"}

"""What every store keeps to, whatever it is made of."""

from __future__ import annotations

import os
import socket

import pytest
from storekit import USAGE, entry, failure, success

from rowcall.model.errors import DuplicateKey, InputError, StoreError
from rowcall.model.job import Status
from rowcall.model.json_values import Number
from rowcall.model.outcome import Action, FailureClass, Settlement
from rowcall.store.types import Enqueued, Entry, Left, Selection

# --- bringing records in


async def test_new(desk):
    """New keys are pending, in the order of the input, with nothing charged."""
    assert await desk.bring("b", "a", "c") == Enqueued(new=3)
    rows = await desk.store.page("k")
    assert [row.key for row in rows] == ["b", "a", "c"]
    assert {(row.status, row.attempts, row.run_after, row.batch) for row in rows} == {(Status.PENDING, 0, None, "b1")}


async def test_unchanged(desk, clock):
    """Bringing the same in again writes nothing to a done job, and counts each by its status."""
    await desk.bring("done", "failed", "pending", "running", "cancelled")
    done, failed = await desk.claim(2)
    await desk.done(done)
    await desk.fail(failed)
    await desk.claim(only=[4])
    await desk.store.cancel("k", Selection(("cancelled",)))
    before = await desk.row("done")
    clock.move(5)
    again = await desk.bring("done", "failed", "pending", "running", "cancelled", batch="b2")
    assert again == Enqueued(repeated=5)
    await desk.next_pass()
    again = await desk.bring("done", "failed", "pending", "running", "cancelled", batch="b2")
    assert again == Enqueued(done=1, failed=1, waiting=2, cancelled=1)
    assert await desk.row("done") == before


async def test_changed(desk):
    """A changed record is pending again with attempts 0, and its old answer no longer stands."""
    await desk.bring(entry("a", "old"))
    await desk.done(await desk.one())
    await desk.next_pass()
    assert await desk.bring(entry("a", "new"), batch="b2") == Enqueued(changed=1)
    row = await desk.row("a")
    assert (row.status, row.attempts, row.batch) == (Status.PENDING, 0, "b2")
    assert await desk.answer("a") is None
    job = await desk.one()
    assert (job.data["text"], job.fresh) == ("new", True)


@pytest.mark.parametrize("state", ["failed", "waiting", "cancelled"])
async def test_changed_in_any_state(desk, state):
    """A record that is changed starts over from every state it may be in."""
    await desk.bring(entry("a", "old"))
    job = await desk.one()
    await (desk.fail(job) if state == "failed" else desk.retry(job, wait=99))
    if state == "cancelled":
        await desk.store.cancel("k", Selection())
    await desk.next_pass()
    assert await desk.bring(entry("a", "new")) == Enqueued(changed=1)
    job = await desk.one()
    assert (job.attempts, job.fresh, job.data["text"]) == (0, True, "new")
    assert (await desk.row("a")).error is None


async def test_restored(desk):
    """A record changed back gets its earlier answer without a call."""
    await desk.bring(entry("a", "old"))
    await desk.done(await desk.one(), value="first")
    await desk.next_pass()
    await desk.bring(entry("a", "new"))
    await desk.done(await desk.one(), value="second")
    await desk.next_pass()
    assert await desk.bring(entry("a", "old")) == Enqueued(restored=1)
    assert await desk.answer("a") == "first"
    assert await desk.store.left("k", desk.pass_) == Left(False, None)


@pytest.mark.parametrize("action", ["done", "retry", "fail", "release"])
async def test_changed_while_running(desk, action):
    """A record changed while it runs goes back to pending when that call ends, with attempts 0."""
    await desk.bring(entry("a", "old"))
    job = await desk.one()
    await desk.next_pass()
    assert await desk.bring(entry("a", "new")) == Enqueued(changed=1)
    assert (await desk.row("a")).status is Status.RUNNING
    assert await getattr(desk, action)(job) == []
    assert await desk.answer("a") is None
    job = await desk.one()
    assert (job.data["text"], job.attempts, job.fresh) == ("new", 0, True)


async def test_changed_while_running_keeps_the_answer(desk):
    """An answer to what a record was is kept, and counts once the record is changed back."""
    await desk.bring(entry("a", "old"))
    job = await desk.one()
    await desk.next_pass()
    await desk.bring(entry("a", "new"))
    await desk.done(job, value="to the old one")
    await desk.next_pass()
    assert await desk.bring(entry("a", "old")) == Enqueued(restored=1)
    assert await desk.answer("a") == "to the old one"


async def test_changed_back_while_running(desk):
    """A record changed and changed back while it runs is done by that very call."""
    await desk.bring(entry("a", "old"))
    job = await desk.one()
    for text in ("new", "old"):
        await desk.next_pass()
        await desk.bring(entry("a", text))
    assert await desk.done(job, value="kept") == []
    assert await desk.answer("a") == "kept"


async def test_repeated(desk):
    """The same record twice in one pass counts once."""
    assert await desk.bring("a", "a", "b") == Enqueued(new=2, repeated=1)
    assert await desk.bring("b", "c") == Enqueued(new=1, repeated=1)
    assert len(await desk.claim()) == 3


async def test_duplicate(desk):
    """A key twice in one pass with different content stops there, names both places, and keeps what came before."""
    with pytest.raises(DuplicateKey, match=r"in\.csv:9: the key 'a' .* at in\.csv:2"):
        await desk.bring("z", entry("a", "one", "in.csv:2"), "y", entry("a", "two", "in.csv:9"), "x")
    assert await desk.keys() == ["z", "a", "y"]
    with pytest.raises(DuplicateKey):
        await desk.bring(entry("a", "three"))
    await desk.next_pass()
    assert await desk.bring(entry("a", "four")) == Enqueued(changed=1)


async def test_many_at_once(desk):
    """More records than one transaction takes are brought in by one call."""
    assert await desk.bring(*(f"key{n}" for n in range(2500))) == Enqueued(new=2500)
    assert await desk.bring(*(f"key{n}" for n in range(2500))) == Enqueued(repeated=2500)


async def test_kinds_are_apart(desk, store, clock, open_store):
    """The same key in two kinds is two jobs."""
    other = await type(desk)(store, clock, open_store, "l").sit()
    await desk.bring(entry("a", "one"))
    await other.bring(entry("a", "two"))
    assert (await desk.one()).data["text"] == "one"
    assert (await other.one()).data["text"] == "two"
    assert await store.kinds() == ["k", "l"]
    assert await store.select("k", Selection()) == await store.select("k", Selection(("a",)))


@pytest.mark.parametrize("key", ["a\0b", "a\ud800b"])
async def test_keys_that_no_store_can_keep(desk, key):
    """A key with a NUL or a lone surrogate is refused, with the place where it was read."""
    with pytest.raises(InputError, match=r"in\.csv:7"):
        await desk.bring(entry("fine"), Entry(key, "h", "{}", "in.csv:7"))


async def test_texts_that_no_store_can_keep(desk):
    """A lone surrogate in other texts is a clear error, and one in an error message costs nothing."""
    with pytest.raises(StoreError, match="surrogate"):
        await desk.bring("a", batch="\udcff")
    await desk.bring("a")
    job = await desk.one()
    with pytest.raises(StoreError, match="'a'"):
        await desk.done(job, value="\ud800")
    await desk.fail(job, outcome=failure("bad\ud800\0"))
    assert (await desk.row("a")).reason == "bad?\N{REPLACEMENT CHARACTER}"


async def test_odd_keys(desk):
    """Keys that look like numbers, JSON, SQL or nothing stay what they are."""
    keys = ["1", "01", "1.0", "", " ", "null", "'; drop table jobs --", "ä", "\N{SNOWMAN}", "a\nb", '"', "1e5"]
    assert await desk.bring(*(entry(key, payload="{}") for key in keys)) == Enqueued(new=len(keys))
    assert await desk.keys() == keys
    assert set(await desk.store.answers("k", keys)) == set(keys)


# --- requests


async def test_request_standing(desk, store):
    """How many done jobs count for a request is known before a row is read."""
    assert (await store.request_standing("other", "x")).latest
    await desk.bring("a", "b", "c")
    await desk.done(*await desk.claim(2))
    standing = await store.request_standing("k", "ask")
    assert (standing.number, standing.latest, standing.done, standing.done_under_others) == (desk.request, True, 2, 0)
    standing = await store.request_standing("k", "ask more")
    assert (standing.number, standing.latest, standing.done, standing.done_under_others) == (None, False, 0, 2)


async def test_changed_request(desk, store):
    """Another request makes done jobs pending; the request before it brings their answers back."""
    first = desk.request
    await desk.bring("a")
    await desk.done(await desk.one(), value="first")
    desk.request = await store.request("k", "ask more")
    await desk.next_pass()
    assert await desk.bring("a") == Enqueued(changed=1)
    await desk.done(await desk.one(), value="second")
    assert await store.request("k", "ask") == first
    assert (await store.request_standing("k", "ask")).latest
    desk.request = first
    await desk.next_pass()
    assert await desk.bring("a") == Enqueued(restored=1)
    assert await desk.answer("a") == "first"


async def test_adopted_request(desk, store):
    """A request that adopts the others' answers calls nothing, then or later; a changed row is called."""
    await desk.bring("a", "b", "waiting")
    await desk.done(*await desk.claim(2), value="first")
    desk.request = await store.adopt("k", "ask more")
    standing = await store.request_standing("k", "ask more")
    assert (standing.latest, standing.done, standing.done_under_others) == (True, 2, 0)
    for _ in range(2):
        await desk.next_pass()
        assert await desk.bring("a", "b", "waiting") == Enqueued(done=2, waiting=1)
    assert await desk.answer("a") == "first"
    assert (await desk.one()).request == desk.request
    await desk.next_pass()
    assert await desk.bring(entry("a", "new")) == Enqueued(changed=1)
    await desk.next_pass()
    assert await desk.bring(entry("a")) == Enqueued(restored=1)


async def test_adopting_back(desk, store):
    """Adopting the first request again after the second leaves both with all answers."""
    await desk.bring("a")
    await desk.done(await desk.one())
    await store.adopt("k", "ask more")
    await store.adopt("k", "ask")
    assert (await store.request_standing("k", "ask")).done == 1
    assert (await store.request_standing("k", "ask more")).done == 1


# --- claiming


async def test_claim(desk):
    """Jobs come in the order of the input, at most as many as asked, each once, with a new epoch."""
    await desk.bring("c", "a", "b")
    first = await desk.claim(2)
    assert [job.key for job in first] == ["c", "a"]
    assert [(job.epoch, job.attempts, job.fresh, job.rejected) for job in first] == [(1, 0, True, ())] * 2
    assert await desk.keys() == ["b"]
    assert await desk.claim() == []
    assert await desk.claim(0) == []


async def test_retries_come_first(desk, clock):
    """A retry that is due comes before jobs never called, the one due first before the others."""
    await desk.bring("a", "b", "c", "d")
    a, b = await desk.claim(2)
    await desk.retry(a, wait=3)
    await desk.retry(b, wait=2)
    clock.move(5)
    jobs = await desk.claim(3)
    assert [job.key for job in jobs] == ["b", "a", "c"]
    assert [(job.epoch, job.attempts, job.fresh) for job in jobs] == [(2, 1, False), (2, 1, False), (1, 0, True)]


async def test_waits(desk, clock):
    """A job is claimable when its wait is over, not a millisecond before."""
    await desk.bring("a")
    await desk.retry(await desk.one(), wait=1.5)
    clock.move(1.499)
    assert await desk.claim() == []
    assert (await desk.store.left("k", desk.pass_)).due_in == pytest.approx(0.001, abs=1e-4)
    clock.move(0.001)
    assert await desk.keys() == ["a"]


@pytest.mark.parametrize("back", [3600, 86400])
async def test_clock_back(desk, clock, back):
    """A clock that goes back by an hour or a day delays nothing."""
    await desk.bring("waits", "fresh")
    await desk.retry(await desk.one(), wait=30)
    clock.move(-back)
    assert await desk.keys() == ["waits", "fresh"]


async def test_clock_back_between_runs(desk, clock):
    """A clock that went back while nobody looked delays nothing for the next process."""
    await desk.bring("waits")
    await desk.retry(await desk.one(), wait=30)
    await desk.store.end_run(desk.run, "paused", {})
    await desk.store.end_session(desk.session)
    clock.move(-3600)
    other = await desk.other()
    await other.bring("waits")
    assert await other.keys() == ["waits"]


async def test_clock_forward(desk, clock):
    """A clock that goes forward reaps nobody who is alive."""
    await desk.bring("a", "b")
    other = await desk.other()
    job = await other.one()
    clock.move(86400)
    await desk.store.beat(desk.session)
    assert await desk.store.reap() == 0
    assert await other.done(job) == []


async def test_only_this_pass(desk):
    """Jobs that the present pass did not bring are named and left alone; retried by hand they are for any run."""
    await desk.bring("old", "stays")
    await desk.next_pass()
    await desk.bring("stays", "new")
    assert await desk.store.strays("k", desk.pass_) == 1
    assert await desk.keys() == ["stays", "new"]
    assert (await desk.store.left("k", desk.pass_)).due_in is None
    await desk.store.retry("k", Selection(("old",)))
    assert await desk.keys() == ["old"]
    assert await desk.store.strays("k", desk.pass_) == 0


async def test_failed_strays(desk):
    """Failed jobs of an earlier pass are strays too, done ones are not."""
    await desk.bring("failed", "done", "pending")
    failed, done = await desk.claim(2)
    await desk.fail(failed)
    await desk.done(done)
    await desk.next_pass()
    assert await desk.store.strays("k", desk.pass_) == 2
    await desk.bring("failed")
    assert await desk.store.strays("k", desk.pass_) == 1


async def test_fresh_only(desk):
    """Asked for jobs never called, the store gives no retries."""
    await desk.bring("a", "b")
    await desk.retry(await desk.one())
    assert await desk.keys(fresh_only=True) == ["b"]
    assert await desk.keys() == ["a"]


async def test_only(desk, clock):
    """Asked for certain jobs, the store gives those among them that are claimable."""
    await desk.bring("a", "b", "c", "d")
    a, b = await desk.claim(2)
    await desk.retry(a, wait=9)
    await desk.retry(b)
    assert await desk.keys(only=[1, 2, 4]) == ["b", "d"]
    assert await desk.keys(only=[], limit=5) == []
    assert await desk.keys(only=range(5000), limit=1) == ["c"]


async def test_rejected(desk):
    """A job knows why answers of its present life were rejected."""
    await desk.bring("a")
    answer = failure("empty", FailureClass.ANSWER)
    await desk.retry(await desk.one(), outcome=answer)
    await desk.retry(await desk.one())
    await desk.release(await desk.one(), wait=0, outcome=answer)
    job = await desk.one()
    assert (job.attempts, job.rejected) == (2, ("empty",))
    await desk.fail(job, outcome=answer)
    await desk.store.retry("k", Selection())
    job = await desk.one()
    assert (job.attempts, job.rejected) == (0, ())
    await desk.retry(job)
    assert (await desk.one()).rejected == ()


# --- settling


async def test_done(desk, clock):
    """A done job has its answer, one attempt more, and the facts of its call."""
    await desk.bring("a")
    job = await desk.one()
    clock.move(2)
    assert await desk.done(job, value={"n": [1, None, "ä"]}, usage=USAGE) == []
    row = await desk.row("a")
    assert (row.status, row.attempts, row.http_status, row.request_id, row.latency) == ("done", 1, 200, "req-1", 0.25)
    assert (row.input_tokens, row.output_tokens, row.cached_tokens, row.reasoning_tokens) == (10, 5, 3, 2)
    assert (row.created_at, row.updated_at) == ("2023-11-14T22:13:20.000Z", "2023-11-14T22:13:22.000Z")
    assert await desk.answer("a") == {"n": [1, None, "ä"]}
    assert (row.error, row.reason, row.run_after) == (None, None, None)


async def test_values_keep_their_text(desk):
    """Numbers of a record and of an answer come out as they went in."""
    digits = "1234567890123456789012345678901234567890"
    await desk.bring(entry("a", payload=f'{{"n":{digits},"x":1e5}}'))
    job = await desk.one()
    assert str(job.data["n"]) == digits
    assert str((await desk.store.payload(job.row))["x"]) == "1e5"
    await desk.done(job, value=[Number(digits)])
    assert str((await desk.answer("a"))[0]) == digits


async def test_an_answer_of_null(desk):
    """An answer may be null; the job is done all the same."""
    await desk.bring("a")
    await desk.done(await desk.one(), value=None)
    answer = (await desk.store.answers("k", ["a", "unknown"]))["a"]
    assert (answer.status, answer.value) == (Status.DONE, None)


async def test_retry_and_fail(desk):
    """Retry and fail charge an attempt, and each leaves a try in the record's history."""
    await desk.bring("a")
    job = await desk.one()
    await desk.retry(job, outcome=failure("reset", FailureClass.MAYBE_SENT, body="{", usage=USAGE))
    row = await desk.row("a")
    assert (row.status, row.attempts, row.reason, row.error) == ("pending", 1, "reset", "it said reset")
    await desk.fail(await desk.one(), outcome=failure("http_422", FailureClass.RECORD, status=422, latency=1.5))
    row = await desk.row("a")
    assert (row.status, row.attempts, row.reason, row.http_status) == ("failed", 2, "http_422", 422)
    first, second = await desk.store.tries(job.row)
    assert (first.epoch, first.cls, first.reason, first.charged, first.body) == (1, "maybe sent", "reset", True, "{")
    assert (second.epoch, second.status, second.latency) == (2, 422, 1.5)
    assert await desk.claim() == []


async def test_long_messages(desk):
    """An error message is cut to 500 characters."""
    await desk.bring("a")
    await desk.fail(await desk.one(), outcome=failure("x" * 900))
    assert len((await desk.row("a")).error) == 500


async def test_release(desk, clock):
    """A release charges nothing, and waits as long as it says."""
    await desk.bring("a")
    await desk.release(await desk.one(), wait=4, outcome=failure("rate_limited", FailureClass.PACE))
    row = await desk.row("a")
    assert (row.status, row.attempts, row.reason) == ("pending", 0, "rate_limited")
    (kept,) = await desk.store.tries(row.row)
    assert kept.charged is False
    assert await desk.claim() == []
    clock.move(4)
    job = await desk.one()
    assert (job.fresh, job.attempts) == (False, 0)


async def test_release_as_if_never_claimed(desk):
    """A job released without a wait is what it was: fresh, or due."""
    await desk.bring("a", "b")
    a, b = await desk.claim()
    await desk.release(a)
    await desk.retry(b)
    assert await desk.store.tries(a.row) == []
    await desk.release(*await desk.claim())
    b, a = await desk.claim()
    assert [(b.key, b.fresh, b.attempts), (a.key, a.fresh, a.attempts)] == [("b", False, 1), ("a", True, 0)]


async def test_settling_twice(desk):
    """A group that is written a second time changes nothing and is not late."""
    await desk.bring("a", "b")
    a, b = await desk.claim()
    for _ in range(2):
        assert await desk.done(a, usage=USAGE) == []
        assert await desk.fail(b, outcome=failure(usage=USAGE)) == []
    counts = await desk.store.counts("k")
    assert (counts.attempts, counts.input_tokens) == (2, 20)
    assert len(await desk.store.tries(b.row)) == 1


async def test_settling_nothing(desk):
    """An empty group is no error."""
    assert await desk.store.settle([]) == []


async def _taken_over(desk):
    """A job whose session died while its call was under way, and the desk that reaped it."""
    await desk.bring("a")
    other = await desk.other()
    job = await other.one()
    await other.vanish()
    assert await desk.store.reap() == 1
    return job


async def test_late_success_of_a_waiting_job(desk):
    """A late success is the answer of a job that nobody took, retried or cancelled since; it is named as late."""
    job = await _taken_over(desk)
    assert [late.job.key for late in await desk.done(job, value="late", usage=USAGE)] == ["a"]
    row = await desk.row("a")
    assert (row.status, row.attempts, row.crashes) == (Status.DONE, 1, 0)
    assert await desk.answer("a") == "late"


@pytest.mark.parametrize("since", ["claimed", "done", "retried", "cancelled", "changed"])
async def test_late_success_of_another_job(desk, since):
    """A late success never takes a job that was claimed, retried, cancelled or changed since; its cost is counted."""
    late = await _taken_over(desk)
    if since in ("claimed", "done"):
        current = await desk.one()
    if since == "done":
        await desk.done(current, value="current")
    if since == "retried":
        await desk.store.retry("k", Selection())
    if since == "cancelled":
        await desk.store.cancel("k", Selection())
    if since == "changed":
        await desk.next_pass()
        await desk.bring(entry("a", "new"))
    before = await desk.row("a")
    assert len(await desk.done(late, value="late", usage=USAGE)) == 1
    assert await desk.row("a") == before
    assert await desk.answer("a") == ("current" if since == "done" else None)
    assert (await desk.store.counts("k")).input_tokens == 10
    if since == "claimed":
        assert await desk.done(current, value="current") == []
        assert await desk.answer("a") == "current"


@pytest.mark.parametrize("order", [1, -1])
async def test_a_late_success_beside_the_present_one(desk, order):
    """A group that holds a job's lost claim and its present one writes the present one, whichever stands first."""
    late = await _taken_over(desk)
    current = await desk.one()
    both = [Settlement(job, Action.DONE, None, success(job.epoch)) for job in (late, current)]
    assert [each.job.epoch for each in await desk.store.settle(both[::order])] == [late.epoch]
    assert (await desk.row("a")).status == Status.DONE
    assert await desk.answer("a") == current.epoch
    assert await desk.keys() == []


async def test_late_answer_to_what_was_asked_before(desk):
    """A late success to what a record was before its change counts when the record is changed back."""
    late = await _taken_over(desk)
    await desk.next_pass()
    await desk.bring(entry("a", "new"))
    await desk.done(late, value="late")
    await desk.next_pass()
    assert await desk.bring(entry("a")) == Enqueued(restored=1)
    assert await desk.answer("a") == "late"


async def test_a_late_answer_after_a_retry_is_never_restored(desk):
    """A late success to what a person had called again does not come back with a change and a change back."""
    late = await _taken_over(desk)
    await desk.store.retry("k", Selection())
    await desk.done(late)
    await _change_and_back(desk)


async def test_a_late_answer_that_was_outdone_is_never_restored(desk):
    """Nor does one that comes while the record is changed, when a later answer was superseded by hand."""
    late = await _taken_over(desk)
    await desk.done(await desk.one())
    await desk.store.retry("k", Selection())
    await desk.next_pass()
    await desk.bring(entry("a", "new"))
    await desk.done(late)
    await _change_and_back(desk)


async def _change_and_back(desk):
    await desk.next_pass()
    await desk.bring(entry("a", "new"))
    await desk.next_pass()
    assert await desk.bring(entry("a")) == Enqueued(changed=1)


@pytest.mark.parametrize("action", ["retry", "fail", "release"])
async def test_late_failures(desk, action):
    """A late failure or release changes nothing and is named."""
    late = await _taken_over(desk)
    before = await desk.row("a")
    assert len(await getattr(desk, action)(late)) == 1
    assert await desk.row("a") == before


# --- sessions


async def test_dead_session(desk):
    """What a dead process had is put back at once, uncharged, with a crash noted; its run is ended."""
    await desk.bring("a", "b", "c")
    other = await desk.other()
    await other.claim(2)
    await desk.one()
    await other.vanish()
    assert await desk.store.reap() == 2
    row = await desk.row("a")
    assert (row.status, row.attempts, row.crashes, row.error) == ("pending", 0, 1, "stale lease")
    last = await desk.store.last_run("k")
    assert (last.id, last.stop_reason, last.alive) == (other.run.id, "crashed", False)
    jobs = await desk.claim()
    assert [(job.key, job.fresh, job.crashes) for job in jobs] == [("a", False, 1), ("b", False, 1)]
    assert await desk.store.reap() == 0


async def test_living_session(desk):
    """A living process keeps what it has, however often others look."""
    await desk.bring("a")
    other = await desk.other()
    job = await other.one()
    for _ in range(30):
        await desk.store.beat(desk.session)
        await other.store.beat(other.session)
    assert await desk.store.reap() == 0
    assert await other.done(job) == []


async def test_silent_session(desk):
    """A process silent for twelve beats of another is dead to it, lock or not; it lives again with its next beat."""
    await desk.bring("a", "b")
    other = await desk.other()
    stolen = await other.one()
    for _ in range(12):
        await desk.store.beat(desk.session)
    assert await desk.store.reap() == 0
    await desk.store.beat(desk.session)
    assert await desk.store.reap() == 1
    assert (await desk.store.last_run("k")).alive is False
    assert [job.key for job in await desk.claim()] == ["a", "b"]
    await other.store.beat(other.session)
    assert len(await other.fail(stolen)) == 1
    assert (await desk.store.last_run("k")).alive is True
    await other.bring("c")
    job = await other.one()
    assert await desk.store.reap() == 0
    assert await other.done(job) == []


async def test_a_session_taken_for_dead_may_claim(desk):
    """What a process claims after others took it for dead is its own, even before its next beat."""
    other = await desk.other()
    for _ in range(13):
        await desk.store.beat(desk.session)
    await desk.store.reap()
    await other.bring("a")
    job = await other.one()
    assert await desk.store.reap() == 0
    assert await other.done(job) == []


async def test_longer_lease(open_store, clock, desk):
    """With a lease of two minutes it takes 24 beats, since a beat is at most 5 s apart from the next."""
    patient = type(desk)(await open_store(lease=120.0), clock, open_store)
    await patient.sit()
    await desk.bring("a")
    await desk.one()
    for _ in range(24):
        await patient.store.beat(patient.session)
    assert await patient.store.reap() == 0
    await patient.store.beat(patient.session)
    assert await patient.store.reap() == 1


async def test_end_of_a_session(desk):
    """A session that ends gives back what it has, uncharged; ending it twice is no error."""
    await desk.bring("a", "b")
    await desk.retry(await desk.one())
    await desk.claim()
    await desk.store.end_session(desk.session)
    await desk.store.end_session(desk.session)
    other = await desk.other()
    await other.bring("a", "b")
    jobs = await other.claim()
    assert [(job.key, job.attempts, job.fresh, job.crashes) for job in jobs] == [("a", 1, False, 0), ("b", 0, True, 0)]


async def _crash(desk, times):
    for _ in range(times):
        other = await desk.other()
        await other.claim()
        await other.vanish()
        await desk.store.reap()
        desk.clock.move(1.0)  # a suspect waits so long


async def test_poison(desk):
    """A record whose process died five times is failed, reason poison; a settle in between starts the count again."""
    await desk.bring("a")
    await _crash(desk, 4)
    await desk.retry(await desk.one())
    await _crash(desk, 4)
    assert (await desk.row("a")).status is Status.PENDING
    await _crash(desk, 1)
    row = await desk.row("a")
    assert (row.status, row.reason, row.crashes, row.attempts) == (Status.FAILED, "poison", 5, 1)
    await desk.store.retry("k", Selection(("poison",)))
    assert (await desk.one()).crashes == 0


async def test_left_among_rows(desk):
    """What is left of a few rows is told by those rows alone, however they ended."""
    await desk.bring("a", "b", "c")
    a, b = await desk.claim(2)
    rows = [a.row, b.row]
    assert await desk.store.left("k", desk.pass_, only=rows) == Left(True, None)
    await desk.done(a)
    await desk.retry(b, wait=5.0)
    assert (await desk.store.left("k", desk.pass_, only=rows)).due_in == pytest.approx(5.0, abs=0.01)
    assert (await desk.store.left("k", desk.pass_, only=[a.row])).nothing
    await desk.store.cancel("k", Selection(("b",)))
    assert (await desk.store.left("k", desk.pass_, only=rows)).nothing
    assert await desk.store.left("k", desk.pass_) == Left(False, 0.0)


async def test_suspects_run_alone(desk):
    """A record whose process died three times is claimed last, with nothing beside it."""
    await desk.bring("suspect", "b", "c")
    for _ in range(3):
        other = await desk.other()
        assert await other.keys(1) == ["suspect"]
        await other.vanish()
        await desk.store.reap()
    assert await desk.store.left("k", desk.pass_) == Left(False, 0.0)
    assert (await desk.store.left("k", desk.pass_, only=[1])).due_in == pytest.approx(1.0, abs=0.01)
    desk.clock.move(1.0)
    healthy = await desk.claim()
    assert [job.key for job in healthy] == ["b", "c"]
    assert await desk.claim() == []
    assert await desk.store.left("k", desk.pass_) == Left(True, None)
    await desk.done(*healthy)
    await desk.bring("d")
    await desk.done(*await desk.claim())
    (suspect,) = await desk.claim()
    await desk.bring("e")
    assert await desk.claim() == []
    assert await desk.store.left("k", desk.pass_) == Left(True, 0.0)
    await desk.done(suspect)
    assert await desk.keys() == ["e"]


# --- runs


async def test_passes(desk):
    """Each run is a new pass; one that begins while another process's runs joins its pass."""
    first = desk.run
    await desk.store.end_run(first, "done", {})
    await desk.next_pass()
    assert (desk.pass_, desk.run.joined) == (first.pass_ + 1, False)
    other = await desk.other()
    assert (other.pass_, other.run.joined) == (desk.pass_, True)
    await desk.store.end_run(desk.run, "done", {})
    await other.store.end_run(other.run, "done", {})
    third = await desk.other()
    assert (third.pass_, third.run.joined) == (desk.pass_ + 1, False)


async def test_dead_runs_are_not_joined(desk):
    """A run whose process died lends nobody its pass."""
    await desk.store.end_run(desk.run, "paused", {})
    other = await desk.other()
    await other.vanish()
    await desk.next_pass()
    assert (desk.pass_, desk.run.joined) == (other.pass_ + 1, False)


async def test_last_run(desk, store):
    """The run that was heard of last is shown with its settings, its end, what it did, and its process."""
    assert await store.last_run("unknown") is None
    run = await store.begin_run(desk.session, "k", {"concurrency": 8, "path": "in\udcff"})
    last = await store.last_run("k")
    assert (last.id, last.settings["concurrency"], last.alive, last.ended_at) == (run.id, 8, True, None)
    assert (last.host, last.pid) == (socket.gethostname(), os.getpid())
    await store.end_run(run, "done", {"done": 3})
    last = await store.last_run("k")
    assert (last.stop_reason, last.totals, last.alive) == ("done", {"done": 3}, False)


async def test_left(desk, clock):
    """What a pass has left: something running anywhere, and the seconds until something can be claimed."""
    left = desk.store.left
    assert (await left("k", desk.pass_)).nothing
    await desk.bring("a", "b")
    assert await left("k", desk.pass_) == Left(False, 0.0)
    a, b = await desk.claim()
    assert await left("k", desk.pass_) == Left(True, None)
    await desk.retry(a, wait=20)
    await desk.retry(b, wait=7)
    clock.move(2)
    assert await left("k", desk.pass_) == Left(False, 5.0)
    clock.move(20)
    assert await left("k", desk.pass_) == Left(False, 0.0)
    await desk.done(*await desk.claim())
    assert (await left("k", desk.pass_)).nothing


# --- what people ask and do


async def test_counts(desk):
    """The counts hold every status, and everything that was paid for."""
    await desk.bring("a", "b", "c", "d")
    a, b, c = await desk.claim(3)
    await desk.done(a, usage=USAGE)
    await desk.fail(b, outcome=failure(status=500, usage=USAGE))
    await desk.retry(c, outcome=failure(status=503))
    counts = await desk.store.counts("k")
    assert counts.by_status == {Status.DONE: 1, Status.FAILED: 1, Status.PENDING: 2}
    assert (counts.total, counts.retrying, counts.attempts, counts.cost) == (4, 1, 3, None)
    tokens = (counts.input_tokens, counts.output_tokens, counts.cached_tokens, counts.reasoning_tokens)
    assert tokens == (20, 10, 6, 4)
    assert counts.by_http_status == {200: 1, 500: 1, 503: 1}
    assert (await desk.store.counts("unknown")).total == 0


async def test_errors(desk):
    """Failures are grouped by reason, most first, with the first key of each."""
    await desk.bring("a", "b", "c", "d")
    a, b, c, d = await desk.claim()
    await desk.fail(a, outcome=failure("rare"))
    await desk.fail(b, c, outcome=failure("often"))
    await desk.retry(d, outcome=failure("waits"))
    often, rare = await desk.store.errors("k")
    assert (often.reason, often.count, often.sample_key, often.message) == ("often", 2, "b", "it said often")
    assert (rare.reason, rare.count) == ("rare", 1)


async def test_pages(desk):
    """Pages follow one another without a gap, all or those of a status."""
    await desk.bring(*"abcdef")
    await desk.done(*await desk.claim(2))
    first = await desk.store.page("k", limit=4)
    second = await desk.store.page("k", after=first[-1].row, limit=4)
    assert [row.key for row in first + second] == list("abcdef")
    assert [row.key for row in await desk.store.page("k", status=Status.DONE)] == ["a", "b"]
    assert await desk.store.job("k", "unknown") is None
    assert await desk.store.payload(99) is None


async def test_select(desk):
    """A selection holds jobs by reason, key, status and batch together, and names words that match nothing."""
    await desk.bring("a", "b", "timeout")
    await desk.bring("d", batch="b2")
    a, b, _, d = await desk.claim()
    await desk.fail(a, outcome=failure("timeout"))
    await desk.fail(b, d, outcome=failure("refused"))
    select = desk.store.select
    selected = await select("k", Selection(("timeout", "nonsense")))
    assert (selected.count, selected.sample, selected.unmatched) == (2, ("a", "timeout"), ("nonsense",))
    assert (await select("k", Selection(statuses=(Status.FAILED,)))).by_status == {Status.FAILED: 3}
    assert (await select("k", Selection(("refused",), batch="b2"))).sample == ("d",)
    assert (await select("k", Selection())).count == 4
    assert (await select("k", Selection(("nonsense",)))).count == 0
    with pytest.raises(StoreError):
        await select("k", Selection(("a\0",)))


async def test_retry_by_hand(desk):
    """Retry sets jobs back with attempts 0 for any run; a done one's answer no longer counts; running ones stay."""
    await desk.bring("done", "failed", "waits", "running")
    done, failed, waits = await desk.claim(3)
    await desk.done(done, value="old")
    await desk.fail(failed)
    await desk.retry(waits, wait=99)
    await desk.claim()
    assert await desk.store.retry("k", Selection()) == 3
    assert await desk.answer("done") is None
    await desk.next_pass()
    jobs = await desk.claim()
    assert [(job.key, job.attempts, job.fresh) for job in jobs] == [
        ("done", 0, True),
        ("failed", 0, True),
        ("waits", 0, True),
    ]
    await desk.done(jobs[0], value="new")
    assert await desk.answer("done") == "new"
    await desk.next_pass()
    await desk.bring(entry("done", "other"))
    await desk.next_pass()
    await desk.bring("done")
    assert await desk.answer("done") == "new"


async def test_a_superseded_answer_is_not_restored(desk):
    """An answer that a person had called again is no more, even when the record is changed and changed back."""
    await desk.bring("a")
    await desk.done(await desk.one(), value="bad")
    await desk.store.retry("k", Selection(("a",)))
    await desk.next_pass()
    await desk.bring(entry("a", "new"))
    await desk.next_pass()
    assert await desk.bring(entry("a")) == Enqueued(changed=1)


async def test_cancel(desk):
    """Cancel takes pending and running jobs out; what a running one's call gives is late."""
    await desk.bring("running", "pending", "done")
    running, done = await desk.claim(only=[1, 3])
    await desk.done(done)
    assert await desk.store.cancel("k", Selection()) == 2
    assert await desk.statuses() == {"running": "cancelled", "pending": "cancelled", "done": "done"}
    assert len(await desk.done(running)) == 1
    assert await desk.answer("running") is None
    assert (await desk.store.left("k", desk.pass_)).nothing


async def test_check(desk):
    """A sound store has no faults."""
    await desk.bring("a")
    assert await desk.store.check() == []


async def test_what_a_person_set_back_is_asked_what_the_next_run_asks(desk):
    """A job of no pass, which any run may take, is asked that run's own request."""
    await desk.bring("a")
    await desk.fail(await desk.one())
    await desk.store.retry("k", Selection(("a",)))
    other = await desk.store.request("k", "another")
    job = await desk.one()
    assert job.request == other
    await desk.done(job, value="new")
    assert (await desk.store.request_standing("k", "another")).done == 1
    assert (await desk.store.request_standing("k", "ask")).done == 0

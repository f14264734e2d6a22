"""Contract of the verbs that keep a store in good order or take something back; run against every store."""

from __future__ import annotations

import random
import string

import pytest
from storekit import START, Desk, entry

from rowcall.model.errors import OutputError, StoreError
from rowcall.model.job import Status
from rowcall.store.sqlite import SQLiteReader
from rowcall.store.types import Selection

LATE = "2099-01-01T00:00:00.000Z"


def claims(jobs):
    return [(job.row, job.epoch) for job in jobs]


async def test_a_beat_tells_which_claims_were_cancelled(desk):
    """Of its claims a session hears those that were cancelled, and no others, once and again."""
    await desk.bring("a", "b", "c")
    a, b, c = jobs = await desk.claim()
    assert await desk.store.beat(desk.session, claims(jobs)) == []
    await desk.store.cancel(desk.kind, Selection(("b",)))
    await desk.done(c)
    assert await desk.store.beat(desk.session, claims(jobs)) == claims([b])
    assert await desk.store.beat(desk.session, claims([a, c])) == []
    assert await desk.store.beat(desk.session) == []


async def test_an_older_claim_is_not_the_cancelled_one(desk):
    """A claim is known by its epoch: what was cancelled under a later one says nothing about it."""
    await desk.bring("a")
    first = await desk.one()
    await desk.release(first)
    second = await desk.one()
    await desk.store.cancel(desk.kind, Selection(("a",)))
    assert await desk.store.beat(desk.session, claims([first])) == []
    assert await desk.store.beat(desk.session, claims([second])) == claims([second])


async def test_rollback_without_a_previous_answer(desk):
    """Jobs with no other answer are pending with attempts 0, claimable by any run; other batches are left alone."""
    await desk.bring("a", batch="one")
    await desk.bring("b", batch="two")
    await desk.done(*await desk.claim())
    shown = await desk.store.batch_answers(desk.kind, "two")
    rolled = await desk.store.rollback(desk.kind, "two")
    assert shown == rolled
    assert (rolled.restored, rolled.pending, rolled.sample) == (0, 1, ("b",))
    assert await desk.statuses() == {"a": "done", "b": "pending"}
    await desk.next_pass()
    (again,) = await desk.claim()
    assert (again.key, again.attempts) == ("b", 0)


async def test_rollback_to_the_newest_answer_that_counts(desk):
    """Three answers: without the last batch the second stands, without that the first; a superseded one never does."""
    values = {"one": "1", "two": "2", "three": "3"}
    for batch, text in values.items():
        await desk.bring(entry("a", text), batch=batch)
        await desk.done(await desk.one(), value=text)
        await desk.next_pass()
    assert await desk.answer("a") == "3"
    await desk.store.rollback(desk.kind, "three")
    assert (await desk.answer("a"), (await desk.row("a")).batch) == ("2", "two")
    assert (await desk.store.rollback(desk.kind, "three")).count == 0
    await desk.store.rollback(desk.kind, "two")
    assert await desk.answer("a") == "1"
    await desk.store.rollback(desk.kind, "one")
    assert (await desk.row("a")).status is Status.PENDING


async def test_answers_rolled_back_do_not_come_back_with_an_edit(desk):
    """An answer of the batch that is not the current one is superseded too: its input is called again."""
    await desk.bring(entry("a", "old"), batch="bad")
    await desk.done(await desk.one())
    await desk.next_pass()
    await desk.bring(entry("a", "new"), batch="good")
    await desk.done(await desk.one())
    assert (await desk.store.rollback(desk.kind, "bad")).count == 0
    assert await desk.statuses() == {"a": "done"}
    await desk.next_pass()
    assert (await desk.bring(entry("a", "old"))).changed == 1


async def test_rollback_of_another_kind_is_another_matter(desk, clock, open_store):
    """The same batch name in another kind is not touched."""
    other = await Desk(desk.store, clock, open_store, kind="other").sit()
    for each in (desk, other):
        await each.bring("a", batch="same")
        await each.done(await each.one())
    await desk.store.rollback(desk.kind, "same")
    assert await other.statuses() == {"a": "done"}


async def test_a_late_answer_does_not_undo_a_rollback(desk):
    """What a call of before the rollback gives does not become the answer."""
    await desk.bring("a", batch="b")
    job = await desk.one()
    await desk.done(job)
    await desk.store.rollback(desk.kind, "b")
    await desk.done(job, value="late")
    assert await desk.statuses() == {"a": "pending"}


async def test_batches_are_those_of_jobs_and_of_answers(desk):
    """A batch whose jobs have all moved on to another is still known by its answers."""
    await desk.bring(entry("a", "1"), batch="one")
    await desk.done(await desk.one())
    await desk.next_pass()
    await desk.bring(entry("a", "2"), batch="two")
    assert await desk.store.batches(desk.kind) == ["one", "two"]


async def test_prune_keeps_all_but_payloads_of_done_jobs(desk, clock, open_store):
    """Payloads of jobs done before the time go; status, answers and what is not done stay; asking again drops none."""
    await desk.bring("a", "b", "c")
    a, b, _ = await desk.claim()
    await desk.done(a)
    clock.move(100)
    await desk.done(b)
    await desk.store.end_session(desk.session)
    before = "2023-11-14T22:14:00.000Z"
    assert START + 40 == 1_700_000_040  # which is that time
    assert await desk.store.prunable(desk.kind, before) == 1
    assert (await desk.store.prune(desk.kind, before)).payloads == 1
    assert (await desk.store.prune(desk.kind, before)).payloads == 0
    assert await desk.store.payload((await desk.row("a")).row) is None
    assert await desk.answer("a") == "yes"
    assert await desk.store.payload((await desk.row("b")).row) is not None
    assert await desk.statuses() == {"a": "done", "b": "done", "c": "pending"}


async def test_prune_says_how_much_was_gained(desk):
    """The bytes gained are those of the payloads, more or less."""
    letters = random.Random(0).choices(string.ascii_letters + string.digits, k=500_000)  # which no store makes shorter
    payloads = ("".join(letters[n * 10_000 : (n + 1) * 10_000]) for n in range(50))
    await desk.bring(*(entry(f"k{n}", payload=f'"{payload}"') for n, payload in enumerate(payloads)))
    await desk.done(*await desk.claim())
    await desk.store.end_session(desk.session)
    assert 400_000 < (await desk.store.prune(desk.kind, LATE)).gained < 900_000


async def test_prune_is_refused_while_a_session_lives(desk):
    """With a living session, of whatever process, nothing is dropped; after a crash nothing is in the way."""
    await desk.bring("a")
    await desk.done(await desk.one())
    other = await desk.other()
    await desk.store.end_session(desk.session)
    with pytest.raises(StoreError, match="a run is live"):
        await desk.store.prune(desk.kind, LATE)
    assert await desk.store.prunable(desk.kind, LATE) == 1
    await other.vanish()
    assert (await desk.store.prune(desk.kind, LATE)).payloads == 1


async def test_a_pruned_job_waits_for_its_record(desk, open_store):
    """Set back to pending it is not claimed before ``enqueue`` has brought its record again, and then with it."""
    await desk.bring("a")
    await desk.done(await desk.one())
    await desk.store.end_session(desk.session)
    await desk.store.prune(desk.kind, LATE)
    await desk.store.retry(desk.kind, Selection(("a",)))
    await desk.sit()
    assert await desk.claim() == []
    assert (await desk.bring("a")).waiting == 1
    assert (await desk.one()).data == {"id": "a", "text": ""}


async def test_left_behind_are_pending_jobs_of_earlier_passes(desk):
    """What a pass did not bring, page by page, with the payload; neither done jobs nor those of no pass."""
    await desk.bring("a", "b", "c", "d", "e")
    await desk.done(await desk.one())
    await desk.store.cancel(desk.kind, Selection(("e",)))
    await desk.store.retry(desk.kind, Selection(("e",)))
    await desk.next_pass()
    await desk.bring("b")
    first = await desk.store.left_behind(desk.kind, desk.pass_, limit=1)
    second = await desk.store.left_behind(desk.kind, desk.pass_, after=first[0].row)
    assert [job.key for job in first + second] == ["c", "d"]
    assert first[0].payload == entry("c").payload


async def test_flaws_are_found(desk):
    """A sound kind has none."""
    await desk.bring("a", "b")
    await desk.done(await desk.one(), value={"n": [1, None, "é"]})
    assert await desk.store.flaws(desk.kind) == []


async def test_a_backup_is_whole_and_at_rest(desk, tmp_path):
    """The copy has every job; what was running is pending there and claimable, uncharged; the original runs on."""
    await desk.bring("a", "b", "c")
    a, b, _ = await desk.claim(3)
    await desk.done(a)
    await desk.store.backup(tmp_path / "copy.db")
    async with await SQLiteReader.open(tmp_path / "copy.db") as copy:
        assert [row.status for row in await copy.page(desk.kind)] == ["done", "pending", "pending"]
        assert {row.attempts for row in await copy.page(desk.kind)} == {0, 1}
        assert await copy.check() == []
        assert (run := await copy.last_run(desk.kind))
        assert not run.alive
        assert run.stop_reason == "backup"
    assert await desk.done(b) == []
    assert await desk.statuses() == {"a": "done", "b": "done", "c": "running"}


async def test_a_backup_overwrites_nothing(desk, tmp_path):
    """A name that is taken is refused, and what stands there is left as it is."""
    (tmp_path / "copy.db").write_text("mine")
    with pytest.raises(OutputError, match="the file exists already"):
        await desk.store.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "mine"

"""The settler over a real store that a test can hold up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from rowcall.engine.settler import Settler
from rowcall.limits.concurrency import Concurrency
from rowcall.model.errors import Busy, Full
from rowcall.model.events import LateOutcome
from rowcall.model.job import Status
from rowcall.model.outcome import Action, Settlement, Success
from rowcall.store.types import Entry


class HeldUp:
    """A store whose settling waits for ``go``, and fails as often as ``errors`` says before it works."""

    def __init__(self, store):
        self._store = store
        self.groups = []
        self.errors = []
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()

    async def settle(self, group):
        self.begun.set()
        await self.go.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.groups.append([settlement.job.key for settlement in group])
        return await self._store.settle(group)


class Bench:
    """A settler at work, and jobs to settle."""

    def __init__(self, store, jobs, concurrency, *, loaded):
        self.store, self.real, self.jobs = HeldUp(store), store, jobs
        self.events, self.full = [], []
        door = SimpleNamespace(concurrency=Concurrency(concurrency))
        state = SimpleNamespace(door=door, in_flight=int(loaded), stop_full=self.full.append)
        self.settler = Settler(self.store, state, emit=self.events.append)
        self.running = asyncio.create_task(self.settler.run())

    def put(self, *numbers):
        self.settler.put(Settlement(self.jobs[n], Action.DONE, outcome=Success("yes")) for n in numbers)

    async def end(self):
        self.settler.close()
        await asyncio.wait_for(self.running, 5)


@pytest.fixture
async def bench(store):
    """Makes a settler over jobs 0 to 19, which are claimed."""
    session = await store.begin_session()
    run = await store.begin_run(session, "k", {})
    request = await store.request("k", "r")
    entries = [Entry(f"{n}", f"h{n}", "{}", f"in:{n}") for n in range(20)]
    await store.enqueue("k", entries, pass_=run.pass_, request=request, batch="b")
    jobs = await store.claim(session, "k", run.pass_, 20)
    return lambda concurrency=10, *, loaded=False: Bench(store, jobs, concurrency, loaded=loaded)


async def test_a_group_of_one_for_every_slot_is_written_at_once(bench, monkeypatch):
    """A group that grows to the concurrency waits no longer, since every slot may be waiting for it."""
    monkeypatch.setattr("rowcall.engine.settler.GROW_FOR", 3600.0)
    settling = bench(loaded=True)
    settling.put(0)
    await asyncio.sleep(0)  # it begins to wait for more
    await asyncio.sleep(0)
    assert not settling.store.begun.is_set()
    settling.put(*range(1, 10))
    await asyncio.wait_for(settling.settler.flush(), 5)
    assert [len(group) for group in settling.store.groups] == [10]
    await settling.end()


async def test_a_group_is_what_came_in_while_the_last_was_written(bench):
    """Two groups at most exist: what comes in while one is written is the next one."""
    settling = bench()
    settling.store.go.clear()
    settling.put(0)
    await settling.store.begun.wait()
    settling.put(1, 2)
    settling.put(3)
    settling.store.go.set()
    await settling.end()
    assert settling.store.groups == [["0"], ["1", "2", "3"]]
    assert (await settling.real.counts("k")).of(Status.DONE) == 4


async def test_under_load_a_group_waits_to_grow(bench, monkeypatch):
    """While calls are in flight a lone settlement waits for others; with none in flight it does not."""
    monkeypatch.setattr("rowcall.engine.settler.GROW_FOR", 1.0)
    growing, at_once = bench(loaded=True), bench(loaded=False)
    growing.put(0)
    at_once.put(10)
    await asyncio.wait_for(at_once.settler.flush(), 5)
    growing.put(1)
    await growing.end()
    await at_once.end()
    assert growing.store.groups == [["0", "1"]]
    assert at_once.store.groups == [["10"]]


async def test_handing_over_waits_while_too_much_is_unwritten(bench):
    """With more than twice as many unwritten as calls may be in flight, whoever has handed over waits."""
    settling = bench(concurrency=2)
    settling.store.go.clear()
    settling.put(0, 1, 2, 3)
    await asyncio.wait_for(settling.settler.room(), 5)
    settling.put(4)
    waiting = asyncio.create_task(settling.settler.room())
    await asyncio.wait([waiting], timeout=0.1)
    assert not waiting.done()
    assert settling.settler.unwritten == 5
    settling.store.go.set()
    await asyncio.wait_for(waiting, 5)
    await settling.end()


async def test_a_store_that_is_held_is_tried_again(bench):
    """Answers are paid for: as often as the store is held by somebody else, they are written afterwards."""
    settling = bench()
    settling.store.errors = [Busy("held"), Busy("held")]
    settling.put(0, 1)
    await settling.end()
    assert settling.store.groups == [["0", "1"]]


async def test_a_full_disk_is_waited_for(bench, monkeypatch):
    """What is in hand waits for space, and nothing more is begun."""
    monkeypatch.setattr("rowcall.engine.settler.LOOK_FOR_SPACE", 0.01)
    settling = bench()
    settling.store.errors = [Full("full"), Full("full")]
    settling.put(0)
    await settling.end()
    assert [str(full) for full in settling.full] == ["full", "full"]
    assert (await settling.real.counts("k")).of(Status.DONE) == 1


@pytest.mark.parametrize("hurried", [True, False])
async def test_a_full_disk_is_not_waited_for_without_end(bench, monkeypatch, hurried):
    """After a minute, or at once for somebody in a hurry, the run ends with what is needed."""
    monkeypatch.setattr("rowcall.engine.settler.LOOK_FOR_SPACE", 0.01)
    monkeypatch.setattr("rowcall.engine.settler.SPACE_FOR", 60.0 if hurried else 0.03)
    settling = bench()
    settling.store.errors = [Full("full")] * 1000
    if hurried:
        settling.settler.hurry()
    settling.put(0)
    with pytest.raises(Full):
        await settling.end()
    assert (len(settling.full) == 1) is hurried


async def test_what_comes_too_late_is_told_once(bench):
    """A settlement whose claim has passed on is named, and the others of its group count."""
    settling = bench()
    await settling.real.settle([Settlement(settling.jobs[0], Action.RELEASE)])
    settling.put(0, 1)
    await settling.end()
    assert settling.events == [LateOutcome("0", settling.jobs[0].epoch)]
    assert (await settling.real.counts("k")).of(Status.DONE) == 2  # nobody else has it, so it counts


async def test_nothing_is_left_when_it_ends(bench):
    """Whatever was put before it is closed is written."""
    settling = bench(loaded=True)
    for n in range(20):
        settling.put(n)
    await settling.end()
    assert settling.settler.unwritten == 0
    assert (await settling.real.counts("k")).of(Status.DONE) == 20

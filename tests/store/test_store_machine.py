"""The store against a small model of it: whatever is done in whatever order, both agree (R5, R6, R14)."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pgkit
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from storekit import START, Clock, entry, failure, success

from rowcall.model.errors import DuplicateKey
from rowcall.model.outcome import Action, Settlement
from rowcall.store.postgres import PostgresStore
from rowcall.store.sqlite import SQLiteStore
from rowcall.store.types import Enqueued, Left, Selection

KEYS = st.sampled_from("abcd")
TEXTS = st.sampled_from(["x", "y"])
REQUESTS = st.sampled_from(["p", "q"])
WORKERS = st.sampled_from(["first", "second"])
WAITS = st.sampled_from([None, 0, 5, 60])


@dataclass
class ModelJob:
    row: int
    text: str
    request: int
    pass_: int | None
    status: str = "pending"
    attempts: int = 0
    crashes: int = 0
    epoch: int = 0
    session: int | None = None
    due: float | None = None
    wait: float = 0

    def fresh(self, **facts):
        """Start over."""
        for name, value in ({"status": "pending", "attempts": 0, "crashes": 0, "due": None} | facts).items():
            setattr(self, name, value)


@dataclass
class ModelAnswer:
    epoch: int
    request: int
    text: str
    value: str
    superseded: bool = False


@dataclass
class Model:
    """What the contract says, in plain Python."""

    now: float = START
    pass_: int = 0
    request: int = 0
    charged: int = 0
    adopted: dict = field(default_factory=dict)
    requests: dict = field(default_factory=dict)
    seen: dict = field(default_factory=dict)
    jobs: dict = field(default_factory=dict)
    answers: dict = field(default_factory=dict)
    tries: set = field(default_factory=set)

    def counts_for(self, request):
        return request == self.request or self.adopted.get(request) == self.request

    def answer(self, key):
        job = self.jobs[key]
        if job.status == "done":
            return self.newest(key, lambda answer: (answer.request, answer.text) == (job.request, job.text)).value
        return None

    def newest(self, key, fits):
        fitting = [each for each in self.answers.get(key, []) if fits(each) and not each.superseded]
        return max(fitting, key=lambda answer: answer.epoch, default=None)

    def enqueue(self, key, text):
        if key in self.seen:
            return "repeated" if self.seen[key] == text else None
        self.seen[key] = text
        job = self.jobs.get(key)
        if job is None:
            self.jobs[key] = ModelJob(len(self.jobs) + 1, text, self.request, self.pass_)
            return "new"
        if job.text == text and self.counts_for(job.request):
            if job.status != "done":
                job.pass_ = self.pass_
            if job.status == "pending":
                job.request = self.request
            return {"pending": "waiting", "running": "waiting"}.get(job.status, job.status)
        return self._change(key, job, text)

    def _change(self, key, job, text):
        known = self.newest(key, lambda answer: answer.text == text and self.counts_for(answer.request))
        facts = {"text": text, "request": self.request, "pass_": self.pass_}
        if known:
            job.fresh(**facts | {"status": "done", "request": known.request, "epoch": job.epoch + 1})
            return "restored"
        if job.status == "running":
            job.fresh(**facts | {"status": "running", "crashes": job.crashes})
        else:
            job.fresh(**facts | {"epoch": job.epoch + 1})
        return "changed"

    def claimable(self, session):
        """Keys in the order of claiming, all that may be taken at once."""
        mine = [job for job in self.jobs.values() if job.status == "running" and job.session == session]
        if any(job.crashes >= 3 for job in mine):
            return []
        ready = [key for key, job in self.jobs.items() if self._ready(job)]
        ready.sort(key=lambda key: (self.jobs[key].due is None, self.jobs[key].due or 0, self.jobs[key].row))
        healthy = [key for key in ready if self.jobs[key].crashes < 3]
        return healthy or ([] if mine else ready[:1])

    def _ready(self, job):
        return job.status == "pending" and job.pass_ in (self.pass_, None) and (job.due is None or job.due <= self.now)

    def left(self):
        ours = [job for job in self.jobs.values() if job.pass_ in (self.pass_, None)]
        running = any(job.status == "running" for job in ours)
        waiting = [job for job in ours if job.status == "pending" and (not running or job.crashes < 3)]
        ends = [max(0.0, (job.due or self.now) - self.now) for job in waiting]
        return Left(running, min(ends, default=None))

    def settle(self, claimed, action, wait):
        """Returns whether it is late."""
        job = self.jobs[claimed.key]
        same = (job.request, job.text) == (claimed.request, claimed.data["text"])
        running = job.status == "running" and job.epoch == claimed.epoch
        if running and same:
            self._close(job, claimed, action, wait)
        elif running:
            job.fresh()
        if running:
            self._keep(claimed, action, charged=action is not Action.RELEASE, superseded=False)
            return False
        return self._late(job, claimed, action, same)

    def _close(self, job, claimed, action, wait):
        job.crashes = 0
        job.attempts += action is not Action.RELEASE
        job.status = {Action.DONE: "done", Action.FAIL: "failed"}.get(action, "pending")
        job.wait = wait or 0
        untouched = action is Action.RELEASE and wait is None and claimed.fresh
        job.due = None if untouched or job.status != "pending" else self.now + job.wait

    def _late(self, job, claimed, action, same):
        superseded = same or any(
            (answer.request, answer.text) == (claimed.request, claimed.data["text"])
            for answer in self.answers.get(claimed.key, [])
        )
        if action is Action.DONE and same and job.status == "pending" and job.epoch == claimed.epoch:
            self._close(job, claimed, action, None)
            superseded = False
        return not self._keep(claimed, action, charged=action is Action.DONE, superseded=superseded, late=True)

    def _keep(self, claimed, action, *, charged, superseded, late=False):
        """Returns whether it was there before."""
        mark = (claimed.key, claimed.epoch, action is Action.DONE)
        if action is Action.RELEASE:
            return not late
        if mark in self.tries:
            return True
        self.tries.add(mark)
        self.charged += charged
        if action is Action.DONE:
            answer = ModelAnswer(claimed.epoch, claimed.request, claimed.data["text"], _value(claimed), superseded)
            self.answers.setdefault(claimed.key, []).append(answer)
        return False

    def take_along(self):
        for job in self.jobs.values():
            if job.status == "pending" and job.pass_ is None:
                job.request = self.request

    def crash(self, session):
        for job in self.jobs.values():
            if job.status == "running" and job.session == session:
                job.crashes += 1
                job.status = "pending" if job.crashes < 5 else "failed"
                job.wait = 1.0 if job.crashes >= 3 else 0
                job.due = self.now + job.wait

    def retry(self, key):
        job = self.jobs.get(key)
        if job and job.status != "running":
            for answer in self.answers.get(key, []) if job.status == "done" else []:
                answer.superseded |= (answer.request, answer.text) == (job.request, job.text)
            job.fresh(pass_=None, epoch=job.epoch + 1)

    def cancel(self, key):
        job = self.jobs.get(key)
        if job and job.status in ("pending", "running"):
            job.status = "cancelled"

    def set_back(self, key):
        job = self.jobs.get(key)
        if job and job.status in ("done", "failed", "cancelled"):
            job.fresh(attempts=job.attempts, pass_=None, epoch=job.epoch + 1)

    def clock_went_back(self):
        for job in self.jobs.values():
            if job.status == "pending" and job.due is not None and job.due - job.wait > self.now:
                job.due, job.wait = self.now, 0


def _value(claimed):
    return f"{claimed.key} {claimed.data['text']} {claimed.epoch}"


class StoreMachine(RuleBasedStateMachine):
    """Two processes at one store, one of which may crash."""

    claims = Bundle("claims")

    @initialize()
    def open(self):
        self.loop = asyncio.new_event_loop()
        self.clock, self.model = Clock(), Model()
        self.make_place()
        self.stores, self.sessions, self.run = {}, {}, None
        for worker in ("first", "second"):
            self._start(worker)
        self.use_request("p")
        self.next_pass()

    def make_place(self):
        """Where the store is to be."""
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "test.db")

    async def open_store(self):
        return await SQLiteStore.open(self.path, durability="normal", clock=self.clock)

    def leave_place(self):
        self.folder.cleanup()

    def by_hand(self, key):
        """Set a row back to pending in a shell."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as shell:
            shell.execute("PRAGMA wal_autocheckpoint = 0")
            shell.execute(
                "UPDATE jobs SET status = 'pending' WHERE id = ? AND status IN ('done', 'failed', 'cancelled')", (key,)
            )

    def _do(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def _start(self, worker):
        self.stores[worker] = self._do(self.open_store())
        self.sessions[worker] = self._do(self.stores[worker].begin_session())

    @property
    def store(self):
        return self.stores["first"]

    def teardown(self):
        for store in self.stores.values():
            self._do(store.close())
        self.loop.close()
        self.leave_place()

    @rule()
    def next_pass(self):
        if self.run:
            self._do(self.store.end_run(self.run, "done", {}))
        self.run = self._do(self.store.begin_run(self.sessions["first"], "k", {}))
        self.model.pass_ += 1
        self.model.seen = {}
        assert self.run.pass_ == self.model.pass_

    @rule(name=REQUESTS)
    def use_request(self, name):
        self.model.request = self._do(self.store.request("k", name))
        assert self.model.requests.setdefault(name, self.model.request) == self.model.request
        self.model.take_along()

    @rule(name=REQUESTS)
    def adopt(self, name):
        self.model.request = self._do(self.store.adopt("k", name))
        self.model.requests.setdefault(name, self.model.request)
        for other in self.model.requests.values():
            if other != self.model.request:
                self.model.adopted[other] = self.model.request
        self.model.take_along()

    @rule(keys=st.lists(KEYS, min_size=1, max_size=5), text=TEXTS, new_pass=st.booleans())
    def enqueue(self, keys, text, new_pass):
        if new_pass:
            self.next_pass()
        expected = [self.model.enqueue(key, text) for key in keys[: self._until_duplicate(keys, text)]]
        entries = [entry(key, text) for key in keys]
        work = self.store.enqueue("k", entries, pass_=self.model.pass_, request=self.model.request, batch="b")
        if len(expected) < len(keys):
            with pytest.raises(DuplicateKey):
                self._do(work)
        else:
            assert self._do(work) == Enqueued(**{name: expected.count(name) for name in set(expected)})

    def _until_duplicate(self, keys, text):
        clashes = [n for n, key in enumerate(keys) if self.model.seen.get(key, text) != text]
        return min(clashes, default=len(keys))

    @rule(target=claims, worker=WORKERS, limit=st.integers(1, 3))
    def claim(self, worker, limit):
        session = self.sessions[worker]
        jobs = self._do(self.stores[worker].claim(session, "k", self.model.pass_, limit))
        expected = self.model.claimable(session)[:limit]
        assert [job.key for job in jobs] == expected
        for job in jobs:
            model = self.model.jobs[job.key]
            model.status, model.session, model.epoch = "running", session, model.epoch + 1
            assert (job.epoch, job.attempts, job.crashes, job.fresh, job.request, job.data["text"]) == (
                (model.epoch, model.attempts, model.crashes, model.due is None, model.request, model.text)
            )
        return multiple(*jobs)

    @rule(claimed=claims, action=st.sampled_from([Action.DONE, Action.DONE, Action.RETRY, Action.FAIL]), wait=WAITS)
    def settle(self, claimed, action, wait):
        outcome = success(_value(claimed)) if action is Action.DONE else failure()
        self._settle(claimed, action, wait, outcome)

    @rule(claimed=claims, wait=WAITS)
    def release(self, claimed, wait):
        self._settle(claimed, Action.RELEASE, wait, None)

    def _settle(self, claimed, action, wait, outcome):
        late = self._do(self.store.settle([Settlement(claimed, action, wait, outcome)]))
        assert bool(late) == self.model.settle(claimed, action, wait)

    @rule()
    def crash(self):
        self._do(self.stores["second"].close())
        self._do(self.store.reap())
        self.model.crash(self.sessions["second"])
        self._start("second")

    @rule(key=KEYS)
    def retry(self, key):
        self._do(self.store.retry("k", Selection((key,))))
        self.model.retry(key)

    @rule(key=KEYS)
    def cancel(self, key):
        self._do(self.store.cancel("k", Selection((key,))))
        self.model.cancel(key)

    @rule(key=KEYS)
    def set_back_by_hand(self, key):
        self.by_hand(key)
        self.model.set_back(key)

    @rule(seconds=st.sampled_from([1, 5, 60, 3600, -2, -60, -3600]))
    def move_clock(self, seconds):
        self.clock.move(seconds)
        self.model.now += seconds
        self._do(self.store.beat(self.sessions["first"]))
        if seconds < 0:
            self.model.clock_went_back()

    @invariant()
    def agree(self):
        rows = self._do(self.store.page("k"))
        model = self.model.jobs
        assert [(row.key, row.status, row.attempts, row.crashes) for row in rows] == [
            (key, job.status, job.attempts, job.crashes) for key, job in model.items()
        ]
        answers = self._do(self.store.answers("k", list(model)))
        assert {key: answer.value for key, answer in answers.items()} == {key: self.model.answer(key) for key in model}
        assert self._do(self.store.left("k", self.model.pass_)) == self.model.left()
        assert self._do(self.store.counts("k")).attempts == self.model.charged


class PostgresMachine(StoreMachine):
    """The same in a database of a server."""

    def make_place(self):
        self.server = pgkit.the_server()
        self.lent = self.server.store()
        self.database = self.lent.__enter__()
        self.clock.shown_by(lambda seconds: self.server.set_clock(self.database, seconds))

    async def open_store(self):
        return await PostgresStore.open(self.server.url(self.database), looks_apart=0.0)

    def leave_place(self):
        self.lent.__exit__(None, None, None)

    def by_hand(self, key):
        self.server.execute(
            "UPDATE rowcall.jobs SET status = 'pending' "
            f"WHERE id = '{key}' AND status IN ('done', 'failed', 'cancelled')",
            self.database,
        )


def _agree(machine, examples):
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=25, deadline=None, database=None)
    )


@pytest.mark.parametrize("examples", [50, pytest.param(2_000, marks=pytest.mark.soak)])
def test_store_and_model_agree(examples):
    """Store and model agree after every step."""
    _agree(StoreMachine, examples)


@pytest.mark.postgres
@pytest.mark.parametrize("examples", [25, pytest.param(2_000, marks=pytest.mark.soak)])
def test_postgres_and_model_agree(postgres_server, examples):
    """So do a store in a database and the model."""
    _agree(PostgresMachine, examples)

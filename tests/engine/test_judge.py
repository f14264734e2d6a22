"""The gate and the judge, against simulated APIs: who pays, and does every run end."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.failures.decide import Judge
from rowcall.failures.gate import Gate
from rowcall.failures.retries import RetryPolicy
from rowcall.model.job import Job
from rowcall.model.outcome import Action, Failure, FailureClass, Success

C = FailureClass
POISON = Failure(C.SERVER, "http_500", "boom", status=500)
REFUSED = Failure(C.NOT_SENT, "refused", "refused")
DOWN = Failure(C.SERVER, "http_503", "down", status=503)
LOST = Failure(C.MAYBE_SENT, "reset", "reset")
BAD = Failure(C.RECORD, "bad_request", "bad", status=400)
KEY = Failure(C.SETUP, "bad_key", "key", status=401)
BARRED = Failure(C.SETUP, "forbidden", "forbidden", status=403)


def job(row, attempts=0):
    return Job(row, str(row), 1, attempts, 0, (), True, 1, "h", {})


@dataclass
class World:
    """A run of records over a simulated API: ``answer(row, sent_at)`` gives the outcome of a call."""

    answer: object
    records: int
    concurrency: int = 10
    latency: float = 0.05
    attempts: int = 3
    longest: float = 60.0
    now: float = 0.0
    calls: int = 0
    done: set = field(default_factory=set)
    failed: dict = field(default_factory=dict)
    charged: Counter = field(default_factory=Counter)
    stopped: Failure | None = None
    probes: list = field(default_factory=list)

    def run(self, until=200_000.0):
        self.judge = Judge(Gate(), RetryPolicy(attempts=self.attempts, longest=self.longest, jitter=lambda: 0.0))
        self.pending = [(0.0, row) for row in range(self.records)]
        self.fresh = set(range(self.records))
        self.held, flying = set(), []
        while not self.stopped and self.now < until:
            self._start(flying)
            if flying:
                self._land(flying)
            elif not self._claimable() and self.held:
                self._apply(self.judge.idle())
            elif not self.pending:
                return self
            else:
                self._wait()
        return self

    def _claimable(self):
        return any(due <= self.now for due, _ in self.pending)

    def _start(self, flying):
        while len(flying) < self.concurrency and self._claimable():
            room = self.judge.gate.room(self.now)
            if room is not None and (room == 0 or any(f[4] for f in flying)):
                return
            probe = self.judge.gate.closed is not None
            due = [p for p in self.pending if p[0] <= self.now]
            untouched = [p for p in due if p[1] in self.fresh]
            pick = min(untouched if probe and untouched else due, key=lambda p: (p[0] == 0.0, p))
            self.pending.remove(pick)
            self.fresh.discard(pick[1])
            number = self.judge.gate.depart(self.now)
            self.calls += 1
            if probe:
                self.probes.append(self.now)
            ends = self.now + self.latency * (1 + (pick[1] * 7 % 5) / 50)
            heapq.heappush(flying, (ends, number, pick[1], self.now, room is not None, probe))

    def _land(self, flying):
        self.now, number, row, sent, _, probe = heapq.heappop(flying)
        of = job(row, self.charged[row])
        self._apply(self.judge.rule(of, number, self.answer(row, sent), now=self.now, probe=probe), row)

    def _apply(self, ruling, row=None):
        if row is not None:
            self.held.add(row)
        for s in ruling.settlements:
            self._settle(s.job.row, s)
        self.stopped = self.stopped or ruling.stop
        assert len(self.judge.gate._held) == len(self.held)

    def _settle(self, row, s):
        assert row not in self.done
        assert row not in self.failed
        self.held.discard(row)
        if s.action is not Action.RELEASE:
            self.charged[row] += 1
        if s.action is Action.DONE:
            self.done.add(row)
        elif s.action is Action.FAIL:
            self.failed[row] = s.outcome.reason
        else:
            self.pending.append((self.now + s.wait, row))

    def _wait(self):
        gate = self.judge.gate.room_at()
        due = min(d for d, _ in self.pending)
        self.now = max(due, gate or 0.0, self.now + 1e-6)


def ok(row=None, sent=None):
    return Success("fine", status=200)


def during(start, end, failure):
    return lambda row, sent: failure if start <= sent < end else ok()


@pytest.mark.parametrize("cause", [REFUSED, DOWN, LOST], ids=lambda f: f.reason)
@pytest.mark.parametrize("seconds", [5, 30, 600])
@pytest.mark.parametrize("concurrency", [1, 10, 50])
def test_an_outage_costs_nothing(cause, seconds, concurrency):
    """An outage in the middle fails no record and charges none; probes are a second or more apart."""
    world = World(during(1.0, 1.0 + seconds, cause), 400 if seconds < 600 else 3000, concurrency).run()
    assert len(world.done) == world.records
    assert set(world.charged.values()) == {1}
    assert all(b - a >= 1.0 for a, b in zip(world.probes, world.probes[1:], strict=False))
    if concurrency == 10 and seconds < 600:
        assert world.now < 1.0 + seconds + 6 + 400 * 0.06 / 10 + 1


def test_it_goes_on_within_six_seconds():
    """After an outage the next probe leaves within five seconds and opens the gate."""
    world = World(during(1.0, 31.0, DOWN), 400).run()
    assert min(t for t in world.probes if t >= 31.0) <= 36.0
    assert world.judge.gate.closed is None


@pytest.mark.parametrize("poison", [1, 3, 20, 200])
@pytest.mark.parametrize("where", ["first", "middle", "last", "spread"])
@pytest.mark.parametrize("concurrency", [1, 50])
def test_poison_records_pay_for_themselves(poison, where, concurrency):
    """Records that always get a 500 fail after exactly their attempts, and nothing else is touched."""
    total = 600
    rows = {
        "first": range(poison),
        "middle": range(300, 300 + poison),
        "last": range(total - poison, total),
        "spread": range(0, total, total // poison),
    }[where]
    bad = set(list(rows)[:poison])
    world = World(lambda row, sent: POISON if row in bad else ok(), total, concurrency).run()
    assert set(world.failed) == bad
    assert len(world.done) == total - poison
    assert {world.charged[row] for row in bad} == {3}
    assert {world.charged[row] for row in world.done} == {1}


def test_a_lone_poison_record_fails_in_seconds():
    """A poison record as the only one left fails after its attempts and their backoff."""
    world = World(lambda row, sent: POISON if row == 9 else ok(), 10).run()
    assert set(world.failed) == {9}
    assert world.now < 5


@settings(max_examples=120, deadline=None)
@given(
    total=st.integers(20, 200),
    poison=st.sets(st.integers(0, 199), max_size=30),
    bad=st.sets(st.integers(0, 199), max_size=20),
    outages=st.lists(
        st.tuples(st.floats(0, 30), st.floats(0.1, 60), st.sampled_from([REFUSED, DOWN, LOST])), max_size=3
    ),
    concurrency=st.sampled_from([1, 3, 20, 64]),
)
def test_every_mix_ends(total, poison, bad, outages, concurrency):
    """Whatever the mix of poison, bad records and outages: the run ends and no poison record is done."""

    def answer(row, sent):
        for start, length, cause in outages:
            if 3 <= start <= sent < start + length:
                return cause
        return POISON if row in poison else BAD if row in bad else ok()

    world = World(answer, total, concurrency).run()
    assert world.now < 200_000, "the run does not end"
    if world.stopped:
        assert world.stopped.reason == "bad_request"
        return
    assert len(world.done) + len(world.failed) == total
    sick = (poison | bad) & set(range(total))
    assert not world.done & sick


@settings(max_examples=80, deadline=None)
@given(
    poison=st.sets(st.integers(50, 300), max_size=12),
    start=st.floats(1, 3),
    length=st.floats(0.2, 90),
    cause=st.sampled_from([REFUSED, DOWN, LOST]),
    concurrency=st.sampled_from([1, 8, 32]),
)
def test_exactly_the_poison_fails(poison, start, length, cause, concurrency):
    """With an outage among 600 records, exactly the poison ones fail; the healthy ones pay for their success alone."""
    broken = during(start, start + length, cause)

    def answer(row, sent):
        outcome = broken(row, sent)
        return POISON if row in poison and outcome == ok() else outcome

    world = World(answer, 600, concurrency).run()
    assert set(world.failed) == poison
    assert all(world.charged[row] == 1 for row in world.done)


def test_a_wrong_key_costs_one_call():
    """401 on everything: the first call goes alone and stops the run, nothing is charged."""
    world = World(lambda row, sent: KEY, 100, 50).run()
    assert world.stopped == KEY
    assert world.calls == 1
    assert not world.charged


def test_a_key_revoked_in_the_middle_stops_the_run():
    """401 on everything after a while: the run stops, nothing is failed or charged for it."""
    world = World(lambda row, sent: KEY if sent > 1 else ok(), 500).run()
    assert world.stopped == KEY
    assert not world.failed
    assert set(world.charged.values()) == {1}


def test_single_forbidden_records_fail_alone():
    """A 403 for one record among successes is that record's failure."""
    world = World(lambda row, sent: BARRED if row % 100 == 50 else ok(), 500).run()
    assert set(world.failed) == {50, 150, 250, 350, 450}
    assert not world.stopped


def test_the_first_five_alike_stop_the_run():
    """When the first five records are all refused alike, the request is wrong, not the records."""
    world = World(lambda row, sent: BAD, 100).run()
    assert world.stopped == BAD
    assert not world.failed
    assert not world.charged
    assert world.calls <= 5 + 10


def test_the_first_five_unlike_pay():
    """When the first five fail for different reasons, each pays for itself."""
    world = World(lambda row, sent: replace(BAD, reason=f"r{row}"), 20).run()
    assert len(world.failed) == 20
    assert not world.stopped


def test_fewer_than_five_pay_at_the_end():
    """Three records that are all refused fail at the end, since there is no more evidence to come."""
    world = World(lambda row, sent: BAD, 3).run()
    assert len(world.failed) == 3


def test_early_refusals_pay_with_the_first_success():
    """A refusal before the first success is held, and charged by that success."""
    world = World(lambda row, sent: BAD if row < 2 else ok(), 30, 1).run()
    assert set(world.failed) == {0, 1}
    assert len(world.done) == 28


def test_a_record_that_can_never_be_sent_ends():
    """A record whose host cannot be reached while others succeed is failed after ten releases, never charged before."""
    world = World(lambda row, sent: REFUSED if row == 5 else ok(), 4000, 1, longest=2.0).run()
    assert world.failed == {5: "refused"}
    assert world.charged[5] == 1


def test_a_wave_of_pace_failures_lengthens_the_rest_once():
    """Ten calls refused together are one wave: the rest doubles with the wave, not with each of them."""
    judge = Judge(Gate(), RetryPolicy(jitter=lambda: 0.0))
    fast = Failure(C.PACE, "rate_limited", "slow down", status=429)
    numbers = [judge.gate.depart(0.0) for _ in range(12)]
    first = [judge.rule(job(i), numbers[i], fast, now=1.0).rest for i in range(10)]
    assert set(first) == {1.0}
    assert judge.rule(job(11), numbers[11], fast, now=2.5).rest == 2.0


def test_a_lost_kept_connection_is_tried_once_on_a_fresh_one():
    """A stale keep-alive costs nothing the first time; the second loss waits for evidence."""
    judge = Judge(Gate(), RetryPolicy())
    stale = Failure(C.REUSED, "stale", "closed")
    number = judge.gate.depart(0.0)
    assert judge.rule(job(1), number, stale, now=0.1).decision.action is Action.RELEASE
    assert judge.fresh_connection(job(1))
    number = judge.gate.depart(0.2)
    assert judge.rule(job(1), number, stale, now=0.3).decision.action is Action.HOLD

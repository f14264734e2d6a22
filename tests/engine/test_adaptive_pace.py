"""The pace that a server allows, against simulated servers in faked time."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paceworld import AtOnce, Bucket, Chance, Refused, Window, World

from rowcall.limits.concurrency import Concurrency, RequestSlots
from rowcall.limits.learned_concurrency import LearnedConcurrency, RequestStart
from rowcall.limits.limit_headers import LimitHeaders
from rowcall.limits.server_limits import ServerLimits
from rowcall.limits.server_quotas import ServerQuotas
from rowcall.model.outcome import Failure, FailureClass

TOO_FAST = Failure(FailureClass.PACE, "rate_limited", "", 429)
DOWN = Failure(FailureClass.SERVER, "http_503", "", 503)
ERROR = Failure(FailureClass.SERVER, "http_500", "", 500)
SLOW = Failure(FailureClass.MAYBE_SENT, "timeout", "")


def steady(world, start, end, *, ideal, least=0.95, refused=0.02):
    """In that time it was nearly as fast as can be, and few calls were refused."""
    world.run(end)
    good, bad = world.between(start, end)
    assert good >= least * ideal * (end - start), good / (end - start)
    assert bad <= refused * (good + bad), bad


# What the server says


@pytest.mark.parametrize("latency", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("level", [1.0, 0.0])
def test_a_bucket_that_tells_is_used_to_the_full(latency, level):
    """A server that allows 600 a minute and says so gets 600 a minute from 200 slots, and refuses next to nothing."""
    steady(World(Bucket(600, tells=True, level=level), latency=latency), 120, 240, ideal=10)


def test_a_window_that_tells_is_used_to_the_full():
    """The same with a fixed window, entered when two thirds of it are over."""
    steady(World(Window(600, 60, tells=True, begun=40)), 60, 300, ideal=10)


def test_nothing_left_waits_for_the_reset():
    """With nothing left no call leaves before the reset, and calls sent meanwhile are taken off what is left."""
    quotas = ServerQuotas()
    quotas.hear([LimitHeaders("requests", 0, 30.0, 100)], 7, now=100.0)
    assert quotas.spacing(100.0, 7).at == 130.0
    quotas.hear([LimitHeaders("requests", 5, 30.0, 100)], 8, now=101.0)
    assert quotas.spacing(101.0, 8).gap == 6.0
    assert quotas.spacing(101.0, 10).gap == 10.0
    assert quotas.spacing(101.0, 13).at == 131.0


def test_after_the_reset_calls_go_on_at_the_average():
    """Once the reset has passed and nothing is known of the new window, calls are spread over its length."""
    quotas = ServerQuotas()
    quotas.hear([LimitHeaders("requests", 0, 60.0, 120)], 1, now=0.0)
    assert quotas.spacing(61.0, 500).gap == 0.5


def test_an_older_reply_changes_nothing():
    """Replies that come in out of order do not bring back what is spent."""
    quotas = ServerQuotas()
    quotas.hear([LimitHeaders("requests", 3, 30.0, 100)], 9, now=0.0)
    quotas.hear([LimitHeaders("requests", 50, 30.0, 100)], 4, now=0.1)
    assert quotas.spacing(0.1, 9).gap == pytest.approx(30 / 3, rel=0.01)


def test_a_days_quota_is_not_spread_over_the_day():
    """What is left of a long window is spread over a minute."""
    quotas = ServerQuotas()
    quotas.hear([LimitHeaders("requests", 100, 80_000.0, 1000)], 1, now=0.0)
    assert quotas.spacing(0.0, 1).gap == 0.6


def test_tokens_are_reckoned_in_calls():
    """What a call costs in tokens is seen from what is left after each; until then tokens hold nothing back."""
    quotas = ServerQuotas()
    quotas.hear([LimitHeaders("tokens", 10_000, 60.0, 90_000, by_request=False)], 1, now=0.0)
    assert quotas.spacing(0.0, 1).gap == 0
    quotas.hear([LimitHeaders("tokens", 8_000, 60.0, 90_000, by_request=False)], 3, now=1.0)
    assert quotas.spacing(1.0, 3).gap == 60 / 8
    quotas.hear([LimitHeaders("tokens", 900, 60.0, 90_000, by_request=False)], 10, now=2.0)
    assert quotas.spacing(2.0, 10).at == 62.0


def test_a_refused_call_knows_better_than_the_reset():
    """A bucket that is empty is full only at its reset, but a refusal says when it holds one call."""
    quotas = ServerQuotas()
    quotas.hear([LimitHeaders("requests", 0, 60.0, 600)], 1, now=0.0, retry_after=0.1)
    assert quotas.spacing(0.0, 1).at == pytest.approx(0.1)


# What is learned


@pytest.mark.parametrize("latency", [0.05, 0.3, 10.0])
@pytest.mark.parametrize("whole_seconds", [False, True])
def test_a_silent_bucket_is_learned(latency, whole_seconds):
    """A server that tells nothing but Retry-After comes to few refusals at its full rate."""
    steady(World(Bucket(600, whole_seconds=whole_seconds), latency=latency), 120, 600, ideal=10)


@pytest.mark.parametrize("latency", [0.05, 10.0])
def test_a_silent_window_is_learned(latency):
    """The same with a fixed window, in which a refusal costs more: the rest of the window."""
    steady(World(Window(600, 60, begun=40), latency=latency), 240, 840, ideal=10, least=0.9)


@pytest.mark.parametrize(("retry_after", "concurrency"), [(True, 32), (False, 8)])
def test_one_call_in_ten_seconds(retry_after, concurrency):
    """A server that allows one call in 10 s: steady progress for 3 minutes, under 2 wasted calls for each good one."""
    world = World(Window(1, 10, retry_after=retry_after), concurrency=concurrency).run(180)
    good, refused = world.between(0, 180)
    assert good >= 12
    assert refused < 2 * good
    assert max(later - sooner for sooner, later in pairwise(world.good)) <= 31


def test_chance_is_no_rate():
    """A server that refuses 0.3 % of all calls, however fast they come, is not taken for a slow one."""
    adaptive, fixed = (World(Chance(0.003), concurrency=32, learns=learns).run(60) for learns in (True, False))
    assert len(adaptive.good) > 0.75 * len(fixed.good)


class RefusesAt:
    """Refuses the first call after each of some times, and all for as long as it then asked for."""

    def __init__(self, waits):
        self.waits, self.until, self.early, self.refused_at, self.begun = list(waits), 1.0, 0, [], []

    def begin(self, now):
        self.begun.append(now)
        if self.refused_at and now < self.until:
            self.early += 1
        if now >= self.until and self.waits:
            wait = self.waits.pop(0)
            self.refused_at.append(now)
            self.until = now + wait
            return Refused(wait)
        return {}

    def end(self, now):
        pass


@pytest.mark.parametrize("waits", [(1.0,), (1.0, 4.0, 9.0), (60.0,), (61.0,), (300.0,), (7200.0,)])
def test_retry_after_is_kept_to_the_end(waits):
    """After a refusal nothing leaves before its Retry-After is over, and then it goes on within a second."""
    server = RefusesAt(waits)
    World(server, concurrency=5, latency=0.2).run(sum(waits) + 5)
    assert len(server.refused_at) == len(waits)
    for wait, refused_at in zip(waits, server.refused_at, strict=True):
        gap = min(at for at in server.begun if at > refused_at + 0.1) - refused_at
        assert wait <= gap <= wait + 1
    assert server.early <= 5 * len(waits)


def test_one_refusal_costs_what_it_asked_for():
    """One 429 with Retry-After 1 costs the run 1 to 2 s."""
    calls = [len(World(RefusesAt(waits)).run(4).good) for waits in ((), (1.0,))]
    assert 0.9 <= (calls[0] - calls[1]) / (calls[0] / 4) <= 2.0


# How many at once


@pytest.mark.parametrize("latency", [0.2, 1.0])
def test_a_server_that_takes_20_at_once(latency):
    """Slots settle between 16 and 20; when it takes 60, they are used within 30 s; when 20 again, at once."""
    world = World(AtOnce(20), latency=latency)
    steady(world, 30, 90, ideal=20 / latency, least=0.9)
    settled = [slots for at, slots in world.slots if at > 30]
    assert sum(16 <= slots <= 20 for slots in settled) > 0.95 * len(settled)
    world.server.most = 60
    steady(world, 120, 210, ideal=60 / latency, least=0.9)
    world.server.most = 20
    steady(world, 240, 300, ideal=20 / latency, least=0.85)


def test_slow_start():
    """32 at first, three times as many after each round trip; all slots after three of them."""
    world = World(AtOnce(10_000), spread=0.0).run(0.053 * 4)
    by_trip = [max(slots for at, slots in world.slots if at <= 0.053 * trip) for trip in (1, 2, 3)]
    assert by_trip[0] <= 34
    assert 90 <= by_trip[1] <= 102
    assert by_trip[2] == 200


def full(most=100):
    """Slots that are all in use, after slow start."""
    slots = LearnedConcurrency(Concurrency(most))
    for number in range(1, 200):
        slots.depart(slots.limit)
        slots.accept(slots.limit, number * 0.001)
    assert slots.limit == most
    return slots


def test_a_round_trip_cuts_once():
    """All refusals of one round trip together leave what was taken, and at least half; the next trip may cut again."""
    slots = full()
    slots._good.clear()
    assert slots.refuse(RequestStart(1000, 100), 1050, 100, 10.0)
    assert not any(slots.refuse(RequestStart(number, 99), 1050, 99, 10.0) for number in range(1001, 1020))
    assert slots.limit == 80
    assert not any(slots.refuse(RequestStart(number, 80), 1050, 80, 10.1) for number in range(1020, 1051))
    assert slots.limit == 50
    assert slots.refuse(RequestStart(1051, 50), 1060, 50, 12.0)
    assert slots.limit == 49


def test_errors_and_timeouts_only_pause_growth():
    """A 500 or a timeout cuts nothing; growth waits for a second."""
    adaptive = ServerLimits(Concurrency(100))
    for failure in (ERROR, SLOW):
        assert not adaptive.arrive(adaptive.depart(), 0.5, {}, failure)
    assert adaptive.concurrency.now == 32
    passages = [adaptive.depart() for _ in range(32)]
    adaptive.arrive(passages[-1], 0.7, {}, None)
    assert adaptive.concurrency.now == 32
    adaptive.arrive(passages[-2], 1.6, {}, None)
    assert adaptive.concurrency.now == 34


@pytest.mark.parametrize("failure", [TOO_FAST, DOWN])
def test_too_much_cuts(failure):
    """429 and 503 with full slots cut them."""
    adaptive = ServerLimits(Concurrency(100))
    passages = [adaptive.depart() for _ in range(32)]
    assert adaptive.arrive(passages[-1], 0.1, {}, failure)
    assert adaptive.concurrency.now == 31


def test_an_outage_is_no_cut():
    """What was cut for 503s is given back when they turn out to be an outage, and its probes cut nothing."""
    adaptive = ServerLimits(Concurrency(32))
    passages = [adaptive.depart() for _ in range(32)]
    for passage in passages[:5]:
        adaptive.arrive(passage, 0.1, {}, DOWN)
    assert adaptive.concurrency.now < 32
    adaptive.outage()
    for passage in passages[5:]:
        adaptive.arrive(passage, 0.2, {}, DOWN)
    adaptive.arrive(adaptive.depart(), 1.1, {}, DOWN)
    assert adaptive.concurrency.now == 32


def test_recovery_takes_less_than_half_a_minute():
    """From one slot to 200 within 30 s of the last refusal, however often it was refused before."""
    slots = full(200)
    for number in range(1000, 1400):
        slots.refuse(RequestStart(number, slots.limit), number, slots.limit, 10.0)
    assert slots.limit == 1
    now = 10.0
    while slots.limit < 200:
        now += 0.05
        slots.depart(slots.limit)
        slots.accept(slots.limit, now)
    assert now <= 40.0


EVENTS = st.lists(
    st.tuples(st.sampled_from(["depart", "good", "429", "503", "500", "drop", "outage"]), st.floats(0, 9))
)


@settings(max_examples=60, deadline=None)
@given(most=st.integers(1, 60), events=EVENTS)
def test_whatever_happens_there_is_a_slot_and_not_too_many(most, events):
    """From 1 to the most that the user allows, and never a place in the past."""
    adaptive, now, flying = ServerLimits(Concurrency(most)), 0.0, []
    outcomes = {"good": None, "429": TOO_FAST, "503": DOWN, "500": ERROR}
    for event, after in events:
        now += after
        if event == "depart":
            flying.append(adaptive.depart())
        elif event == "outage":
            adaptive.outage()
        elif flying and event == "drop":
            flying.pop()
            adaptive.drop()
        elif flying:
            adaptive.arrive(flying.pop(0), now, {}, outcomes[event])
        assert 1 <= adaptive.concurrency.now <= most
        assert adaptive.next_at(now) >= now


def test_it_never_widens_what_the_user_set():
    """With 2 calls at a time set, a server that allows a thousand changes nothing."""
    adaptive = ServerLimits(Concurrency(2))
    adaptive.arrive(adaptive.depart(), 0.1, {"x-ratelimit-remaining": "1000", "x-ratelimit-reset": "1"}, None)
    assert adaptive.concurrency.now == 2
    adaptive.concurrency.set(1)
    assert adaptive.concurrency.now == 1


def test_not_adaptive_follows_nothing():
    """With ``adaptive = false`` neither headers nor refusals change the pace."""
    adaptive = ServerLimits(Concurrency(50), learns=False)
    adaptive.arrive(adaptive.depart(), 0.1, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "60"}, TOO_FAST)
    assert (adaptive.concurrency.now, adaptive.next_at(0.2), adaptive.places(0.2, 0.1, 30)) == (50, 0.2, 30)


async def test_a_waiter_that_is_cancelled_takes_nobodys_turn():
    """Room that comes free after one of two waiters was cancelled wakes the other."""
    adaptive = ServerLimits(Concurrency(1))
    slots, passage = RequestSlots(adaptive.concurrency), adaptive.depart()
    first, second = asyncio.create_task(slots.room()), asyncio.create_task(slots.room())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    adaptive.arrive(passage, 1.0, {}, None)
    slots.wake()
    await asyncio.wait_for(second, 4)

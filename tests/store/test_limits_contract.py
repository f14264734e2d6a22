"""What every store keeps to about limits, rests, settings and what live runs say."""

from __future__ import annotations

import asyncio

import pytest

from rowcall.limits.rate_limits import Bucket

TARGET = "https://api.example.com"
PER_MINUTE = Bucket("requests", 60, 60.0)
ONE = [(1.0,)]


@pytest.fixture
async def two(open_store, ticks):
    return await open_store(ticks=ticks), await open_store(ticks=ticks)


async def test_processes_share_a_bucket(two, ticks):
    """What one takes, the other does not get; it is told when it may come."""
    first, second = two
    taken = await first.reserve(TARGET, [PER_MINUTE], ONE, (0.0,))
    assert taken.leaves == (0.0,)
    refused = await second.reserve(TARGET, [PER_MINUTE], ONE, (0.0,))
    assert (refused.leaves, refused.next_in) == ((), pytest.approx(1.0))
    ticks.move(1.0)
    assert (await second.reserve(TARGET, [PER_MINUTE], ONE, (0.0,))).leaves == (0.0,)


async def test_targets_are_apart(two):
    """Another target's bucket is another one."""
    first, second = two
    await first.reserve(TARGET, [PER_MINUTE], ONE, (0.0,))
    assert (await second.reserve("https://other", [PER_MINUTE], ONE, (0.0,))).leaves == (0.0,)


async def test_all_buckets_hold(two):
    """A call leaves when all of its buckets let it, and pays in each."""
    first, second = two
    buckets = [Bucket("requests", 100, 1.0), Bucket("tokens", 600, 60.0)]
    await first.reserve(TARGET, buckets, [(1.0, 100.0)], (0.0, 0.0))
    refused = await second.reserve(TARGET, buckets, [(1.0, 100.0)], (0.0, 0.0))
    assert refused.next_in == pytest.approx(10.0 - buckets[1].tolerance)


async def test_corrections_are_paid(two):
    """What calls took more than they had reserved puts the next ones off, whoever asks."""
    first, second = two
    bucket = Bucket("tokens", 60, 60.0)
    await first.reserve(TARGET, [bucket], [(1.0,)], (0.0,))
    await first.reserve(TARGET, [bucket], [], (30.0,))
    assert (await second.reserve(TARGET, [bucket], [(1.0,)], (0.0,))).next_in == pytest.approx(31.0)


async def test_a_rest_is_everybodys(two, ticks):
    """All are told how long it still lasts; a shorter one never ends a longer one, and nothing leaves before."""
    first, second = two
    await first.penalize(TARGET, 9.0)
    ticks.move(2.0)
    await second.penalize(TARGET, 1.0)
    assert (await second.orders("k", TARGET)).rest == pytest.approx(7.0)
    reserved = await second.reserve(TARGET, [PER_MINUTE], ONE, (0.0,))
    assert (reserved.leaves, reserved.rest) == ((), pytest.approx(7.0))
    assert (await second.orders("k", "https://other")).rest == 0.0
    ticks.move(7.0)
    assert (await second.orders("k", TARGET)).rest == 0.0


async def test_a_rest_is_forgotten(two):
    """Who says so ends the rest of that target, and of no other."""
    first, second = two
    for target in (TARGET, "https://other"):
        await first.penalize(target, 9.0)
    await second.end_rest(TARGET)
    assert (await first.orders("k", TARGET)).rest == 0.0
    assert (await first.orders("k", "https://other")).rest > 8.0


@pytest.mark.parametrize("step", [-3600, 3600, -86_400, 86_400])
async def test_the_time_of_day_moves_nothing(two, clock, step):
    """A clock that is set forward or back lets no rest end early or late, and no place come sooner."""
    first, second = two
    await first.reserve(TARGET, [PER_MINUTE], ONE, (0.0,))
    await first.penalize(TARGET, 5.0)
    clock.move(step)
    assert (await second.orders("k", TARGET)).rest == pytest.approx(5.0)
    assert (await second.reserve(TARGET, [PER_MINUTE], ONE, (0.0,))).next_in == pytest.approx(5.0)


async def test_a_machine_that_starts_anew(two, ticks):
    """Its monotonic clock begins again: what had to be waited for then is waited for from now, and not for ever."""
    first, second = two
    ticks.now = 1_000_000.0
    await first.reserve(TARGET, [PER_MINUTE], ONE, (0.0,))
    await first.penalize(TARGET, 5.0)
    ticks.now = 10.0
    await second.begin_session()
    assert (await second.orders("k", TARGET)).rest == pytest.approx(5.0)
    assert (await second.reserve(TARGET, [PER_MINUTE], ONE, (0.0,))).next_in == pytest.approx(5.0)
    ticks.move(5.0)
    assert (await second.reserve(TARGET, [PER_MINUTE], ONE, (0.0,))).leaves == (0.0,)


async def test_settings_are_followed_by_all(desk):
    """What is set for a kind is seen by every process of it, and by no other kind; None takes it away."""
    other = await desk.other()
    await desk.store.set("k", {"concurrency": "5", "pause": "true"}, keep=False)
    assert (await other.store.orders("k", TARGET)).settings == {"concurrency": "5", "pause": "true"}
    assert (await other.store.orders("l", TARGET)).settings == {}
    await other.store.set("k", {"pause": None, "concurrency": "6"}, keep=False)
    assert (await desk.store.orders("k", TARGET)).settings == {"concurrency": "6"}


async def test_settings_end_with_the_runs(desk):
    """A run that joins a live one follows what was set; the first of the next runs only what was to be kept."""
    await desk.store.set("k", {"concurrency": "5"}, keep=False)
    await desk.store.set("k", {"requests": "9/s"}, keep=True)
    other = await desk.other()
    assert len((await other.store.orders("k", TARGET)).settings) == 2
    for each in (desk, other):
        await each.store.end_run(each.run, "done", {})
    await desk.next_pass()
    assert (await desk.store.orders("k", TARGET)).settings == {"requests": "9/s"}


async def test_live_runs_and_what_they_say(desk):
    """A live run is known with what it said last; once it has ended, it says no more."""
    other = await desk.other()
    await desk.store.note(desk.run, {"done": 3})
    assert [run.totals for run in await desk.store.live_runs("k")] == [{}, {"done": 3}]
    await desk.store.end_run(desk.run, "done", {"done": 4})
    await desk.store.note(desk.run, {"done": 5})
    assert [run.id for run in await desk.store.live_runs("k")] == [other.run.id]
    await other.vanish()
    assert await desk.store.live_runs("k") == []


async def test_a_place_is_given_once(store, open_store):
    """Of several that ask for the same place at the same moment, in one store or in two, one gets it."""
    other = await open_store()
    hourly = Bucket("requests", 1, 3600.0)
    for number in range(10):
        asked = [each.reserve(f"https://api{number}", [hourly], [(1.0,)], (0.0,)) for each in (store, other) * 4]
        reserved = await asyncio.gather(*asked)
        assert sum(len(each.leaves) for each in reserved) == 1

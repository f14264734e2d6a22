"""May a call leave now? The door's answer for each reason, and the departures that it admits."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from rowcall.calls.door import Door, Reason
from rowcall.calls.shared_limits import NoLimits
from rowcall.failures.gate import Gate
from rowcall.limits.concurrency import Concurrency
from rowcall.limits.server_limits import ServerLimits
from rowcall.model.job import Job
from rowcall.model.outcome import Failure, FailureClass

NOW = 100.0
DOWN = Failure(FailureClass.SERVER, "http_503", "HTTP 503", 503)


def job(row=1):
    return Job(row, f"{row}", 1, 0, 0, (), True, 1, "h", {})


class Spaced(NoLimits):
    """A limit with ``step`` seconds between two calls; the next one may leave at ``first``."""

    def __init__(self, first, step):
        super().__init__()
        self.first, self.step, self.text = first, step, "10 calls in 1 s"

    def next_at(self, now):
        return max(now, self.first)

    def places(self, now, horizon, most):
        left = now + horizon - self.next_at(now)
        return min(most, 1 + int(left / self.step)) if left >= 0 else 0


@pytest.fixture
def door():
    """A door whose API has answered already, with 10 calls at a time."""
    return Door(Gate(trusted=True), ServerLimits(Concurrency(10)))


@pytest.fixture
def fresh():
    """A door in front of an API that was not called yet."""
    return Door(Gate(alone_for=5.0), ServerLimits(Concurrency(10)))


def close_gate(door, now=NOW):
    for row in range(3):
        door.gate.hold(job(row), DOWN, probe=False, now=now)


def test_nothing_holds_calls_back(door):
    """As many calls as are asked for may leave at once."""
    answer = door.look(NOW, 50)
    assert (answer.calls, answer.at, answer.reason, answer.alone) == (50, NOW, None, False)


def test_stopping(door):
    """A run that stops lets nothing leave, not even a probe."""
    door.stop()
    assert (door.look(NOW).calls, door.look(NOW).reason) == (0, Reason.STOPPING)
    assert door.is_closed(probe=True)


def test_paused(door):
    """While anybody pauses nothing leaves; only the first and the last of them change that."""
    assert door.pause("set", pause=True)
    assert not door.pause("unsent", pause=True)
    assert (door.look(NOW).calls, door.look(NOW).at, door.look(NOW).reason) == (0, math.inf, Reason.PAUSED)
    assert not door.pause("set", pause=False)
    assert door.is_closed()
    assert door.pause("unsent", pause=False)
    assert door.look(NOW).calls == 1


def test_offline(door):
    """During an outage one probe at a time leaves when it is due; the answer says since when and why."""
    close_gate(door)
    answer = door.look(NOW + 0.5, 50)
    assert (answer.calls, answer.at, answer.reason) == (0, NOW + 1.0, Reason.OFFLINE)
    assert (answer.since, answer.cause) == (NOW, "HTTP 503")
    assert (door.look(NOW + 1.0, 50).calls, door.look(NOW + 1.0).alone) == (1, True)
    probe = door.admit(NOW + 1.0)
    assert probe.probe
    assert door.look(NOW + 1.0).calls == 0  # it was started, and has not left yet
    probe.leave()
    assert (door.look(NOW + 2.0).calls, door.look(NOW + 2.0).at) == (0, math.inf)  # only its outcome changes that
    assert not probe.held
    assert probe.for_group().probe


def test_a_call_that_was_started_before_an_outage_is_held(door):
    """Only the probe may leave."""
    departure = door.admit(NOW)
    close_gate(door)
    assert departure.held
    assert departure.offline


def test_resting(door):
    """After a rest of four seconds was asked for no call leaves earlier, and a shorter rest ends nothing."""
    assert door.rest(4.0, "HTTP 429", NOW)
    assert not door.rest(1.0, "later", NOW)
    answer = door.look(NOW, 50)
    assert (answer.calls, answer.at, answer.reason, answer.cause) == (0, NOW + 4, Reason.RESTING, "HTTP 429")
    assert door.take(NOW) == NOW + 4
    assert door.look(NOW + 4, 50).calls == 50
    assert door.rested.is_set()


def test_a_probe_waits_for_a_rest(door):
    """An outage is the reason, but nothing leaves before the end of a rest."""
    close_gate(door)
    door.rest(9.0, "", NOW)
    answer = door.look(NOW + 2.0)
    assert (answer.calls, answer.at, answer.reason) == (0, NOW + 9, Reason.OFFLINE)


def test_the_first_call_goes_alone(fresh):
    """One call is started, and no other until it is answered or five seconds are over."""
    assert (fresh.look(NOW, 50).calls, fresh.look(NOW, 50).alone) == (1, True)
    first = fresh.admit(NOW)
    assert first.alone
    assert (fresh.look(NOW, 50).calls, fresh.look(NOW, 50).reason) == (0, Reason.FIRST_CALL)
    fresh.gate.depart(NOW)
    answer = fresh.look(NOW + 1, 50)
    assert (answer.calls, answer.at, answer.reason) == (0, NOW + 5, Reason.FIRST_CALL)
    assert fresh.look(NOW + 5, 50).calls == 50


def test_a_first_call_that_never_leaves_makes_room_for_another(fresh):
    """A record that fails before anything is sent does not keep the others waiting."""
    fresh.admit(NOW).over = True
    assert fresh.look(NOW, 50).calls == 1


def test_nothing_left_of_a_limit_of_the_api(door):
    """A reply said that nothing is left until its reset."""
    start = door.server.depart()
    door.server.arrive(
        start, NOW, {"x-ratelimit-limit": "10", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "30"}, None
    )
    answer = door.look(NOW, 50)
    assert (answer.calls, answer.at, answer.reason) == (0, NOW + 30, Reason.API_USED_UP)


def test_paced_by_the_api(door):
    """What is left is spread over the time until the reset."""
    start = door.server.depart()
    door.server.arrive(start, NOW, {"x-ratelimit-remaining": "10", "x-ratelimit-reset": "10"}, None)
    assert door.take(NOW) == NOW
    answer = door.look(NOW, 50)
    assert (answer.calls, answer.at, answer.reason) == (0, NOW + 1, Reason.API_LIMIT)
    door.give_back()
    assert door.look(NOW, 50).calls == 1


def test_paced_by_the_configured_limit(door):
    """What may leave within 100 ms may be started now; the limit is named."""
    door.limits = Spaced(NOW + 0.05, 0.02)
    answer = door.look(NOW, 50)
    assert (answer.calls, answer.at, answer.reason) == (3, NOW + 0.05, Reason.RATE_LIMIT)
    assert answer.cause == "10 calls in 1 s"
    door.limits = Spaced(NOW + 7, 0.02)
    assert (door.look(NOW, 50).calls, door.look(NOW, 50).at) == (0, NOW + 7)


def test_groups_leave_several_records_at_a_time(door):
    """Where a request carries 100 records, a limit of requests lets 100 times as many jobs begin."""
    door.concurrency.shape(100, waits_by_request=True)
    door.limits = Spaced(NOW, 0.06)
    assert door.look(NOW, 1000).calls == 200
    assert door.look(NOW, 150).calls == 150


def test_all_slots_in_use(door):
    """No call is started beside as many as are allowed."""
    assert door.may_start(job(), 9, NOW).calls == 1
    assert (door.may_start(job(), 10, NOW).calls, door.may_start(job(), 10, NOW).reason) == (0, Reason.IN_FLIGHT)


def test_the_budget(door):
    """No call is started that would pass it, and the budget says so."""
    door.budget = SimpleNamespace(allows=lambda job, in_flight: in_flight < 2)
    assert door.may_start(job(), 1, NOW).calls == 1
    answer = door.may_start(job(), 2, NOW)
    assert (answer.calls, answer.reason, answer.cause) == (0, Reason.BUDGET, str(door.budget))


def test_a_call_that_turns_back_gives_its_turn_to_the_next(door):
    """A call that does not leave costs no turn; one that has left keeps it."""
    start = door.server.depart()
    door.server.arrive(start, NOW, {"x-ratelimit-remaining": "10", "x-ratelimit-reset": "10"}, None)
    departure = door.admit(NOW)
    assert door.look(NOW).at == NOW + 1
    departure.turn_back()
    assert door.look(NOW).at == NOW
    departure = door.admit(NOW)
    departure.leave()
    departure.turn_back()
    assert door.look(NOW).at == NOW + 1


def test_a_job_whose_requests_wait_by_themselves_takes_no_turn(door):
    """Its start is not delayed beyond a rest, and its requests take the turns."""
    door.concurrency.shape(1, waits_by_request=True)
    start = door.server.depart()
    door.server.arrive(start, NOW, {"x-ratelimit-remaining": "10", "x-ratelimit-reset": "10"}, None)
    assert [door.admit(NOW).leaves for _ in range(3)] == [NOW] * 3
    assert [door.take(NOW), door.take(NOW)] == [NOW, NOW + 1]

"""The one object that knows how many calls may be in flight."""

from __future__ import annotations

from rowcall.limits.concurrency import Concurrency


def test_what_follows_from_the_setting():
    """Where a job is one request, jobs, requests and settlements of a group are as many."""
    concurrency = Concurrency(20)
    assert (concurrency.allowed, concurrency.requests, concurrency.jobs, concurrency.group) == (20, 20, 20, 20)


def test_open_files_limit_it():
    """The operating system may allow fewer than the user, also when the user asks for more later."""
    concurrency = Concurrency(500, fit=lambda wanted: min(wanted, 100))
    assert concurrency.allowed == 100
    concurrency.set(50)
    assert concurrency.allowed == 50
    concurrency.set(1000)
    assert concurrency.allowed == 100


def test_a_process_has_its_share():
    """A grant counts for one process and never exceeds what the run allows; nothing granted is nothing to do."""
    concurrency = Concurrency(20)
    concurrency.grant(5)
    assert (concurrency.allowed, concurrency.requests, concurrency.slots) == (20, 5, 5)
    concurrency.set(3)
    assert concurrency.requests == 3
    concurrency.grant(0)
    assert (concurrency.requests, concurrency.jobs, concurrency.slots) == (0, 0, 0)


def test_the_api_narrows_it():
    """Fewer requests may be in flight where the API takes no more; what the user allows stays the most."""
    concurrency = Concurrency(20)
    concurrency.narrow(8)
    concurrency.in_flight = 6
    assert (concurrency.now, concurrency.slots, concurrency.free) == (8, 8, 2)
    concurrency.narrow(100)
    assert (concurrency.now, concurrency.free) == (20, 14)


def test_groups():
    """Enough jobs to fill every request in flight and the one that gathers; the API narrows requests, not jobs."""
    concurrency = Concurrency(4)
    concurrency.shape(100, waits_by_request=True)
    concurrency.narrow(1)
    assert (concurrency.jobs, concurrency.slots, concurrency.now, concurrency.group) == (500, 500, 1, 200)
    concurrency.grant(0)
    assert concurrency.jobs == 0


def test_who_sleeps_is_woken():
    """Subscribers hear of what the user or the run changes, once, when it holds; not of what stays the same."""
    concurrency, heard = Concurrency(4), []
    concurrency.subscribe(lambda: heard.append(concurrency.requests))
    concurrency.set(8)
    concurrency.set(8)
    concurrency.grant(2)
    concurrency.narrow(1)
    assert heard == [8, 2]

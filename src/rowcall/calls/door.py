"""May a call leave now? The door gives one answer with one reason, to the worker and to the display alike.

It asks, in this order: whether the run stops or is paused, the gate (is the API reachable at all?), rests that the API
asked for, the first call of a run, the API's own limits, and the configured rate limits.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace
from enum import StrEnum
from time import monotonic

from rowcall.calls.shared_limits import NoLimits
from rowcall.failures.gate import Gate, Outage
from rowcall.limits.budget import Budget
from rowcall.limits.server_limits import ServerLimits
from rowcall.model.job import Job

AHEAD = 0.1
"""Seconds: a call that may leave within them is claimed and started now."""


class Reason(StrEnum):
    """Why the next call may not leave at once."""

    STOPPING = "stopping"
    PAUSED = "paused"
    OFFLINE = "offline"
    RESTING = "resting"
    FIRST_CALL = "first call"
    API_USED_UP = "API limit used up"
    API_LIMIT = "API limit"
    RATE_LIMIT = "rate limit"
    IN_FLIGHT = "in-flight limit"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class DoorAnswer:
    """Whether calls may leave.

    Attributes:
        calls: how many may be started now, because they may leave within the next 100 ms.
        at: monotonic time at which the next call may leave; ``inf`` where only an event can tell.
        reason: what delays the next call; None where it may leave at once.
        cause: one line about the reason; may be empty.
        since: monotonic time at which an outage began; None for any other reason.
        alone: the call leaves by itself, as the first of a run or as a probe.
    """

    calls: int
    at: float
    reason: Reason | None = None
    cause: str = ""
    since: float | None = None
    alone: bool = False


_STOPPING = DoorAnswer(0, math.inf, Reason.STOPPING)
_PAUSED = DoorAnswer(0, math.inf, Reason.PAUSED)
_IN_FLIGHT = DoorAnswer(0, math.inf, Reason.IN_FLIGHT)


class Door:
    """Decides for one process of a run when calls may leave.

    Args:
        gate: knows whether the API is reachable.
        server: the API's own limits.

    Attributes:
        limits: the configured rate limits; none until they are set.
        budget: what may still be spent; None: any amount.
        concurrency: how many calls may be in flight.
        resting_until: monotonic time at which the latest rest ends.
        rested: set when a rest begins or becomes longer.
    """

    def __init__(self, gate: Gate, server: ServerLimits) -> None:
        self.gate = gate
        self.server = server
        self.limits = NoLimits()
        self.budget: Budget | None = None
        self.concurrency = server.concurrency
        self.resting_until = -math.inf
        self.rested = asyncio.Event()
        self._rest_cause = ""
        self._pauses: set[str] = set()
        self._stopping = False
        self._alone: Departure | None = None

    # What closes it

    @property
    def paused(self) -> bool:
        """Somebody wants no call to leave until further notice."""
        return bool(self._pauses)

    def pause(self, by: str, *, pause: bool) -> bool:
        """Let no call leave, or take that back; returns whether that changes anything.

        Several may pause at a time, each in its own name.
        """
        before = self.paused
        (self._pauses.add if pause else self._pauses.discard)(by)
        return self.paused != before

    def stop(self) -> None:
        """Let no call leave any more: the run stops."""
        self._stopping = True

    def rest(self, seconds: float, cause: str, now: float) -> bool:
        """Let no call leave for so long; returns whether that is longer than the rest before.

        A shorter rest never ends a longer one.
        """
        before = max(self.resting_until, now)
        if now + seconds > self.resting_until:
            self.resting_until = now + seconds
            self._rest_cause = cause
            self.rested.set()
        return self.resting_until > before

    # Questions

    def look(self, now: float, most: int = 1) -> DoorAnswer:
        """Return how many calls, up to ``most``, may be started now, and what delays the next one."""
        if self._stopping:
            return _STOPPING
        if self._pauses:
            return _PAUSED
        if outage := self.gate.closed:
            return self._probe(outage, now)
        if self.resting_until > now:
            return DoorAnswer(0, self.resting_until, Reason.RESTING, self._rest_cause)
        room = self.gate.room(now)
        if room is None:
            return self._paced(now, most)
        if not room or self._awaits_lone_call:
            return DoorAnswer(0, self.gate.room_at() or math.inf, Reason.FIRST_CALL, alone=True)
        return replace(self._paced(now, 1), alone=True)

    def may_start(self, job: Job, working: int, now: float) -> DoorAnswer:
        """As ``look``, for this job, while ``working`` other jobs are worked on."""
        if working >= self.concurrency.slots:
            return _IN_FLIGHT
        answer = self.look(now)
        if answer.calls and self.budget and not self.budget.allows(job, working):
            return DoorAnswer(0, math.inf, Reason.BUDGET, str(self.budget))
        return answer

    def is_closed(self, *, probe: bool = False) -> bool:
        """Whether not even a call that was already started may leave now."""
        if self._stopping or self._pauses or self.resting_until > monotonic():
            return True
        return self.gate.closed is not None and not probe

    # Calls that leave

    def admit(self, now: float) -> Departure:
        """Start a job's call after ``may_start`` said yes; the departure says when it leaves."""
        probe, alone = self.gate.closed is not None, self.gate.room(now) is not None
        waits = self.concurrency.waits_by_request
        departure = Departure(self, self._leaves_at(now) if waits else self.take(now), probe=probe, alone=alone)
        if alone:
            self._alone = departure
        return departure

    def take(self, now: float) -> float:
        """Take the next turn of this process; returns the time at which that request may leave."""
        leaves = self._leaves_at(now)
        self.server.take(leaves)
        return leaves

    def give_back(self) -> None:
        """Give the turn that was taken last back, for a request that did not leave."""
        self.server.give_back()

    def _leaves_at(self, now: float) -> float:
        return max(self.resting_until, self.server.next_at(now))

    @property
    def _awaits_lone_call(self) -> bool:
        """A call that goes alone was started and has not left; once it has, the gate knows of it."""
        return self._alone is not None and self._alone.number is None and not self._alone.over

    def _probe(self, outage: Outage, now: float) -> DoorAnswer:
        paced = self._paced(now, 1)
        due = math.inf if outage.probe_at is None else max(outage.probe_at, self.resting_until)
        may_leave = due <= now and not self._awaits_lone_call
        calls, at = may_leave * paced.calls, max(due, paced.at)
        return DoorAnswer(calls, at, Reason.OFFLINE, outage.cause.message, outage.since, alone=True)

    def _paced(self, now: float, most: int) -> DoorAnswer:
        """What the rate limits allow, the API's and the configured ones."""
        server, shared = self.server.next_at(now), self.limits.next_at(now)
        at = max(server, shared)
        calls = self._places(now, most) if most > 1 else 1
        if at <= now:
            return DoorAnswer(calls, at)
        if at > now + AHEAD:
            calls = 0
        if shared > server:
            return DoorAnswer(calls, at, Reason.RATE_LIMIT, self.limits.text)
        return DoorAnswer(calls, at, Reason.API_USED_UP if self.server.spent_until(now) else Reason.API_LIMIT)

    def _places(self, now: float, most: int) -> int:
        size = self.concurrency.records_per_request
        requests = most if size == 1 else most // size + 1
        places = min(self.server.places(now, AHEAD, requests), self.limits.places(now, AHEAD, requests))
        return min(most, size * places)


class Departure:
    """The call of one job on its way out; the gate numbers it when it leaves.

    Args:
        door: where it leaves.
        leaves: monotonic time at which it may leave, as far as this process knows.
        probe: it tests whether the API is back.
        alone: no other call may leave beside it.

    Attributes:
        fresh: it goes over a new connection.
        number: its number; None until a request has left.
        over: the call has ended.
    """

    def __init__(self, door: Door, leaves: float = 0.0, *, probe: bool = False, alone: bool = False) -> None:
        self._door = door
        self.leaves = leaves
        self.probe = probe
        self.alone = alone
        self.fresh = probe
        self.number: int | None = None
        self.over = False

    @property
    def offline(self) -> bool:
        """The API has become unreachable, and this call is not the probe."""
        return self._door.gate.closed is not None and not self.probe

    @property
    def held(self) -> bool:
        """The call may not leave now, whatever the reason."""
        return self._door.is_closed(probe=self.probe)

    def leave(self) -> None:
        """Note that a request leaves; only the first one counts."""
        if self.number is None:
            self.number = self._door.gate.depart(monotonic())

    def arrive(self) -> None:
        """Note that the request, if one has left, has ended."""
        if self.number is not None:
            self._door.gate.arrive(self.number, monotonic())

    def turn_back(self) -> None:
        """Note that the call does not leave: its turn is free for another one."""
        if self.number is None and not self._door.concurrency.waits_by_request:
            self._door.give_back()

    def stay(self) -> None:
        """Note that the call has ended without sending anything."""
        self._door.gate.stay()

    def for_group(self) -> Departure:
        """Return a departure for a request that carries this job among others."""
        shared = Departure(self._door, self.leaves, probe=self.probe)
        shared.fresh = self.fresh
        return shared

    def follow(self, shared: Departure) -> None:
        """Note that the job has left with that request, whatever it left with before."""
        self.number = shared.number

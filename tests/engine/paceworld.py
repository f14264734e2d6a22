"""A server with limits and a client that keeps its pace, in faked time."""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, field
from itertools import count

from rowcall.calls.door import Door
from rowcall.failures.gate import Gate
from rowcall.limits.concurrency import Concurrency
from rowcall.limits.server_limits import ServerLimits
from rowcall.model.outcome import Failure, FailureClass

AHEAD = 0.1
NOTHING = {}


@dataclass
class Refused:
    """A 429: after how long the next call may come, where the server says so."""

    retry_after: float | None
    headers: dict = field(default_factory=dict)


class Bucket:
    """Tokens that refill all the time; ``tells`` is ``requests`` for OpenAI's headers."""

    def __init__(self, per_minute, *, tells=False, level=1.0, whole_seconds=False):
        self.rate, self.size = per_minute / 60, per_minute
        self.level, self.at = level * per_minute, 0.0
        self.tells, self.whole = tells, whole_seconds

    def begin(self, now):
        self.level = min(self.size, self.level + (now - self.at) * self.rate)
        self.at = now
        if self.level >= 1:
            self.level -= 1
            return self.headers()
        wait = (1 - self.level) / self.rate
        return Refused(math.ceil(wait) if self.whole else wait, self.headers())

    def headers(self):
        if not self.tells:
            return NOTHING
        return {
            "x-ratelimit-limit-requests": str(self.size),
            "x-ratelimit-remaining-requests": str(math.floor(self.level)),
            "x-ratelimit-reset-requests": f"{(self.size - self.level) / self.rate:.3g}s",
        }

    def end(self, now):
        pass


class Window:
    """So many calls in each window; the first one has begun already."""

    def __init__(self, limit, window, *, tells=False, begun=0.0, retry_after=True):
        self.limit, self.window, self.tells, self.retry_after = limit, window, tells, retry_after
        self.ends, self.used = window - begun, 0

    def begin(self, now):
        while now >= self.ends:
            self.ends, self.used = self.ends + self.window, 0
        headers = self.headers(now)
        if self.used >= self.limit:
            return Refused(math.ceil(self.ends - now) if self.retry_after else None, headers)
        self.used += 1
        return self.headers(now)

    def headers(self, now):
        if not self.tells:
            return NOTHING
        left, reset = self.limit - self.used, math.ceil(self.ends - now)
        return {
            "x-ratelimit-limit": str(self.limit),
            "x-ratelimit-remaining": str(left),
            "x-ratelimit-reset": str(reset),
        }

    def end(self, now):
        pass


class AtOnce:
    """So many calls at a time."""

    def __init__(self, most, *, retry_after=1.0):
        self.most, self.retry_after, self.busy = most, retry_after, 0

    def begin(self, now):
        if self.busy >= self.most:
            return Refused(self.retry_after)
        self.busy += 1
        return NOTHING

    def end(self, now):
        self.busy -= 1


class Chance:
    """A share of all calls is refused, whatever the pace."""

    def __init__(self, share, *, retry_after=1.0):
        self.share, self.retry_after, self.draw = share, retry_after, random.Random(7)

    def begin(self, now):
        return Refused(self.retry_after) if self.draw.random() < self.share else NOTHING

    def end(self, now):
        pass


class World:
    """Calls without end against ``server``; ``latency`` seconds each, refusals in a tenth of that."""

    def __init__(self, server, *, concurrency=200, latency=0.05, spread=0.2, learns=True):
        self.server, self.latency, self.spread = server, latency, spread
        self.concurrency = Concurrency(concurrency)
        self.pace = ServerLimits(self.concurrency, learns=learns)
        self.door = Door(Gate(trusted=True), self.pace)
        self.now, self.busy, self.streak = 0.0, 0, 0
        self.events, self.order = [], count()
        self.draw = random.Random(3)
        self.good, self.refused, self.slots = [], [], []
        self.wakes_at = 0.0

    def run(self, until):
        self.start()
        while self.events and self.events[0][0] <= until:
            self.now, _, happen = heapq.heappop(self.events)
            happen()
            self.start()
        self.now = until
        return self

    def at(self, moment, happen):
        heapq.heappush(self.events, (moment, next(self.order), happen))

    def start(self):
        while self.busy < (self.concurrency.now if self.good else 1):
            due = self.door.look(self.now).at
            if due > self.now + AHEAD:
                self.look_again(min(due - AHEAD / 2, self.now + 1))
                return
            self.busy += 1
            leaves = self.door.take(self.now)
            self.at(leaves, self.leave)

    def look_again(self, moment):
        if moment < self.wakes_at or self.wakes_at <= self.now:
            self.wakes_at = moment
            self.at(moment, lambda: None)

    def leave(self):
        if self.door.resting_until > self.now:
            self.door.give_back()
            self.busy -= 1
            return
        passage = self.pace.depart()
        took = self.latency * self.draw.uniform(1 - self.spread, 1 + self.spread)
        answer = []
        self.at(self.now + 0.001, lambda: self.admit(passage, took, answer))

    def admit(self, passage, took, answer):
        said = self.server.begin(self.now)
        if isinstance(said, Refused):
            self.at(self.now + 0.001, lambda: self.refuse(passage, said))
        else:
            self.at(self.now + took, lambda: self.server.end(self.now))
            self.at(self.now + took + 0.001, lambda: self.answer(passage, said))

    def answer(self, passage, headers):
        self.busy -= 1
        self.streak = 0
        self.pace.arrive(passage, self.now, headers, None)
        self.good.append(self.now)
        self.slots.append((self.now, self.concurrency.now))

    def refuse(self, passage, said):
        self.busy -= 1
        self.refused.append(self.now)
        failure = Failure(FailureClass.PACE, "rate_limited", "", 429, retry_after=said.retry_after)
        self.pace.arrive(passage, self.now, said.headers, failure)
        if said.retry_after is None:
            self.streak += self.now >= self.door.resting_until
        self.door.rest(said.retry_after or min(60.0, 2.0 ** (self.streak - 1)), "", self.now)

    def between(self, start, end):
        """Answered, and refused, in that time."""
        return tuple(sum(start <= at < end for at in times) for times in (self.good, self.refused))

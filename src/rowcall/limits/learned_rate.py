"""The rate that an API allows, learned from its refusals where its replies do not state it. Pure; monotonic seconds.

When a call is refused (429), a window is used up or a bucket is empty, and the same was true at the refusal before. So
the calls accepted between the two, divided by the time between them, are the rate that the API allows. From then on
calls are spread at 98 % of that rate. It is held for 20 s (longer after long rests and at low rates, so that refusals
stay rare), and then grows by 2 %, 4 %, 8 %, ... a second until the next refusal, or until it no longer limits anything.

Not every refusal is about the rate:

- If most calls that left after the refused one were accepted, the next call is as likely to pass at any rate.
- If the number of calls in flight explains it and the rest is short, fewer calls at a time are tried first.
- If the estimates differ, it was chance: three in a row must agree, unless nothing else explains a refusal.
- If four refusals in a row come before the end of their hold, going slower does not help and is given up.
"""

from __future__ import annotations

from rowcall.limits.server_quotas import FREE, Spacing

SHARE = 0.98
"""The share of the estimated rate that is used."""
GROWTH = 0.02
"""Growth of the rate in the first step; each further step is twice as big."""
STEP = 1.0
"""Seconds between two steps; at least the time of two calls at the learned rate."""
LIFTED_AT = 16.0
"""Once the rate has grown this many times without a refusal, it is dropped."""
HOLD = 20.0
"""Seconds without growth: the longest of this, the time of 60 calls and four times the rest, but 240 at most."""
HOLD_CALLS = 60
HOLD_RESTS = 4
LONGEST_HOLD = 240.0
SURE_AT = 10
"""Accepted calls that an interval needs; otherwise it continues to the next refusal."""
ALIKE = 1.2
"""Factor by which an estimate may differ from the previous one and still confirm it."""
ALIKE_AT = 2
"""Confirmations that the first estimate needs."""
EXPLAINED = 1
"""Refusals, shortly after one another, that are attributed to the calls in flight."""
SHORT = 5.0
"""Seconds: a shorter interval or rest may be about the calls in flight."""
USELESS = 4
"""Refusals in a row before the end of their hold, after which they are not attributed to the rate."""
DEAF_FOR = 300.0
"""Seconds after that for which nothing is learned."""


class LearnedRate:
    """The rate learned from refusals; none until there are two.

    Attributes:
        goes_alone: nothing was accepted after the last rest, or after the very first refusal. So one call at a time
            tests whether the rest was long enough.
    """

    def __init__(self) -> None:
        self._rate: float | None = None
        self._since: _Refusal | None = None
        self._latest = _Refusal(0, 0, float("-inf"))
        self._refused = 0
        self._resting = self._barren = self.goes_alone = False
        self._seen = 0.0
        self._began = float("inf")
        self._grows_at = self._deaf_until = float("-inf")
        self._alike = self._early = self._explained = 0

    def depart(self, now: float) -> None:
        """Note the time at which a call is going to leave; a rest is over by then."""
        self._began = min(self._began, now)
        if self._resting:
            self._resting = False
            self._learn(now)

    def accept(self, number: int) -> None:
        """Note that a call was answered."""
        if number > self._latest.sent:
            self.goes_alone = False
        self._latest.see(number, refused=False)

    def refuse(self, number: int, sent: int, now: float, *, explained: bool) -> None:
        """Note a refusal. ``sent``: the number of the latest call; ``explained``: too many calls were in flight."""
        self._refused += self._since is None or number > self._since.sent
        if number > self._latest.sent:
            self._latest = _Refusal(number, sent, now, explained)
            self._resting = True
        else:
            self._latest.see(number, refused=True)

    def outage(self) -> None:
        """Note that the API is gone; for how long says nothing about its rate."""
        self._since, self._resting, self.goes_alone = None, False, False

    def spacing(self, now: float) -> Spacing:
        """Return when calls may leave."""
        rate = self._grown(now)
        return Spacing(gap=1 / rate) if rate else FREE

    def _grown(self, now: float) -> float | None:
        if self._rate is None or now < self._grows_at:
            return self._rate
        steps = int((now - self._grows_at) / max(STEP, 2 / self._rate)) + 1
        factor = 1.0
        for step in range(min(steps, 10)):
            factor *= 1 + GROWTH * 2**step
        if factor > LIFTED_AT:
            self._rate, self._early = None, 0
            return None
        return self._rate * factor

    def _learn(self, now: float) -> None:
        first, latest = self._since, self._latest
        taken = latest.sent - first.sent - self._refused if first else 0
        if first is None:
            self._learn_first(now)
            self._begin()
        elif taken < 1:
            self._barren = self.goes_alone = True
        elif self._is_about_else(first, now):
            self._begin()
        elif taken >= SURE_AT or (now - first.at > SHORT and self._is_about_rate(now)):
            self._believe(taken / (latest.at - first.at), now)
            self._begin()

    def _learn_first(self, now: float) -> None:
        """A long rest ends a window, or the interval of a slow limit: go by the calls accepted since the start."""
        self.goes_alone = self._latest.is_total
        if now - self._latest.at > SHORT and self._refused < self._latest.sent:
            self._believe((self._latest.sent - self._refused) / (now - self._began), now)

    def _begin(self) -> None:
        """Start the next interval with the latest refusal."""
        self._since, self._refused, self._barren = self._latest, 0, False

    def _believe(self, allowed: float, now: float) -> None:
        """Adopt an estimate; the first one only once others confirm it."""
        latest, before = self._latest, self._grown(self._latest.at)
        self._alike = self._alike + 1 if self._seen / ALIKE < allowed < self._seen * ALIKE else 0
        self._seen = allowed
        if before is None and not self._is_about_rate(now) and self._alike < ALIKE_AT:
            return
        self._early = 0 if before is None or latest.at >= self._grows_at else self._early + 1
        if self._early >= USELESS:
            self._rate, self._early, self._deaf_until = None, 0, now + DEAF_FOR
            return
        self._rate = min(allowed * SHARE, before or allowed)
        hold = max(HOLD, HOLD_CALLS / self._rate, HOLD_RESTS * (now - latest.at))
        self._grows_at = now + min(hold, LONGEST_HOLD)

    def _is_about_rate(self, now: float) -> bool:
        """Whether the latest refusal must be about the rate: a long rest, or nothing accepted after a short one."""
        return self._barren or now - self._latest.at > SHORT

    def _is_about_else(self, first: _Refusal, now: float) -> bool:
        """Whether the latest refusal says nothing about the rate."""
        latest = self._latest
        if now < self._deaf_until or (self._rate is None and latest.is_isolated):
            return True
        if latest.at - first.at > SHORT:
            self._explained = 0
        if self._is_about_rate(now) or not latest.explained or self._explained >= EXPLAINED:
            return False
        self._explained += 1
        return True


class _Refusal:
    """The first refusal of a round trip, and the results of the calls that left between it and its reply."""

    def __init__(self, number: int, sent: int, at: float, explained: bool = False) -> None:
        self.sent = sent
        self.at = at
        self.explained = explained
        self._number = number
        self._taken = self._refused = 0

    def see(self, number: int, *, refused: bool) -> None:
        if self._number < number <= self.sent:
            self._refused += refused
            self._taken += not refused

    @property
    def is_total(self) -> bool:
        """None of those calls was accepted."""
        return self._refused > 0 and not self._taken

    @property
    def is_isolated(self) -> bool:
        """Most of those calls were accepted."""
        return self._taken >= 4 and self._refused * 3 <= self._taken

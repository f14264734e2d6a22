"""The gate decides whose fault a failure is, and whether calls may leave at all.

A pure state machine: times come in as monotonic seconds, and nothing is awaited.

A failure that may be the record's fault or the API's is *held*: its slot is free, its job is still running, and nothing
is written. Evidence decides:

- A success of a call that was sent after a failure was seen proves that failure against its record.
- Three records in a row that fail for the first time in this run, without any success in between, are an *outage*. (At
  least a quarter of the calls in flight must fail, since neighbours in the input tend to fail together.) The gate
  closes and everything held is excused. While it is closed, one probe at a time leaves, after 1, 2, 4, 5, 5, ...
  seconds, by records that have not failed yet. Only the success of a call sent after the closing opens the gate.
- When no record is left that has not failed, a probe's failure is proven against its record; probes then leave every
  second.
- When nothing else is in flight or claimable, what is held is proven.
- Key trouble (401, 403) after a success: the third such record in a row stops the run.
- Until the first success, refusals of records are held too. Five that are alike stop the run; five that differ are
  proven.

A record that has failed before is no evidence of an outage, but it is excused with the others. So each closing uses up
three records that had not failed, and a run with any number of poison records ends. The limit of this rule: an outage
that begins with fewer than three such records left cannot be told from poison.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rowcall.model.job import Job
from rowcall.model.outcome import Failure, FailureClass

OUTAGE_AT = 3
"""Records that fail for the first time, without a success in between, that make an outage; at least."""
OUTAGE_SHARE = 4
"""An outage also takes at least one in so many of the calls in flight."""
KEY_TROUBLE_AT = 3
"""Records in a row that get 401 or 403, after a success, until the run stops."""
ALIKE_AT = 5
"""Records that fail before anything has succeeded, until the run stops or the failures are charged to them."""
PROBE_WAITS = (1.0, 2.0, 4.0, 5.0)
"""Seconds before each probe; the last number repeats."""
ALONE_FOR = 5.0
"""Seconds for which the first call of a run goes alone, at most."""


class Verdict(StrEnum):
    """What the gate knows about a failure."""

    OPEN = "open"  # not known yet
    EXCUSED = "excused"  # not the record's fault
    PROVEN = "proven"  # the record's fault


@dataclass(frozen=True, slots=True)
class Judged:
    """A failure with the gate's verdict on it."""

    job: Job
    failure: Failure
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Rulings:
    """What follows from one event: verdicts on held failures, and the failure that stops the run, if one does."""

    judged: tuple[Judged, ...] = ()
    stop: Failure | None = None


_NOTHING = Rulings()


@dataclass(frozen=True, slots=True)
class Outage:
    """The state of a closed gate.

    Attributes:
        since: monotonic time at which it closed.
        cause: the failure that closed it.
        probe_at: monotonic time at which the next probe leaves; None: one is in flight.
    """

    since: float
    cause: Failure
    probe_at: float | None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Calls have failed since a monotonic time, and nothing has ever succeeded in this run."""

    since: float
    cause: Failure


@dataclass(frozen=True, slots=True)
class _Held:
    job: Job
    failure: Failure
    seen: int  # calls sent by the time it was seen
    first: bool  # its record had not failed before in this run


class Gate:
    """The evidence about one target (scheme, host and port), and its outage.

    Args:
        probe_waits: seconds before each probe, the last one repeating; default 1, 2, 4, 5.
        alone_for: seconds for which the first call goes alone, at most; default 5.
        trusted: another process has just reached the target, so it counts as reachable from the start.

    Attributes:
        last_success: the number of the latest call that succeeded; 0: none has.
        early_over: records were charged for refusals before any success.
        handler_works: a handler has given an answer without any request.
        trouble: why nothing has ever succeeded; None where something has, or nothing has failed yet.
    """

    def __init__(
        self, *, probe_waits: tuple[float, ...] = PROBE_WAITS, alone_for: float = ALONE_FOR, trusted: bool = False
    ) -> None:
        self._waits = probe_waits
        self._alone_for = alone_for
        self._held: list[_Held] = []
        self._touched: set[int] = set()
        self._in_a_row = 0
        self._in_flight: set[int] = set()
        self._sent = 0
        self._first_sent_at: float | None = None
        self._first_answered = trusted
        self._trusted = trusted
        self._closed: Outage | None = None
        self._closed_after = 0
        self._probe: int | None = None
        self._probes = 0
        self.last_success = 0
        self.early_over = False
        self.handler_works = False
        self.trouble: Trouble | None = None

    @property
    def closed(self) -> Outage | None:
        """The outage, while there is one."""
        return self._closed

    @property
    def succeeded(self) -> bool:
        """A call of this run has succeeded."""
        return self._trusted or self.last_success > 0

    @property
    def sent(self) -> int:
        """The number of the latest call that left; calls are numbered from 1."""
        return self._sent

    def room(self, now: float) -> int | None:
        """Return how many calls may leave now: 0, 1, or None for any number."""
        if self._closed:
            return int(self._closed.probe_at is not None and now >= self._closed.probe_at)
        if self._first_answered:
            return None
        if self._first_sent_at is None:
            return 1
        return None if now >= self._first_sent_at + self._alone_for else 0

    def room_at(self) -> float | None:
        """Return the time at which ``room`` grows by itself; None: only an outcome changes it."""
        if self._closed:
            return self._closed.probe_at
        if self._first_answered or self._first_sent_at is None:
            return None
        return self._first_sent_at + self._alone_for

    def depart(self, now: float) -> int:
        """Note that a call leaves; returns its number."""
        self._sent += 1
        self._in_flight.add(self._sent)
        if self._first_sent_at is None:
            self._first_sent_at = now
        if self._closed:
            self._probe = self._sent
            self._probes += 1
            self._closed = Outage(self._closed.since, self._closed.cause, None)
        return self._sent

    def arrive(self, number: int, now: float) -> None:
        """Note that a call ended in whatever way, before its outcome is judged.

        One request may carry several jobs, each of which calls this; only the first one counts.
        """
        self._in_flight.discard(number)
        self._first_answered = True
        if self._closed and number == self._probe:
            self._probe = None
            self._closed = Outage(self._closed.since, self._closed.cause, now + self._wait())

    def stay(self) -> None:
        """Note that a handler ended without a request. Perhaps none ever comes, so nothing waits for the first one."""
        self._first_answered = True

    def success_without_request(self) -> Rulings:
        """Note an answer that a handler gave without a request: evidence about records, but none about the API."""
        self.handler_works = True
        own = [h for h in self._held if _early(h.failure) and h.failure.status is None]
        return self._judge(own, Verdict.PROVEN)

    def success(self, number: int) -> Rulings:
        """Note a success: it proves what was held before that call was sent, and may open the gate."""
        first = not self.succeeded
        self.last_success = max(self.last_success, number)
        self.trouble = None
        self._in_a_row = 0
        if self._closed and number > self._closed_after:
            self._closed, self._probe, self._probes = None, None, 0
        proven = [h for h in self._held if number > h.seen or (first and _early(h.failure))]
        return self._judge(proven, Verdict.PROVEN)

    def hold(self, job: Job, failure: Failure, *, probe: bool, now: float) -> Rulings:
        """Hold a failure until there is evidence. ``failure.cls`` is the class that counts now."""
        held = _Held(job, failure, self._sent, first=job.row not in self._touched)
        if probe or not self._closed:  # otherwise the record may be fine, and can still be a probe
            self._touched.add(job.row)
        if failure.cls in _OUTAGE and not self.succeeded:
            self.trouble = Trouble(self.trouble.since if self.trouble else now, failure)
        if self._closed and failure.cls in _OUTAGE:
            last_resort = probe and not held.first and failure.cls is not FailureClass.NOT_SENT
            if last_resort:  # each of these probes is charged, so there is no reason to be slow
                self._closed = Outage(self._closed.since, self._closed.cause, now + self._waits[0])
            return Rulings((Judged(job, failure, Verdict.PROVEN if last_resort else Verdict.EXCUSED),))
        self._held.append(held)
        if _early(failure):
            return self._alike()
        if failure.cls is FailureClass.SETUP:
            return self._key_trouble()
        self._in_a_row += held.first
        return self._outage(now)

    def idle(self) -> Rulings:
        """Judge what is held, since nothing else is in flight or claimable and no more evidence will come.

        What was not sent is never charged. A refused key (401) is never the record's fault: it stops the run.
        """
        key = next((h.failure for h in self._held if h.failure.status == 401), None)
        unsent = [h for h in self._held if h.failure.cls is FailureClass.NOT_SENT]
        excused = self._judge(self._held if key else unsent, Verdict.EXCUSED)
        return Rulings(excused.judged + self._judge(self._held, Verdict.PROVEN).judged, stop=key)

    def dissolve(self) -> Rulings:
        """Excuse everything that is held, since the run ends."""
        return self._judge(self._held, Verdict.EXCUSED)

    def _outage(self, now: float) -> Rulings:
        if self._in_a_row < max(OUTAGE_AT, len(self._in_flight) // OUTAGE_SHARE):
            return Rulings()
        held = [h for h in self._held if h.failure.cls in _OUTAGE]
        self._in_a_row = 0
        self._closed_after, self._probes = self._sent, 0
        self._closed = Outage(now, held[-1].failure, now + self._waits[0])
        return self._judge(held, Verdict.EXCUSED)

    def _key_trouble(self) -> Rulings:
        trouble = [h for h in self._held if h.failure.cls is FailureClass.SETUP]
        if len(trouble) < KEY_TROUBLE_AT:
            return Rulings()
        return Rulings(self._judge(self._held, Verdict.EXCUSED).judged, stop=trouble[-1].failure)

    def _alike(self) -> Rulings:
        early = [h for h in self._held if _early(h.failure)]
        if len(early) < ALIKE_AT:
            return Rulings()
        if len({h.failure.reason for h in early}) > 1:
            self.early_over = True
            return self._judge(early, Verdict.PROVEN)
        return Rulings(self._judge(self._held, Verdict.EXCUSED).judged, stop=early[-1].failure)

    def _judge(self, held: list[_Held], verdict: Verdict) -> Rulings:
        if not held:
            return _NOTHING
        judged = tuple(Judged(h.job, h.failure, verdict) for h in held)
        gone = {h.job.row for h in held}
        self._held = [h for h in self._held if h.job.row not in gone]
        return Rulings(judged)

    def _wait(self) -> float:
        return self._waits[min(self._probes, len(self._waits) - 1)]


_OUTAGE = (FailureClass.NOT_SENT, FailureClass.MAYBE_SENT, FailureClass.SERVER)


def _early(failure: Failure) -> bool:
    return failure.cls in (FailureClass.RECORD, FailureClass.ANSWER)

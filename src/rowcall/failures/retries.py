"""Decides who pays for a failure and how long to wait: one table, applied by one pure function.

    class        evidence open   excused    proven against the record
    not sent     hold            release    release, counted; failed after 10
    reused       release once, for a fresh connection; then as maybe sent
    maybe sent   hold            release    retry with backoff until the attempts are used up, then failed
    server       hold            release    as maybe sent
    pace         release until Retry-After; the whole target rests; failed after 100
    money        release, stop the run
    setup        stop; after the first success: hold, then stop or failed
    record       hold until the first success, then failed at once
    answer       hold until the first success, then retry on its own budget, then failed
    later        release for as long as the handler asks; failed after 100

The gate (gate.py) decides whether evidence is still open, and whether a failure is excused or proven.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import time

import tenacity

from rowcall.failures.gate import Verdict
from rowcall.limits.limit_headers import epoch, number
from rowcall.model.job import Job
from rowcall.model.outcome import Action, Decision, Failure, FailureClass

LONGEST_WAIT = 30 * 86_400.0
"""Seconds that a server may ask to wait; a longer wait is shortened to this."""


_SAME_AGAIN = frozenset({"truncated", "filtered"})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long.

    Attributes:
        attempts: charged calls of one record, at most 3.
        first: seconds before the second attempt, 1; doubled with each further one.
        longest: the longest backoff in seconds, 60; a server's Retry-After may be longer.
        answers: further attempts after an unacceptable answer, by reason. For other reasons 1, but 0 for ``truncated``
            and ``filtered``, since the same request would get the same again.
        releases: uncharged releases of one record, while later calls succeeded, before it is failed; 10.
        rests: the same for the class pace, 100; a handler may also put a record off that often.
        jitter: returns a random number in [0, 1); it lengthens a wait by up to a quarter and never shortens one.
    """

    attempts: int = 3
    first: float = 1.0
    longest: float = 60.0
    answers: Mapping[str, int] = field(default_factory=dict)
    releases: int = 10
    rests: int = 100
    jitter: Callable[[], float] = random.random

    def wait(self, number: int, at_least: float | None = None) -> float:
        """Return seconds to wait after attempt ``number``: ``first * 2 ** (number - 1)``, plus jitter."""
        exponential = tenacity.wait_exponential(multiplier=self.first, max=self.longest)
        wait = max(exponential(_state(number)), at_least or 0.0)
        return wait + self.jitter() * min(wait, self.longest) / 4

    def answer_used_up(self, reason: str, rejected: Sequence[str]) -> bool:
        """Return whether answers were rejected for this reason as often as the budget allows."""
        budget = self.answers.get(reason, 0 if reason in _SAME_AGAIN else 1)
        return rejected.count(reason) >= budget

    def used_up(self, attempts: int) -> bool:
        """Return whether no attempt is left after so many charged ones."""
        return tenacity.stop_after_attempt(self.attempts)(_state(attempts))


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the run knows when it decides.

    Attributes:
        verdict: what the gate knows about this failure.
        succeeded: a call of this run has succeeded before.
        request_known: the request has answers from earlier runs, so its URL is right.
        releases: earlier releases of this record while later calls succeeded.
        rests: the same for pace; for later, how often it was put off before.
        streak: rests of the whole target since the last success, including this one.
        reused: the record has already been given a fresh connection once.
    """

    verdict: Verdict = Verdict.OPEN
    succeeded: bool = False
    request_known: bool = False
    releases: int = 0
    rests: int = 0
    streak: int = 1
    reused: bool = False


def decide(failure: Failure, job: Job, evidence: Evidence, policy: RetryPolicy) -> Decision:
    """Return what is done about a failure, by the table above. Pure except for the jitter."""
    return _RULES[paid_by(failure, evidence)](failure, job, evidence, policy)


def paid_by(failure: Failure, evidence: Evidence) -> FailureClass:
    """Return the class that counts now: the meaning of some changes with what the run has seen.

    A second loss of a reused connection counts as ``maybe sent``. After the first success a 404 is about the record; an
    untrusted certificate or a redirect comes from somebody in between; and only 401 and 403 stay ``setup``.
    """
    if failure.cls is FailureClass.REUSED:
        return FailureClass.MAYBE_SENT if evidence.reused else FailureClass.REUSED
    if failure.cls is not FailureClass.SETUP:
        return failure.cls
    if failure.status == 404:
        return FailureClass.RECORD if evidence.succeeded or evidence.request_known else FailureClass.SETUP
    if evidence.succeeded and failure.status not in (401, 403):
        return FailureClass.NOT_SENT if failure.status is None else FailureClass.MAYBE_SENT
    return FailureClass.SETUP


def _not_sent(failure: Failure, job: Job, evidence: Evidence, policy: RetryPolicy) -> Decision:
    if evidence.verdict is Verdict.OPEN:
        return Decision(Action.HOLD)
    if evidence.verdict is Verdict.PROVEN and evidence.releases >= policy.releases:
        return Decision(Action.FAIL)
    return Decision(Action.RELEASE, wait=policy.wait(evidence.releases + 1))


def _reused(failure: Failure, job: Job, evidence: Evidence, policy: RetryPolicy) -> Decision:
    return Decision(Action.RELEASE)


def _by_evidence(failure: Failure, job: Job, evidence: Evidence, policy: RetryPolicy) -> Decision:
    if evidence.verdict is Verdict.OPEN:
        return Decision(Action.HOLD)
    if evidence.verdict is Verdict.EXCUSED:
        return Decision(Action.RELEASE, wait=policy.wait(1, failure.retry_after))
    if not failure.retry or policy.used_up(job.attempts + 1):
        return Decision(Action.FAIL)
    return Decision(Action.RETRY, wait=policy.wait(job.attempts + 1, failure.retry_after))


def _pace(failure: Failure, job: Job, evidence: Evidence, policy: RetryPolicy) -> Decision:
    if evidence.rests >= policy.rests:
        return Decision(Action.FAIL)
    asked = failure.retry_after or None  # a Retry-After of 0 does not help: the server has just said "too fast"
    wait = policy.wait(evidence.streak) if asked is None else asked * (1 + policy.jitter() / 20)
    return Decision(Action.RELEASE, wait=wait, rest=wait if asked is None else asked)


def _money(failure: Failure, job: Job, evidence: Evidence, policy: RetryPolicy) -> Decision:
    return Decision(Action.RELEASE, stop=True)


def _setup(failure: Failure, job: Job, evidence: Evidence, policy: RetryPolicy) -> Decision:
    if not evidence.succeeded or evidence.verdict is Verdict.EXCUSED:
        return Decision(Action.RELEASE, stop=not evidence.succeeded)
    return Decision(Action.HOLD if evidence.verdict is Verdict.OPEN else Action.FAIL)


def _record(failure: Failure, job: Job, evidence: Evidence, policy: RetryPolicy) -> Decision:
    if evidence.verdict is Verdict.EXCUSED:
        return Decision(Action.RELEASE)
    if _early(evidence) and not failure.final:
        return Decision(Action.HOLD)
    return Decision(Action.FAIL)


def _answer(failure: Failure, job: Job, evidence: Evidence, policy: RetryPolicy) -> Decision:
    if evidence.verdict is Verdict.EXCUSED:
        return Decision(Action.RELEASE)
    if _early(evidence):
        return Decision(Action.HOLD)
    enough = policy.answer_used_up(failure.reason, job.rejected) or policy.used_up(job.attempts + 1)
    if enough or not failure.retry:
        return Decision(Action.FAIL)
    return Decision(Action.RETRY, wait=policy.wait(1))


def _later(failure: Failure, job: Job, evidence: Evidence, policy: RetryPolicy) -> Decision:
    if evidence.rests >= policy.rests:
        return Decision(Action.FAIL)
    return Decision(Action.RELEASE, wait=failure.retry_after or 0.0)


def _early(evidence: Evidence) -> bool:
    known = evidence.succeeded or evidence.request_known
    return not known and evidence.verdict is Verdict.OPEN


_RULES = {
    FailureClass.NOT_SENT: _not_sent,
    FailureClass.REUSED: _reused,
    FailureClass.MAYBE_SENT: _by_evidence,
    FailureClass.SERVER: _by_evidence,
    FailureClass.PACE: _pace,
    FailureClass.MONEY: _money,
    FailureClass.SETUP: _setup,
    FailureClass.RECORD: _record,
    FailureClass.ANSWER: _answer,
    FailureClass.LATER: _later,
}


def retry_after(headers: Mapping[str, str], body: bytes = b"") -> float | None:
    """Return the seconds that a reply asks to wait, at least 0; None where it says nothing, or nothing valid.

    These are read in order: ``retry-after-ms`` (OpenAI, Azure), ``retry-after`` as seconds or HTTP date (RFC 9110,
    10.2.3; a date is compared with the reply's own Date header, so that a wrong clock here does no harm), and
    google.rpc.RetryInfo's ``"retryDelay": "38s"`` in the body. Header names are lower case.
    """
    milliseconds = number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _bounded(milliseconds / 1000)
    asked = headers.get("retry-after")
    seconds = number(asked)
    if seconds is None and asked:
        seconds = _until(asked, headers.get("date"))
    if seconds is None and (found := _RETRY_INFO.search(body)):
        seconds = number(found[1].decode())
    return None if seconds is None else _bounded(seconds)


_RETRY_INFO = re.compile(rb'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')


def _until(date: str, now: str | None) -> float | None:
    then = epoch(date)
    if then is None:
        return None
    start = epoch(now) if now else None
    return then - (time() if start is None else start)


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_WAIT)


def _state(attempt: int) -> tenacity.RetryCallState:
    """A state for tenacity's strategies, which read only the number of the attempt."""
    state = tenacity.RetryCallState(retry_object=_NO_LOOP, fn=None, args=(), kwargs={})
    state.attempt_number = attempt
    return state


_NO_LOOP = tenacity.AsyncRetrying()

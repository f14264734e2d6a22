"""Turns an outcome into a ruling, by the table in retries.py and the evidence in gate.py.

There is no I/O and no clock: an outcome and the time go in, a ruling comes out. A ruling may also settle other jobs,
whose failures were held until now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rowcall.failures.gate import Gate, Judged, Outage, Rulings, Verdict
from rowcall.failures.retries import Evidence, RetryPolicy, decide, paid_by
from rowcall.model.job import Job
from rowcall.model.outcome import Action, Decision, Failure, FailureClass, Outcome, Settlement, Success

_HELD = Decision(Action.HOLD)
_DONE = Decision(Action.DONE)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What follows from one outcome.

    Attributes:
        decision: what was decided about the job that ended.
        settlements: what is to be written, for that job and for others.
        rest: seconds for which no call may go to the target; None: no rest.
        stop: the failure that ends the run; None: it continues.
        closed: the outage that began with this outcome.
        opened: the outage that ended with this outcome.
    """

    decision: Decision = _HELD
    settlements: tuple[Settlement, ...] = ()
    rest: float | None = None
    stop: Failure | None = None
    closed: Outage | None = None
    opened: Outage | None = None


class Judge:
    """Decides who pays for failures, in one run against one target.

    Args:
        gate: the evidence.
        policy: how often and how long to retry.
        request_known: the request has answers from earlier runs.
    """

    def __init__(self, gate: Gate, policy: RetryPolicy, *, request_known: bool = False) -> None:
        self.gate = gate
        self._policy = policy
        self._request_known = request_known
        self._releases: dict[int, int] = {}
        self._rests: dict[int, tuple[int, int]] = {}
        self._put_off: dict[int, int] = {}
        self._reused: set[int] = set()
        self._streak = 0
        self._resting_until = 0.0

    def rule(self, job: Job, number: int | None, outcome: Outcome, *, now: float, probe: bool = False) -> Ruling:
        """Return what follows from a call's outcome.

        Args:
            job: whose call it was.
            number: of the call; None where nothing was sent.
            outcome: of the call.
            now: monotonic time.
            probe: the call tested whether the API is back.
        """
        before = self.gate.closed
        if number is not None:
            self.gate.arrive(number, now)
        if isinstance(outcome, Success):
            ruling = self._success(job, number, outcome)
        else:
            ruling = self._failure(job, outcome, now, probe)
        after = self.gate.closed
        if before and not after:
            return replace(ruling, opened=before)
        return replace(ruling, closed=after) if after and not before else ruling

    def idle(self) -> Ruling:
        """Judge what is held, since nothing else is in flight or claimable."""
        return self._others(self.gate.idle())

    def dissolve(self) -> Ruling:
        """Release what is held, uncharged, since the run ends."""
        return self._others(self.gate.dissolve())

    def fresh_connection(self, job: Job) -> bool:
        """Return whether this record lost a reused connection before and is to get a new one."""
        return job.row in self._reused

    def _success(self, job: Job, number: int | None, outcome: Success) -> Ruling:
        self._forget(job)
        if number is None:
            rulings = self.gate.success_without_request()
        else:
            self._streak = 0
            rulings = self.gate.success(number)
        done = Settlement(job, Action.DONE, outcome=outcome)
        return Ruling(_DONE, (done, *self._sentence(rulings.judged)), stop=rulings.stop)

    def _failure(self, job: Job, failure: Failure, now: float, probe: bool) -> Ruling:
        evidence = self._evidence(job, failure, now)
        decision = decide(failure, job, evidence, self._policy)
        if decision.action is Action.HOLD:
            seen = replace(failure, cls=paid_by(failure, evidence))
            return self._others(self.gate.hold(job, seen, probe=probe, now=now))
        self._remember(job, paid_by(failure, evidence), decision, now)
        return Ruling(
            decision,
            (self._settlement(job, failure, decision),),
            rest=decision.rest,
            stop=failure if decision.stop else None,
        )

    def _others(self, rulings: Rulings) -> Ruling:
        return Ruling(settlements=tuple(self._sentence(rulings.judged)), stop=rulings.stop)

    def _sentence(self, judged: Iterable[Judged]) -> Iterable[Settlement]:
        for one in judged:
            decision = decide(one.failure, one.job, self._evidence_for(one), self._policy)
            if one.verdict is Verdict.PROVEN and one.failure.cls is FailureClass.NOT_SENT:
                self._releases[one.job.row] = self._releases.get(one.job.row, 0) + 1
            if decision.action is Action.FAIL:
                self._forget(one.job)
            yield self._settlement(one.job, one.failure, decision)

    def _evidence(self, job: Job, failure: Failure, now: float) -> Evidence:
        rests, sent = self._rests.get(job.row, (-1, -1))
        new_rest = failure.cls is FailureClass.PACE and now >= self._resting_until
        later = failure.cls is FailureClass.LATER
        works = self.gate.handler_works and failure.status is None
        return Evidence(
            succeeded=self.gate.succeeded,
            request_known=self._request_known or self.gate.early_over or works,
            releases=self._releases.get(job.row, 0),
            rests=self._put_off.get(job.row, 0) if later else rests + (self.gate.last_success > sent),
            streak=max(1, self._streak + new_rest),
            reused=job.row in self._reused,
        )

    def _evidence_for(self, one: Judged) -> Evidence:
        return Evidence(
            verdict=one.verdict,
            succeeded=self.gate.succeeded or one.verdict is Verdict.PROVEN,
            request_known=True,
            releases=self._releases.get(one.job.row, 0),
            reused=True,
        )

    def _remember(self, job: Job, cls: FailureClass, decision: Decision, now: float) -> None:
        if cls is FailureClass.REUSED:
            self._reused.add(job.row)
        if cls is FailureClass.LATER:
            self._put_off[job.row] = self._put_off.get(job.row, 0) + 1
        if decision.rest is not None:
            self._streak += now >= self._resting_until
            self._resting_until = max(self._resting_until, now + decision.rest)
            rests, sent = self._rests.get(job.row, (-1, -1))
            self._rests[job.row] = (rests + (self.gate.last_success > sent), self.gate.sent)
        if decision.action is Action.FAIL:
            self._forget(job)

    def _forget(self, job: Job) -> None:
        self._releases.pop(job.row, None)
        self._rests.pop(job.row, None)
        self._put_off.pop(job.row, None)
        self._reused.discard(job.row)

    def _settlement(self, job: Job, failure: Failure, decision: Decision) -> Settlement:
        return Settlement(job, decision.action, decision.wait, failure)

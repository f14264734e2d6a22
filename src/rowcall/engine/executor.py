"""One job through its stages: make its call, judge the outcome, hand it over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

from rowcall.calls.requests import Caller, Departure
from rowcall.engine.settler import Settler
from rowcall.failures.decide import Judge, Ruling
from rowcall.model.events import CallBegan, CallDropped, CallEnded, Listener
from rowcall.model.job import Job
from rowcall.model.outcome import Outcome, put_back


class Executor:
    """Carries claimed jobs through their one call.

    Args:
        caller: makes the call, whatever it consists of.
        judge: decides who pays.
        settler: takes what is to be written.
        emit: told of every call that began and ended.
    """

    def __init__(self, caller: Caller, judge: Judge, settler: Settler, *, emit: Listener) -> None:
        self._caller = caller
        self._judge = judge
        self._settler = settler
        self._emit = emit

    async def execute(self, job: Job, *, probe: bool = False, held: Callable[[], bool] = lambda: False) -> Ruling:
        """Make the job's call and hand over what is to be written; the ruling says what else follows.

        Args:
            job: a claimed job.
            probe: the call asks whether the API is back, on a fresh connection.
            held: whether no call may leave now; where that holds at last, the job is put back.
        """
        fresh = probe or self._judge.fresh_connection(job)
        departure = Departure(self._judge.gate, fresh=fresh, probe=probe, held=held)
        outcome = await self._call(job, departure)
        if outcome is None:
            self._emit(CallDropped(job.key))
            self._settler.put([put_back(job)])
            return Ruling()
        ruling = self._judge.rule(job, departure.number, outcome, now=monotonic(), probe=probe)
        self._hand_over(job, outcome, ruling)
        return ruling

    async def _call(self, job: Job, departure: Departure) -> Outcome | None:
        self._emit(CallBegan(job.key))
        try:
            return await self._caller.call(job, departure)
        except asyncio.CancelledError:
            self._emit(CallDropped(job.key))
            departure.arrive()
            raise

    def _hand_over(self, job: Job, outcome: Outcome, ruling: Ruling) -> None:
        self._emit(CallEnded(job.key, outcome, ruling.decision))
        self._settler.put(ruling.settlements)

"""One job through its stages: wait, call, decide, hand over, act on the ruling."""

from __future__ import annotations

import asyncio
from time import monotonic

from rowcall.calls.door import Departure
from rowcall.calls.requests import Caller
from rowcall.engine.ruling_effects import RulingEffects
from rowcall.engine.settler import Settler
from rowcall.failures.decide import Judge
from rowcall.model.events import CallBegan, CallDropped, CallEnded, Listener
from rowcall.model.job import Job
from rowcall.model.outcome import Action, Outcome, put_back


class Executor:
    """Carries claimed jobs through their call.

    Args:
        caller: makes the call, whatever it consists of.
        judge: decides who pays.
        settler: writes what was decided.
        effects: acts on everything else that a ruling says.
        emit: learns of every call that began and ended.
    """

    def __init__(
        self, caller: Caller, judge: Judge, settler: Settler, effects: RulingEffects, *, emit: Listener
    ) -> None:
        self._caller = caller
        self._judge = judge
        self._settler = settler
        self._effects = effects
        self._emit = emit

    async def execute(self, job: Job, departure: Departure) -> None:
        """Take a job through all its stages, from its start to the settler."""
        await self._wait(departure)
        if departure.held:
            self._put_back(job, departure)
            return
        outcome = await self._call(job, departure)
        if outcome is None:
            self._emit(CallDropped(job.key))
            self._put_back(job, departure)
            return
        self._decide(job, departure, outcome)
        await self._settler.room()

    async def _wait(self, departure: Departure) -> None:
        if (wait := departure.leaves - monotonic()) > 0:
            await asyncio.sleep(wait)

    async def _call(self, job: Job, departure: Departure) -> Outcome | None:
        departure.fresh = departure.probe or self._judge.fresh_connection(job)
        self._emit(CallBegan(job.key))
        try:
            return await self._caller.call(job, departure)
        except asyncio.CancelledError:
            self._emit(CallDropped(job.key))
            departure.arrive()
            raise

    def _decide(self, job: Job, departure: Departure, outcome: Outcome) -> None:
        ruling = self._judge.rule(job, departure.number, outcome, now=monotonic(), probe=departure.probe)
        self._emit(CallEnded(job.key, outcome, ruling.decision))
        self._settler.put(ruling.settlements)
        if ruling.decision.action is Action.HOLD:  # nothing is written for it yet, so its duplicates need not wait
            self._settler.release_duplicates([job])
        self._effects.apply(ruling)

    def _put_back(self, job: Job, departure: Departure) -> None:
        departure.turn_back()
        self._settler.put([put_back(job)])
